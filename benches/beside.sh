#!/usr/bin/env bash
# Measures the speed of this checkout beside that of another commit, in alternation. Called by `make bench-beside`.
#
# Usage: benches/beside.sh COMMIT [PART...]      PART: a, b, c, d, d2, e, f or g, as in run.sh; all unless told otherwise
#
# Builds COMMIT in a worktree of its own under benches/target/, which stays for the next time. ROUNDS=n repeats each
# measurement n times (5 unless set, at least 2).
set -euo pipefail
cd "$(dirname "$0")/.."
readonly EXAMPLES=(fifo_jsq lard_speed decision_speed adaptload_speed boundary_speed parse_speed)

(($#)) || { echo "usage: benches/beside.sh COMMIT [PART...]" >&2; exit 2; }
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "beside.sh: there is no commit '$1'" >&2; exit 2; }
shift

# Builds the checkout $1 with the target directory $2, and gathers its programs in the directory $3.
build() {
  local checkout=$1 target=$2 programs=$3
  local release=$target/release name
  (
    cd "$checkout"
    export CARGO_TARGET_DIR=$target
    # Both without a profile: it would fit one of them, at most.
    export RUSTC_WRAPPER=
    cargo build --locked --quiet --release --package plimsoll-sim --package plimsoll-studies --package plimsoll-trace \
      "${EXAMPLES[@]/#/--example=}"
    cargo build --locked --quiet --release --package plimsoll-cli
    cargo build --locked --quiet --release --manifest-path benches/cache/Cargo.toml
    cargo build --locked --quiet --release --manifest-path benches/handoff/Cargo.toml
  )
  mkdir -p "$programs"
  for name in "${EXAMPLES[@]}"; do
    cp "$release/examples/$name" "$programs/"
  done
  cp "$release/plimsoll" "$release/plimsoll-bench-cache" "$release/plimsoll-bench-handoff" "$programs/"
}

here=$PWD
beside=$here/benches/target/beside
worktree=$beside/$commit/checkout
[[ -d $worktree ]] || git worktree add --quiet --detach "$worktree" "$commit"
build "$worktree" "$beside/$commit/target" "$beside/$commit/programs"
build "$here" "$here/benches/target" "$beside/new"

logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT
for log in samples/departmental.log.gz ../shared/traces/nasa_1995_excerpt.log.gz; do
  [[ -f $log ]] || continue
  name=${log##*/}
  python3 benches/lengthen_log.py "$log" 2000000 >"$logs/${name%.gz}"
done
LOGS=$(echo "$logs"/*.log) python3 benches/beside.py "$beside/$commit/programs" "$beside/new" "$@"
