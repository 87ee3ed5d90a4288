#!/usr/bin/env bash
# Measures Plimsoll's speed, beside other tools where there are some. Called by `make bench`.
#
# ROUNDS=n in the environment repeats the comparisons with other tools n times (5 unless set). Figures are per
# CPU-second; still, let nothing else run on the machine. Wrong results fail the run, missed goals are only shown.
set -euo pipefail
cd "$(dirname "$0")/.."
export ROUNDS=${ROUNDS:-5}

heading() { printf '\n== %s\n\n' "$*"; }

has_example() { [[ -f crates/${1#plimsoll-}/examples/$2.rs ]]; }

# Builds a package's example and says nothing unless that fails; never beside a measurement.
build_example() { cargo build --locked --quiet --release --package "$1" --example "$2"; }

run_example() {
  local package=$1 name=$2
  shift 2
  cargo run --locked --quiet --release --package "$package" --example "$name" -- "$@"
}

heading "(a) Join-shortest-queue in Plimsoll, SimPy, nexosim and simcore"
cargo build --locked --quiet --release --manifest-path benches/peers/Cargo.toml --target-dir benches/target
if has_example plimsoll-sim fifo_jsq; then
  build_example plimsoll-sim fifo_jsq
fi
[[ -x benches/.venv/bin/python ]] || python3 -m venv benches/.venv
benches/.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement benches/fifo_jsq/requirements.txt
benches/.venv/bin/python benches/fifo_jsq/compare.py

if has_example plimsoll-sim lard_speed; then
  heading "(b) The LARD study: Rice workload, LARD/R, 8 back-ends, Greedy-Dual-Size"
  build_example plimsoll-sim lard_speed
  run_example plimsoll-sim lard_speed
fi

if [[ -x benches/cache/run.sh ]]; then
  heading "(c) Caches alone, beside libCacheSim"
  BENCH_ROUNDS=$ROUNDS benches/cache/run.sh
fi

if [[ -d crates/policy/benches ]]; then
  heading "(d) Nanoseconds per decision of each policy"
  cargo bench --locked --quiet --package plimsoll-policy
fi

if has_example plimsoll-trace parse_speed; then
  heading "(e) Log parsing"
  build_example plimsoll-trace parse_speed
  # The bundled trace, and two larger logs where they lie beside the repository.
  for log in samples/*.gz ../shared/traces/{nasa_1995_excerpt,apache_combined_2015}.log.gz; do
    [[ -f $log ]] || continue
    echo "${log##*/}"
    run_example plimsoll-trace parse_speed "$log"
  done
fi
