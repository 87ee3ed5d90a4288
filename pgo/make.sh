#!/usr/bin/env bash
# Makes the profile by which a release is optimized: where the time of a front-end goes that has the traffic of train.py.
#
# Usage: pgo/make.sh      called by `make pgo`; ten minutes on two cores
#
# Writes pgo/release.profdata; pgo/crates: the crates that it belongs to, each with the hash that cargo gives it (of its version, its
# dependencies and features, the compiler) and that of its sources; and pgo/versions, by which changed.sh tells that something is not
# as it was. What rustc.sh finds in pgo/crates is compiled with the profile.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}/pgo
profdata=$(rustc --print target-libdir)/../bin/llvm-profdata

# Neither another wrapper nor flags of somebody's own: the profile is that of an ordinary build.
unset RUSTC_WRAPPER CARGO_BUILD_RUSTC_WRAPPER RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
# From scratch: what is not compiled now would not be in the list.
rm -rf "$target"
mkdir -p "$target/training"
PGO_TRAINING=$(realpath "$target/training")
export PGO_TRAINING
"${CARGO:-cargo}" build --locked --release --package plimsoll-cli --target-dir "$target"
LC_ALL=C sort --unique "$PGO_TRAINING/crates" >"$target/crates"
# Build scripts and macros have counted, too.
rm -rf "$PGO_TRAINING/counts"
python3 pgo/train.py "$target/release/plimsoll"
"$profdata" merge --sparse --output "$target/release.profdata" "$PGO_TRAINING/counts"

mv "$target/release.profdata" "$target/crates" pgo/
pgo/versions.sh >pgo/versions
echo "pgo/release.profdata: $(stat --format %s pgo/release.profdata) bytes for $(wc -l <pgo/crates) crates"
