#!/usr/bin/env bash
# Measures Plimsoll's speed, beside other tools where there are some. Called by `make bench`.
#
# ROUNDS=n in the environment repeats every measurement n times (5 unless set, at least 2); medians are shown. Figures
# but those of (h) are per CPU-second; still, let nothing else run on the machine, because caches and memory are shared.
# Wrong results fail the run, missed goals are only shown.
set -euo pipefail
cd "$(dirname "$0")/.."
export ROUNDS=${ROUNDS:-5}

heading() { printf '\n== %s\n\n' "$*"; }

machine() {
  local model
  model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
  echo "$(nproc) cores, ${model:-unknown processor}; load average $(cut -d ' ' -f 1-3 /proc/loadavg); $ROUNDS rounds"
}

# Which crates were compiled without the profile that a release is optimized by.
unprofiled() {
  local changed
  changed=$(pgo/changed.sh)
  [[ -z $changed ]] || echo "changed since the profile was made, so slower than after \`make pgo\`: ${changed//$'\n'/, }"
}

# Builds the named examples and prints a line "NAME PROGRAM" for each.
build_examples() {
  cargo build --locked --quiet --release --message-format json-render-diagnostics \
    --package plimsoll-sim --package plimsoll-sniffer --package plimsoll-studies --package plimsoll-trace --package plimsoll-testbed \
    --package plimsoll-agent --package plimsoll-balancer --package plimsoll-classes --package plimsoll-datapath --package plimsoll-experiments \
    "${@/#/--example=}" |
    python3 -c '
import json, sys
for message in map(json.loads, sys.stdin):
    if message["reason"] == "compiler-artifact" and message["target"]["kind"] == ["example"]:
        print(message["target"]["name"], message["executable"])
'
}

program() {
  local name path
  while read -r name path; do
    [[ $name == "$1" ]] && echo "$path" && return
  done <<<"$programs"
  echo "run.sh: $1 was not built" >&2
  return 1
}

pgo/refresh.sh
# Everything is built first: a build beside a measurement would disturb it.
programs=$(build_examples fifo_jsq polling_speed apache_speed lard_speed decision_speed adaptload_speed boundary_speed parse_speed \
  overload inquiry_speed bare_polls sniff_speed class_speed switch_speed clone_speed bare_http2)
fifo_jsq=$(program fifo_jsq)
polling_speed=$(program polling_speed)
apache_speed=$(program apache_speed)
lard_speed=$(program lard_speed)
decision_speed=$(program decision_speed)
adaptload_speed=$(program adaptload_speed)
boundary_speed=$(program boundary_speed)
parse_speed=$(program parse_speed)
overload=$(program overload)
inquiry_speed=$(program inquiry_speed)
bare_polls=$(program bare_polls)
sniff_speed=$(program sniff_speed)
class_speed=$(program class_speed)
switch_speed=$(program switch_speed)
clone_speed=$(program clone_speed)
cargo build --locked --quiet --release --package plimsoll-cli
cargo build --locked --quiet --release --manifest-path benches/peers/Cargo.toml --target-dir benches/target
cargo build --locked --quiet --release --manifest-path benches/cache/Cargo.toml --target-dir benches/target
cargo build --locked --quiet --release --manifest-path benches/handoff/Cargo.toml --target-dir benches/target
cargo build --locked --quiet --release --manifest-path benches/client/Cargo.toml --target-dir benches/target
[[ -x benches/.venv/bin/python ]] || python3 -m venv benches/.venv
benches/.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement benches/fifo_jsq/requirements.txt

logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT

machine
unprofiled

heading "(a) Join-shortest-queue in Plimsoll, SimPy, nexosim and simcore"
benches/.venv/bin/python benches/fifo_jsq/compare.py "$fifo_jsq"

heading "(a2) Random polling, d = 2, with network delays and discarded answers"
python3 benches/alone.py polling "$polling_speed"

heading "(a3) Connections to 16 Apache back-ends, round robin and least connections"
python3 benches/alone.py apache "$apache_speed"

