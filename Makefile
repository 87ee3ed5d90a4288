# Every target works from a fresh clone. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

CARGO ?= cargo
# The lock file is part of the source: a build that would change it fails.
CARGO_FLAGS ?= --locked
# The trace that `make demo` simulates.
SAMPLE ?= $(firstword $(sort $(wildcard samples/*.gz)))
POLICIES ?= wrr,lb,lard,lard_r
BACKENDS ?= 8
OUT ?= out
JUDGES ?= tls websocket
# SECONDS is a variable of bash, which counts.
FUZZ_SECONDS = $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)

PLIMSOLL := $(CARGO) run $(CARGO_FLAGS) --quiet --release --package plimsoll-cli --bin plimsoll --
# Tests wait more than they compute: twice as many at a time as there are processors.
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# As the tests were built.
TESTED = "$${CARGO_TARGET_DIR:-target}/debug/plimsoll"
# The crates that must do without an operating system.
CORE := --package plimsoll-policy --package plimsoll-cache --package plimsoll-sim

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what a bare Debian 12 with Rust lacks, for all but `bench`; safe to run twice
	@scripts/setup.sh build lint

.PHONY: setup-build setup-lint setup-bench setup-pgo setup-fuzz setup-judge
setup-build setup-lint setup-bench setup-pgo setup-fuzz setup-judge: setup-%:
	@scripts/setup.sh $*

.PHONY: build
build: setup-build ## Build the plimsoll command, optimized
	@pgo/refresh.sh
	$(CARGO) build $(CARGO_FLAGS) --release --package plimsoll-cli

.PHONY: demo
demo: build ## Simulate the bundled sample trace, then compare WRR and LARD/R on live traffic (a minute)
	@test -n '$(SAMPLE)' || { echo 'make demo: no trace in samples/; name one with SAMPLE=FILE' >&2; exit 1; }
	$(PLIMSOLL) simulate '$(SAMPLE)' --policy '$(POLICIES)' --backends '$(BACKENDS)' --out '$(OUT)/demo'
	@test -f '$(OUT)/demo/report.html' || { echo 'make demo: $(OUT)/demo/report.html was not written' >&2; exit 1; }
	@echo
	$(PLIMSOLL) demo --out '$(OUT)/demo-live'
	@echo
	@echo 'Simulation of the sample:  $(abspath $(OUT))/demo/report.html'
	@echo 'Live traffic:              $(abspath $(OUT))/demo-live/report.html'

.PHONY: test
test: setup-build ## Run all tests, and the studies in their quick forms
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test $(CARGO_FLAGS) --workspace
	$(TESTED) reproduce lard --quick --out '$(OUT)/reproduce-lard'
	$(TESTED) reproduce adaptload --quick --out '$(OUT)/reproduce-adaptload'
	$(TESTED) reproduce fine-grain --quick --out '$(OUT)/reproduce-fine-grain'
	$(TESTED) reproduce csld --quick --out '$(OUT)/reproduce-csld'
	$(TESTED) reproduce cloning --quick --out '$(OUT)/reproduce-cloning'
	$(TESTED) reproduce robustness --quick --out '$(OUT)/reproduce-robustness'

.PHONY: lint
lint: setup-lint ## Check format, lints, documentation, dependencies and the repository's own rules
	$(CARGO) fmt --all --check
	@for manifest in benches/*/Cargo.toml fuzz/Cargo.toml; do \
	  $(CARGO) fmt --all --check --manifest-path "$$manifest" && \
	  $(CARGO) metadata $(CARGO_FLAGS) --format-version 1 --manifest-path "$$manifest" >/dev/null || exit 1; \
	done
	$(CARGO) clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc $(CARGO_FLAGS) --workspace --no-deps
	$(CARGO) deny check --hide-inclusion-graph licenses bans sources
	$(CARGO) machete
	$(CARGO) xtask tidy
	@scripts/check-wasm.sh $(CORE)

.PHONY: bench
bench: setup-bench ## Measure speed beside other tools; ROUNDS=n repeats each measurement n times
	benches/run.sh

.PHONY: bench-beside
bench-beside: setup-bench ## Measure speed beside that of the commit BASE, in alternation, as ratios (PARTS='a b' for some)
	@test -n '$(BASE)' || { echo 'make bench-beside: name a commit with BASE=COMMIT' >&2; exit 2; }
	benches/beside.sh '$(BASE)' $(PARTS)

.PHONY: pgo
pgo: setup-pgo ## Make the profile anew by which the front-end is optimized (after changes to it; docs/development.md)
	CARGO='$(CARGO)' pgo/make.sh

.PHONY: faults
faults: setup-bench ## Faults of back-ends and clients, beside HAProxy and nginx (SCENARIOS='a b' for some, ROUNDS=n)
	$(CARGO) build $(CARGO_FLAGS) --release --package plimsoll-cli
	python3 benches/faults/run.py "$${CARGO_TARGET_DIR:-target}/release/plimsoll" $(SCENARIOS)

.PHONY: fuzz
fuzz: setup-fuzz ## Fuzz the parsers of input (TARGET=name for one, SECONDS=n for each; see docs/development.md)
	@scripts/fuzz.sh '$(FUZZ_SECONDS)' $(TARGET)

.PHONY: judge
judge: setup-judge ## What testssl and Autobahn's suite say of TLS and WebSockets (JUDGES='tls websocket')
	$(CARGO) build $(CARGO_FLAGS) --release --package plimsoll-cli
	@for judge in $(JUDGES); do \
	  python3 "benches/judges/$$judge.py" "$${CARGO_TARGET_DIR:-target}/release/plimsoll" || exit 1; \
	done

.PHONY: growth
growth: setup-bench ## Memory and descriptors over a million requests by TLS and HTTP/2
	$(CARGO) build $(CARGO_FLAGS) --release --package plimsoll-cli
	python3 benches/faults/growth.py "$${CARGO_TARGET_DIR:-target}/release/plimsoll"

.PHONY: clean
clean: ## Remove everything that the other targets made in this directory
	$(CARGO) clean
	rm -rf '$(OUT)' benches/target benches/.venv benches/.venv27 fuzz/target fuzz/artifacts
