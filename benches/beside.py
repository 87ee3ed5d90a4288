"""Measures two builds of Plimsoll in alternation, and prints the new one's figures as ratios to the old one's.

Usage: beside.py OLD NEW [PART...]     OLD, NEW: directories with the programs of a build, see `beside.sh`
                                       PART: a, b, c, d, d2, e, f or g, as in `run.sh`; all of them unless told otherwise

Within a round each program runs once, the two builds in turn, and each round begins with the other build. A ratio is
formed within a round; its median, least and greatest over the rounds are shown. A ratio above 1 means that the new build
needs more (time, memory) per unit of work. Exit status: 0 unless a program fails.

ROUNDS (5, at least 2) in the environment sets the number of rounds, DECISIONS (2,000,000) that of the decisions for a
line of part (d), SECONDS (2) the time of one measurement of parts (f) and (g); LOGS names the logs of part (e). Part (g)
needs root.
"""

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import alone

sys.path.insert(0, str(pathlib.Path(__file__).parent / "proxy"))
import bench  # noqa: E402  proxy/bench.py

SLOWER = 1.03
CACHE_BYTES = 1_000_000_000
FIFO_REQUESTS = 10_000_000
PORTS = {"round_robin": (9641, 9642), "lard_r": (9643, 9644)}
HANDOFF_LINE = re.compile(r"^(proxy|handoff)(.*?)\s+([\d.]+) us ")
HANDOFF_SIZE = re.compile(r"^(\d+ (?:B|KB|MB))\s+CPU/req")


class Ratios:
    """Costs of the two builds, by what was measured, a pair per round."""

    def __init__(self):
        self.pairs = {}

    def add(self, old, new):
        """Adds a round: costs by name, of both builds."""
        for name in old:
            self.pairs.setdefault(name, []).append((old[name], new[name]))

    def show(self, unit):
        """Prints a line for each figure."""
        for name, pairs in self.pairs.items():
            olds, news = zip(*pairs, strict=True)
            ratios = [new / old for old, new in pairs]
            ratio = statistics.median(ratios)
            note = f"  more than {SLOWER:g}" if ratio > SLOWER else ""
            print(
                f"  {name:<46}{statistics.median(olds):>12.4g}{statistics.median(news):>12.4g} {unit:<8}"
                f"{ratio:>7.3f} ({min(ratios):.3f} .. {max(ratios):.3f}){note}",
                flush=True,
            )


def by_turns(measure, unit):
    """Calls `measure` for both builds in each round, and prints the ratios."""
    ratios = Ratios()
    for number in range(alone.rounds()):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        costs = {build: measure(build) for build in order}
        ratios.add(costs[0], costs[1])
    ratios.show(unit)


def part_a(programs):
    """CPU time per simulated request under join-shortest-queue."""

    def measure(build):
        (line,) = alone.run([programs[build] / "fifo_jsq", str(FIFO_REQUESTS), "1"])
        return {"(a) fifo, least_connections, 16 back-ends": 1e9 / line["requests_per_cpu_s"]}

    by_turns(measure, "ns/req")


def part_b(programs):
    """CPU time and memory of the LARD study's simulation."""

    def measure(build):
        costs = {}
        for multiple in alone.STUDY_MULTIPLES:
            (line,) = alone.run([programs[build] / "lard_speed", "lard_r", "8", str(multiple)])
            costs[f"(b) LARD study, {line['requests']:,} requests"] = 1e9 / line["requests_per_cpu_s"]
        return costs

    by_turns(measure, "ns/req")


def part_c(programs):
    """CPU time per request of the caches, over a trace of 10 million requests."""
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / "zipf.oracleGeneral"
        subprocess.run([programs[0] / "plimsoll-bench-cache", "synth", trace], check=True)

        def measure(build):
            costs = {}
            for cache in ("lru", "gdsf"):
                command = [programs[build] / "plimsoll-bench-cache", "run", cache, str(CACHE_BYTES), trace]
                out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                costs[f"(c) {cache}"] = 1e9 / float(out.split()[-1])
            return costs

        by_turns(measure, "ns/req")


def part_d(programs):
    """Nanoseconds per decision."""

    def measure(build):
        return {
            f"(d) {line['policy']}, {line['popularity']}, {line['backends']}": line["ns_per_decision"]
            for line in alone.run([programs[build] / "decision_speed", *os.environ.get("DECISIONS", "").split()])
        }

    by_turns(measure, "ns")


