#!/usr/bin/env bash
# Has cargo compile anew what was compiled with another profile, which it does not see by itself.
#
# Usage: pgo/refresh.sh      called by `make build`, `make bench` and the like
set -euo pipefail
cd "$(dirname "$0")/.."

release=${CARGO_TARGET_DIR:-target}/release
profile=$(cat pgo/rustc.sh pgo/trained pgo/crates pgo/release.profdata | sha256sum)
[[ -r $release/pgo && $(<"$release/pgo") == "$profile" ]] && exit
if [[ -d $release ]]; then
  mapfile -t packages < <(sed 's/_/-/g; s/^/--package=/' pgo/trained)
  cargo clean --quiet --release "${packages[@]}"
fi
mkdir -p "$release"
echo "$profile" >"$release/pgo"
