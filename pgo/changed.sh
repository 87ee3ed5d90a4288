#!/usr/bin/env bash
# Names what has changed since the profile was made: crates of this workspace, which are compiled without it, and the compiler or the
# versions of libraries, with which some or all may be.
#
# Usage: pgo/changed.sh
set -euo pipefail
cd "$(dirname "$0")/.."

while read -r name _ sources; do
  directory=crates/${name#plimsoll_}/src
  [[ $sources == - || $sources == "$(pgo/sources.sh "$directory")" ]] || echo "$name"
done <pgo/crates
pgo/versions.sh | LC_ALL=C comm -13 pgo/versions - | sed 's/ .*//'
