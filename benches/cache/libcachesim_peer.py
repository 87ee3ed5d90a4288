"""Runs libCacheSim over an oracleGeneral trace, natively from reader to cache.

    libcachesim_peer.py CACHE CAPACITY_BYTES TRACE [HASHPOWER]

Prints what `plimsoll-bench-cache run` prints: cache, requests, misses, CPU-seconds and requests
per CPU-second. The CPU time is that of opening the trace, building the cache and every request;
loading Python and the library before is not counted.
"""

import sys
import time

import libcachesim

KINDS = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "lfu": libcachesim.LFU,
    "gdsf": libcachesim.GDSF,
}
RECORD_BYTES = 24


def run(kind, capacity_bytes, trace, hashpower=24):
    """Returns requests, misses and the CPU time in seconds."""
    start_s = time.process_time()
    reader = libcachesim.TraceReader(trace, libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    cache = KINDS[kind](capacity_bytes, hashpower=hashpower, consider_obj_metadata=False)
    miss_ratio, _ = cache.process_trace(reader)
    spent_s = time.process_time() - start_s
    requests = reader.n_read_req
    # The library gives the ratio as a double, which pins the count of misses: a ratio of counts
    # below 2^52 is known to less than half a request.
    return requests, round(miss_ratio * requests), spent_s


if __name__ == "__main__":
    kind, capacity_bytes, trace = sys.argv[1:4]
    hashpower = int(sys.argv[4]) if len(sys.argv) > 4 else 24
    requests, misses, spent_s = run(kind, int(capacity_bytes), trace, hashpower)
    print(f"{kind} {requests} {misses} {spent_s:.4f} {requests / spent_s:.0f}")
