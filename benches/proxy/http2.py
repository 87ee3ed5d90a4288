"""CPU time of Plimsoll's front-end for HTTP/2 under TLS beside HAProxy and nginx.

Usage: http2.py PLIMSOLL        PLIMSOLL: the optimized program

As tls.py, whose certificate, proxies and way of measuring it uses; back-ends speak HTTP/1.1 without TLS. The load is h2load: 10 connections with
100 streams under way on each. Wrong answers fail the run, missed goals are only shown. `bare` is the least that a front-end of the crates that
Plimsoll is made of can do (crates/balancer/examples/bare_http2.rs, in `examples` beside PLIMSOLL; left out where it is not built).

ROUNDS (5) and SECONDS (2) in the environment set the number of rounds and the time of one measurement.
"""

import pathlib
import re
import subprocess
import sys

import bench
import tls

IDLE_GOAL_BYTES = 24_576
BARE_PORT = 9634
CONNECTIONS = 10
STREAMS = 100
# The preface, empty settings, and GET of https://bench/100.
FIRST = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    b"\x00\x00\x0f\x01\x05\x00\x00\x00\x01\x82\x87\x44\x04/100\x41\x05bench"
)


def streams(size_bytes):
    """A load of requests on streams; how many there were."""

    def load(proxy):
        command = ["taskset", "-c", "1", "h2load", "-c", str(CONNECTIONS), "-m", str(STREAMS)]
        command += ["-D", str(bench.SECONDS), proxy.url(size_bytes)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        counts = re.search(r"(\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed", out)
        codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out)
        if not counts or not codes or int(counts[3]) == 0 or any(int(codes[n]) for n in (2, 3, 4)):
            sys.exit(f"{proxy.name}: wrong answers\n{out}")
        return int(counts[3])

    return load


def ask(client):
    client.sendall(FIRST)
    while b"x" * 100 not in client.recv(4096):
        pass


LOADS = {"100 B, 100 streams": streams(100), "8 KB, 100 streams": streams(8192), "100 KB, 100 streams": streams(102_400)}


def measure_all(proxies):
    # Memory first: what a load leaves behind would be used again.
    tls.measure_idle(proxies, IDLE_GOAL_BYTES, ask, "h2")
    print("\nCPU time of the proxy per request\n")
    tls.measure(proxies, LOADS)


def start(plimsoll, d):
    backends, proxies = tls.starter(" ssl http2", "h2")(plimsoll, d)
    bare = pathlib.Path(plimsoll).parent / "examples" / "bare_http2"
    if bare.exists():
        addresses = [f"127.0.0.1:{port}" for port in bench.BACKENDS]
        command = [str(bare), str(BARE_PORT), f"{d}/site.pem", f"{d}/site.key", *addresses]
        proxies.append(tls.TlsProxy("bare", command, BARE_PORT))
    return backends, proxies


if __name__ == "__main__":
    bench.run(__doc__, start, measure_all)
