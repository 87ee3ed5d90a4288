#!/bin/sh
# Plimsoll's caches beside libCacheSim's on a Zipf trace of 10 million requests: equal misses, and
# requests per CPU-second. Takes no arguments. Installs libCacheSim into the Python environment
# $BENCH_VENV (default benches/.venv) and builds into $CARGO_TARGET_DIR (default benches/target).
# BENCH_ROUNDS sets the number of rounds (default 5).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${BENCH_VENV:-$here/../.venv}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/../target}"

[ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2
"$venv/bin/python" -c 'import importlib.metadata as m; assert m.version("libcachesim") == "0.3.5"' 2>/dev/null ||
    "$venv/bin/python" -m pip install --quiet libcachesim==0.3.5 >&2
cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml"

ours=$CARGO_TARGET_DIR/release/plimsoll-bench-cache
# The generator is part of the program, so a new program gets a new trace.
trace=$CARGO_TARGET_DIR/zipf-1e7.oracleGeneral
if [ ! -f "$trace" ] || [ "$ours" -nt "$trace" ]; then
    "$ours" synth "$trace.part"
    mv "$trace.part" "$trace"
fi
exec "$venv/bin/python" "$here/compare.py" "$ours" "$trace" "${BENCH_ROUNDS:-5}"
