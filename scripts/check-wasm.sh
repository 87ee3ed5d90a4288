#!/usr/bin/env bash
# Checks that the deterministic core compiles to WebAssembly, which has no clock, thread, file or socket: what reaches
# for one of them through a dependency fails here.
#
# Usage: scripts/check-wasm.sh --package NAME...
#
# Where the compiler lacks the target (a Rust without rustup, or no way to fetch it) the check is skipped with a
# message; `make setup` tries to install it.
set -euo pipefail

target=wasm32-unknown-unknown
libraries=$(rustc --print target-libdir --target "$target")
if ! compgen -G "$libraries/libcore-*.rlib" >/dev/null; then
  echo "check-wasm: skipped, the target $target is not installed (rustup target add $target)" >&2
  exit 0
fi
exec "${CARGO:-cargo}" check --locked --target "$target" "$@"
