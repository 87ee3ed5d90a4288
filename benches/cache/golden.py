"""Counts libCacheSim's misses on small generated traces.

The output is the table in crates/cache/tests/it/golden.rs; the generator there is this one, in
integers only, so that both make the same requests. Run it with a Python that has libcachesim 0.3.5:

    python golden.py
"""

import struct
import tempfile

from libcachesim_peer import run

REQUESTS = 20_000
OBJECTS = 2_000
MASK = (1 << 64) - 1


def mix(x):
    """A 64-bit number out of another."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def requests(seed, mixed_sizes):
    """Object and size of each request; the product of two uniform ranks is skewed like Zipf's law."""
    for at in range(REQUESTS):
        a = mix(seed * 1_000_000 + 2 * at) % OBJECTS
        b = mix(seed * 1_000_000 + 2 * at + 1) % OBJECTS
        identity = mix(a * b // OBJECTS)
        if mixed_sizes:
            scale = 1 << (identity % 14)
            size_bytes = scale + (identity >> 8) % scale
        else:
            size_bytes = 1000 * (1 + identity % 2)
        yield identity, size_bytes


def main():
    for seed, mixed_sizes in ((1, True), (2, False)):
        with tempfile.NamedTemporaryFile(suffix=".oracleGeneral") as trace:
            for at, (identity, size_bytes) in enumerate(requests(seed, mixed_sizes)):
                trace.write(struct.pack("<IQIq", at // 1000, identity, size_bytes, -1))
            trace.flush()
            for capacity_bytes in (5_000, 50_000, 500_000):
                for kind in ("fifo", "lfu", "lru", "gdsf"):
                    _, misses, _ = run(kind, capacity_bytes, trace.name, hashpower=16)
                    flag = "true" if mixed_sizes else "false"
                    print(f'    ({seed}, {flag}, {capacity_bytes:_}, "{kind}", {misses:_}),')


if __name__ == "__main__":
    main()