heading "(b) The LARD study: Rice workload, LARD/R, 8 back-ends, Greedy-Dual-Size"
python3 benches/alone.py study "$lard_speed"

heading "(c) Caches alone, beside libCacheSim"
CARGO_TARGET_DIR=benches/target BENCH_VENV=benches/.venv BENCH_ROUNDS=$ROUNDS benches/cache/run.sh

heading "(d) Nanoseconds per decision of each policy, 1,000,000 targets"
python3 benches/alone.py decisions "$decision_speed"

heading "(d1) CSLD: sniffing a request with 1,000 patterns and 20,000 documents, estimating its load, choosing for a connection"
python3 benches/alone.py sniffing "$sniff_speed"

heading "(d2) AdaptLoad: a day of 38.8 million requests on four back-ends, and what the policy costs"
python3 benches/alone.py adaptload "$adaptload_speed" "$boundary_speed"

heading "(classes) Finding the class of a request, in tables of 1,000 patterns"
python3 benches/alone.py classes "$class_speed"

heading "(e) Log parsing"
# The bundled trace, which is always there, and a real log where it lies beside the repository.
for log in samples/departmental.log.gz ../shared/traces/nasa_1995_excerpt.log.gz; do
  [[ -f $log ]] || continue
  name=${log##*/}
  python3 benches/lengthen_log.py "$log" 2000000 >"$logs/${name%.gz}"
done
python3 benches/alone.py parsing "$parse_speed" "$logs"/*.log

heading "(f) The live front-end beside HAProxy and nginx"
python3 benches/proxy/bench.py "${CARGO_TARGET_DIR:-target}/release/plimsoll"

heading "(tls) The live front-end under TLS beside HAProxy and nginx"
python3 benches/proxy/tls.py "${CARGO_TARGET_DIR:-target}/release/plimsoll"

heading "(h2) The live front-end for HTTP/2 beside HAProxy and nginx"
python3 benches/proxy/http2.py "${CARGO_TARGET_DIR:-target}/release/plimsoll"

heading "(g) Handing connections off, beside HAProxy and nginx as proxies"
if ((EUID == 0)); then
  benches/target/release/plimsoll-bench-handoff "${CARGO_TARGET_DIR:-target}/release/plimsoll"
else
  echo "left out: networks of namespaces need root"
fi

heading "(direct) Connections distributed at layer 4, beside HAProxy in TCP mode and address translation"
if ((EUID == 0)); then
  benches/target/release/plimsoll-bench-handoff "${CARGO_TARGET_DIR:-target}/release/plimsoll" direct
  "$switch_speed" 1000000 "$ROUNDS"
else
  echo "left out: networks of namespaces and packet programs need root"
fi

heading "(clone) Socket Cloning, beside direct service"
if ((EUID == 0)); then
  "$clone_speed"
else
  echo "left out: networks of namespaces and packet programs need root"
fi

heading "(h) The front-end under overload, and with back-ends that fail"
"$overload" "${CARGO_TARGET_DIR:-target}/release/plimsoll" "$ROUNDS"

heading "(agent) Load inquiries, beside a bare UDP echo"
python3 benches/alone.py inquiries "$inquiry_speed" "${CARGO_TARGET_DIR:-target}/release/plimsoll"

heading "(polls) The live front-end with polls, d = 2, beside its own counts and bare datagrams"
python3 benches/polls/bench.py "${CARGO_TARGET_DIR:-target}/release/plimsoll" "$bare_polls"

heading "(client) Calls of the client library, beside tower's p2c with peak EWMA"
python3 benches/alone.py calls benches/target/release/plimsoll-bench-client
if command -v go >/dev/null; then
  (cd benches/client/grpc && go build -o ../../target/release/plimsoll-bench-grpc .)
  python3 benches/alone.py calls benches/target/release/plimsoll-bench-grpc
else
  echo 'gRPC is not measured: Go is not installed'
fi

echo
machine
