#!/usr/bin/env bash
# Measures Plimsoll's speed, beside other tools where there are some. Called by `make bench`.
#
# ROUNDS=n in the environment repeats the comparisons with other tools n times (5 unless set). Figures are per
# CPU-second; still, let nothing else run on the machine. Wrong results fail the run, missed goals are only shown.
set -euo pipefail
cd "$(dirname "$0")/.."
export ROUNDS=${ROUNDS:-5}

heading() { printf '\n== %s\n\n' "$*"; }

# Builds first and says nothing unless it fails, so that a build never runs beside a measurement.
example() {
  local package=$1 name=$2
  shift 2
  [[ -f crates/${package#plimsoll-}/examples/$name.rs ]] || return 0
  heading "$@"
  cargo build --locked --quiet --release --package "$package" --example "$name"
  cargo run --locked --quiet --release --package "$package" --example "$name"
}

heading "(a) Join-shortest-queue in Plimsoll, SimPy, nexosim and simcore"
cargo build --locked --quiet --release --manifest-path benches/peers/Cargo.toml --target-dir benches/target
if [[ -f crates/sim/examples/fifo_jsq.rs ]]; then
  cargo build --locked --quiet --release --package plimsoll-sim --example fifo_jsq
fi
[[ -x benches/.venv/bin/python ]] || python3 -m venv benches/.venv
benches/.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement benches/fifo_jsq/requirements.txt
benches/.venv/bin/python benches/fifo_jsq/compare.py

example plimsoll-sim lard_speed "(b) The LARD study: Rice workload, LARD/R, 8 back-ends, Greedy-Dual-Size"

if [[ -x benches/cache/run.sh ]]; then
  heading "(c) Caches alone, beside libCacheSim"
  BENCH_ROUNDS=$ROUNDS benches/cache/run.sh
fi

if [[ -d crates/policy/benches ]]; then
  heading "(d) Nanoseconds per decision of each policy"
  cargo bench --locked --quiet --package plimsoll-policy
fi

example plimsoll-trace parse_speed "(e) Log parsing"
