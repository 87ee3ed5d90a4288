"""Faults of back-ends and clients, with Plimsoll, HAProxy and nginx in front of the same back-ends, one after the other.

Usage: run.py PLIMSOLL [SCENARIO…]        PLIMSOLL: the optimized program

ROUNDS=n in the environment repeats each scenario n times (1); medians are shown, and the largest number of failures. All
traffic stays on the loopback interface, ports 9711 to 9720. Every load is bounded in count and time.
"""

import asyncio
import os
import statistics
import sys
import tempfile

import front_ends
import scenarios

ROUNDS = int(os.environ.get("ROUNDS", "1"))
ONLY = os.environ.get("FRONT_ENDS")


class Maker:
    """Makes the front-end of this name."""

    port = front_ends.PORT

    def __init__(self, name, plimsoll):
        self.name, self.plimsoll = name, plimsoll

    def __call__(self, **options):
        self.directory = tempfile.TemporaryDirectory()
        return front_ends.FrontEnd(self.name, self.plimsoll, self.directory.name, **options)


def shown(key, values):
    if isinstance(values[0], dict):
        return ", ".join(f"{status} x {n}" for of_round in values for status, n in of_round.items())
    value = max(values) if "failed" in key else statistics.median(values)
    if value != value:
        return "none"
    return f"{value:.0f}" if value == int(value) or value >= 100 else f"{value:.2f}"


def main(plimsoll, chosen):
    by_name = {scenario.__name__: scenario for scenario in scenarios.ALL}
    for name in chosen:
        if name not in by_name:
            sys.exit(f"run.py: there is no scenario `{name}`; there are {', '.join(by_name)}")
    names = ONLY.split(",") if ONLY else front_ends.names()
    width = max(map(len, names))
    for scenario in [by_name[name] for name in chosen] or scenarios.ALL:
        print(f"\n{scenario.__name__}: {' '.join((scenario.__doc__ or '').split())}", flush=True)
        for name in names:
            rounds = [asyncio.run(scenario(Maker(name, plimsoll))) for _ in range(ROUNDS)]
            figures = {key: shown(key, [r[key] for r in rounds]) for key in rounds[0]}
            print(f"  {name:{width}}  {', '.join(f'{k}: {v}' for k, v in figures.items() if v)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
