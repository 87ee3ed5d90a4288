#!/bin/sh
# Prints what decides whether a profile fits, beside sources: a line for the compiler, and one for the versions of all crates.
#
# Usage: pgo/versions.sh
set -eu
cd "$(dirname "$0")/.."
echo "Cargo.lock $(sha256sum <Cargo.lock | cut -c 1-16)"
echo "rustc $(rustc -V | sed 's/^rustc //')"
