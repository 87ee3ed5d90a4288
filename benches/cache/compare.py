"""Runs Plimsoll and libCacheSim alternately over one trace and prints them side by side.

    compare.py PLIMSOLL TRACE ROUNDS

Every run is a process of its own, on one core. Both count CPU time (user and system) from opening
the trace to the last request: reading the same oracleGeneral file, building the cache, and every
request. libCacheSim runs natively throughout, from its reader to its cache; loading Python is not
counted. Its hash table has a fixed number of buckets, 2^24 unless told otherwise, which costs it
cache misses; so for LRU it is also run with 2^19, the best for this trace. (For GDSF the ordered
set outweighs the hash table.)

Exits with 1 if the counts of misses differ.
"""

import pathlib
import statistics
import subprocess
import sys

# What the ratio should reach at least.
GOAL = 2.0
CAPACITY_BYTES = 1_000_000_000
# Cache and the peer's number of buckets, as a power of two.
CASES = (("lru", 24), ("lru", 19), ("gdsf", 24))


def measure(command):
    """One run: requests, misses, requests per CPU-second."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    _, requests, misses, _, requests_per_s = done.stdout.splitlines()[-1].split()
    return int(requests), int(misses), float(requests_per_s)


def main():
    ours, trace, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    peer = [sys.executable, str(pathlib.Path(__file__).with_name("libcachesim_peer.py"))]
    runs = {case: ([], []) for case in CASES}
    for _ in range(rounds):
        for kind, hashpower in CASES:
            own, theirs = runs[kind, hashpower]
            own.append(measure([ours, "run", kind, str(CAPACITY_BYTES), trace]))
            theirs.append(measure([*peer, kind, str(CAPACITY_BYTES), trace, str(hashpower)]))

    print(f"Cache of {CAPACITY_BYTES / 1e9:g} GB, {rounds} rounds, medians; million requests per CPU-second")
    print(f"{'cache':<6}{'buckets':>8}{'requests':>12}{'misses':>11}{'equal':>7}"
          f"{'Plimsoll':>10}{'libCacheSim':>13}{'ratio':>7}  goal {GOAL:g}")
    all_equal = True
    for (kind, hashpower), (own, theirs) in runs.items():
        counts = {run[:2] for run in own + theirs}
        equal = len(counts) == 1
        all_equal &= equal
        mine, peers = (statistics.median(run[2] for run in side) / 1e6 for side in (own, theirs))
        print(f"{kind:<6}{f'2^{hashpower}':>8}{own[0][0]:>12,}{own[0][1]:>11,}{'yes' if equal else 'NO':>7}"
              f"{mine:>10.2f}{peers:>13.2f}{mine / peers:>7.1f}"
              f"  {'met' if mine >= GOAL * peers else 'MISSED'}")
        if not equal:
            print(f"       (requests, misses) seen: {sorted(counts)}")
    if not all_equal:
        sys.exit("the counts differ: one of the two has changed its rule")


if __name__ == "__main__":
    main()
