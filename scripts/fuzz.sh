#!/usr/bin/env bash
# Runs fuzz targets, one after the other, and says of each how many inputs it took.
#
# Usage: scripts/fuzz.sh SECONDS [TARGET...]      all targets without one
#
# Inputs that are found stay outside the repository (fuzz/target/found): `cargo fuzz cmin` says which of them are worth keeping. One
# that makes a target fail is written below fuzz/artifacts, and ends the run.
set -euo pipefail

seconds=${1:?give the seconds for each target}
shift
cd "$(dirname "$0")/../fuzz"

toolchain=()
if command -v rustup >/dev/null && rustup toolchain list | grep -q '^nightly'; then
  toolchain=(+nightly)
else
  export RUSTC_BOOTSTRAP=1
fi
# Nearly all is safe Rust, in which AddressSanitizer finds nothing that the checks of overflow and bounds do not.
options=(--sanitizer "${SANITIZER:-none}")

names=("$@")
cargo "${toolchain[@]}" fuzz build "${options[@]}" "${names[@]:0:1}"
if ((${#names[@]} == 0)); then
  mapfile -t names < <(cargo "${toolchain[@]}" fuzz list)
fi
for name in "${names[@]}"; do
  found="target/found/$name"
  mkdir -p "$found"
  log=$(mktemp)
  status=0
  nice cargo "${toolchain[@]}" fuzz run "${options[@]}" "$name" "$found" "corpus/$name" -- \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 >"$log" 2>&1 || status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((status)); then
    tail -n 40 "$log" >&2
    echo "$name: FAILED after ${executions:-?} inputs; the input is below fuzz/artifacts/$name" >&2
    exit 1
  fi
  rm "$log"
  echo "$name: $executions inputs in $seconds s, nothing found"
done