def part_d2(programs):
    """The AdaptLoad study's day, and its policy."""

    def measure(build):
        (day,) = alone.run([programs[build] / "adaptload_speed"])
        adjustment, *decided = alone.run([programs[build] / "boundary_speed"])
        return {
            "(d2) AdaptLoad study, ns per request": 1e9 / day["requests_per_cpu_s"],
            "(d2) boundaries, µs": adjustment["us_per_adjustment"],
        } | {f"(d2) decision, {line['backends']} back-ends, ns": line["ns_per_decision"] for line in decided}

    by_turns(measure, "")


def part_e(programs):
    """CPU time per line of a log."""
    logs = os.environ.get("LOGS", "").split()
    if not logs:
        print("  (e) left out: LOGS in the environment names no log")
        return

    def measure(build):
        return {
            f"(e) {pathlib.Path(log).name}, {line['step']}": 1e9 / line["lines_per_cpu_s"]
            for log in logs
            for line in alone.run([programs[build] / "parse_speed", log])
        }

    by_turns(measure, "ns/line")


def start_proxies(programs, directory):
    """Both builds as front-ends of the same back-ends, by policy and build."""
    backends = bench.start_backends(directory)
    tables = bench.backend_tables()
    proxies = {}
    for policy, ports in PORTS.items():
        for build, port in enumerate(ports):
            own = directory / str(build)
            own.mkdir(exist_ok=True)
            config = own / f"{policy}.toml"
            config.write_text(
                bench.PLIMSOLL.format(backends=tables, port=port, policy=policy, d=own, admin=port + 10)
            )
            command = [programs[build] / "plimsoll", "balance", "--no-watch", "--config", config]
            proxies[policy, build] = bench.Proxy(f"{policy}-{build}", [str(word) for word in command], port)
    return backends, proxies


def part_f(programs):
    """CPU time per request and memory per idle connection of the live front-end."""
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        backends, proxies = start_proxies(programs, directory)
        stack.callback(backends.wait)
        stack.callback(backends.terminate)
        for proxy in proxies.values():
            stack.callback(proxy.stop)
        for proxy in proxies.values():
            proxy.wait_until_ready()

        def measure(build):
            return {
                f"(f) {policy}, {label}, {connections} connections": bench.cpu_per_request_us(
                    proxies[policy, build], size_bytes, connections
                )
                for policy in PORTS
                for label, size_bytes in bench.SIZES.items()
                for connections in bench.CONNECTIONS
            }

        by_turns(measure, "µs/req")
        ratios = Ratios()
        idle = {key: bench.measure_idle(proxy) for key, proxy in proxies.items()}
        for policy in PORTS:
            name = f"(f) {policy}, idle connection"
            ratios.add({name: idle[policy, 0]}, {name: idle[policy, 1]})
        ratios.show("bytes")


def part_g(programs):
    """CPU time of the front-end's node per request, handed off and by proxy."""
    environment = os.environ | {"ROUNDS": "1"}

    def measure(build):
        # The measuring program is the new build's for both, so that both are measured alike.
        command = [programs[1] / "plimsoll-bench-handoff", programs[build] / "plimsoll"]
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
        costs, size = {}, ""
        for line in out.splitlines():
            if found := HANDOFF_SIZE.match(line):
                size = found.group(1)
            elif found := HANDOFF_LINE.match(line):
                costs[f"(g) {found.group(1)}{found.group(2)}, {size}"] = float(found.group(3))
        if not costs:
            sys.exit(f"beside: no figures in what {command[0]} printed")
        return costs

    by_turns(measure, "µs/req")


PARTS = {
    "a": part_a,
    "b": part_b,
    "c": part_c,
    "d": part_d,
    "d2": part_d2,
    "e": part_e,
    "f": part_f,
    "g": part_g,
}


def main():
    if len(sys.argv) < 3 or any(part not in PARTS for part in sys.argv[3:]):
        sys.exit(__doc__)
    programs = [pathlib.Path(directory).resolve() for directory in sys.argv[1:3]]
    print(f"  {'':<46}{'old':>12}{'new':>12} {'':<8}{'ratio':>7} (min .. max)")
    for part in sys.argv[3:] or PARTS:
        began_s = time.monotonic()
        PARTS[part](programs)
        print(f"  part {part} took {time.monotonic() - began_s:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
