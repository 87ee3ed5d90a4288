"""Runs the join-shortest-queue programs in turn and compares speed and mean response time; see README.md.

Usage: compare.py PLIMSOLL     in the root of the repository, after benches/run.sh has built the programs;
                               PLIMSOLL is the built example fifo_jsq
ROUNDS in the environment says how often each program runs (5 unless set, at least 2).
Exit status: 0 unless a program fails or two mean response times differ by more than chance allows.
"""

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

PEERS = "benches/target/release/"
SIMPY = ["benches/.venv/bin/python", "benches/fifo_jsq/simpy_fifo.py"]

# Two-sided 99.9 % quantiles of Student's distribution; between two entries the one with fewer degrees of freedom.
STUDENT = {
    1: 636.62, 2: 31.60, 3: 12.92, 4: 8.61, 5: 6.87, 6: 5.96, 7: 5.41, 8: 5.04, 9: 4.78, 10: 4.59, 12: 4.32, 15: 4.07,
    20: 3.85, 30: 3.65, 60: 3.46, 120: 3.37,
}  # fmt: skip


@dataclass
class Tool:
    """A program to measure, with what it yielded."""

    name: str
    command: list
    requests: int
    # How many times as fast Plimsoll should be; None where there is no goal.
    goal: float | None = None
    means_s: list = field(default_factory=list)
    rates: list = field(default_factory=list)

    def run(self, seed):
        """Runs the program once and keeps its result."""
        command = [*self.command, str(self.requests), str(seed)]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if process.returncode != 0:
            sys.exit(f"compare: {self.name} failed with status {process.returncode}: {' '.join(command)}")
        result = json.loads(process.stdout)
        if result["requests"] != self.requests:
            sys.exit(f"compare: {self.name} simulated {result['requests']} requests where {self.requests} were asked for")
        self.means_s.append(result["mean_response_s"])
        self.rates.append(result["requests_per_cpu_s"])

    def mean_s(self):
        """Mean response time in seconds over all runs."""
        return statistics.fmean(self.means_s)

    def rate(self):
        """Median of requests per CPU-second."""
        return statistics.median(self.rates)


def tools(own):
    """The programs, Plimsoll's first."""
    return [
        Tool("plimsoll", [own], 5_000_000),
        Tool("simcore usual", [PEERS + "simcore-fifo", "usual"], 2_000_000, 1.5),
        Tool("nexosim usual", [PEERS + "nexosim-fifo", "usual"], 2_000_000, 5),
        Tool("simpy usual", [*SIMPY, "usual"], 500_000, 60),
        Tool("simcore lean", [PEERS + "simcore-fifo", "lean"], 2_000_000),
        Tool("nexosim lean", [PEERS + "nexosim-fifo", "lean"], 2_000_000),
        Tool("simpy lean", [*SIMPY, "lean"], 500_000),
    ]


def student(freedom):
    """The two-sided 99.9 % quantile for so many degrees of freedom, or a larger one."""
    return STUDENT[max(known for known in STUDENT if known <= freedom)]


def standard_errors_s(measured):
    """For each tool the standard error of its mean in seconds, and their degrees of freedom (see README.md)."""
    squares = sum(t.requests * (m - t.mean_s()) ** 2 for t in measured for m in t.means_s)
    freedom = sum(len(t.means_s) - 1 for t in measured)
    variance = squares / freedom
    return {t.name: math.sqrt(variance / (t.requests * len(t.means_s))) for t in measured}, freedom


def print_table(measured, errors_s, quantile):
    """Prints a line per tool."""
    own = measured[0]
    print(f"{'tool':<13} {'requests':>10} {'mean response, s':>18} {'requests/CPU-s':>15} {'min .. max':>25}", end="")
    print(f" {'Plimsoll/tool':>14}  goal")
    for tool in measured:
        mean = f"{tool.mean_s():.4f} ± {quantile * errors_s[tool.name]:.4f}"
        spread = f"{min(tool.rates):,.0f} .. {max(tool.rates):,.0f}"
        line = f"{tool.name:<13} {tool.requests:>10,} {mean:>18} {tool.rate():>15,.0f} {spread:>25}"
        if tool is not own:
            ratio = own.rate() / tool.rate()
            line += f" {ratio:>14.2f}"
            if tool.goal:
                line += f"  {tool.goal:g}: {'met' if ratio >= tool.goal else 'NOT MET'}"
        print(line)


def main():
    """Measures, prints, checks."""
    rounds = os.environ.get("ROUNDS", "5")
    if not rounds.isdecimal() or int(rounds) < 2:
        sys.exit(f"compare: ROUNDS is '{rounds}'; give a whole number of at least 2")
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    measured = tools(sys.argv[1])
    for number in range(int(rounds)):
        for index, tool in enumerate(measured):
            tool.run(1000 * (number + 1) + index)
    errors_s, freedom = standard_errors_s(measured)
    quantile = student(freedom)
    print(f"Join-shortest-queue, 16 FIFO back-ends, utilization 0.9; {rounds} rounds; ± is a 99.9 % interval")
    print_table(measured, errors_s, quantile)
    differ = 0
    for a, b in itertools.combinations(measured, 2):
        allowed_s = quantile * math.hypot(errors_s[a.name], errors_s[b.name])
        if abs(a.mean_s() - b.mean_s()) > allowed_s:
            differ += 1
            print(f"{a.name} and {b.name} differ by {abs(a.mean_s() - b.mean_s()):.4f} s; chance allows {allowed_s:.4f} s")
    if differ:
        sys.exit(f"compare: {differ} pairs of tools do not simulate the same model")
    print("The mean response times of all tools agree.")


if __name__ == "__main__":
    main()
