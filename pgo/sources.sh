#!/bin/sh
# Prints the hash of a crate's sources, without files of tests.
#
# Usage: pgo/sources.sh DIRECTORY
set -eu
find "$1" -type f -name '*.rs' ! -name tests.rs ! -path '*/tests/*' | LC_ALL=C sort | xargs cat | sha256sum | cut -c 1-16
