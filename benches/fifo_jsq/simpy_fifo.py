"""Join-shortest-queue over FIFO back-ends, written with SimPy in two forms.

usual: as SimPy's documentation writes queues, a process for each request, which holds a resource of capacity 1.
lean:  a process for the arrivals and one for each back-end, which serves its own queue and waits for an event only when
       that queue is empty, so that a request costs two time-outs.

Usage: simpy_fifo.py usual|lean REQUESTS SEED
"""

import json
import random
import sys
import time
from collections import deque

import simpy

BACKENDS = 16
UTILIZATION = 0.9
MEAN_SERVICE_S = 1.0
ARRIVAL_RATE_RPS = UTILIZATION * BACKENDS / MEAN_SERVICE_S
SERVICE_RATE_RPS = 1.0 / MEAN_SERVICE_S


def usual(requests, seed):
    """Returns the number of completed requests and the sum of their response times in seconds."""
    env = simpy.Environment()
    expovariate = random.Random(seed).expovariate
    timeout = env.timeout
    loads = [0] * BACKENDS
    backends = [simpy.Resource(env, capacity=1) for _ in range(BACKENDS)]
    completed = 0
    response_sum_s = 0.0

    def request(index):
        nonlocal completed, response_sum_s
        arrived_s = env.now
        with backends[index].request() as turn:
            yield turn
            yield timeout(expovariate(SERVICE_RATE_RPS))
        loads[index] -= 1
        completed += 1
        response_sum_s += env.now - arrived_s

    def arrivals():
        for _ in range(requests):
            yield timeout(expovariate(ARRIVAL_RATE_RPS))
            shortest = loads.index(min(loads))
            loads[shortest] += 1
            env.process(request(shortest))

    env.process(arrivals())
    env.run()
    return completed, response_sum_s


def lean(requests, seed):
    """Returns the number of completed requests and the sum of their response times in seconds."""
    env = simpy.Environment()
    expovariate = random.Random(seed).expovariate
    timeout = env.timeout
    loads = [0] * BACKENDS
    queues = [deque() for _ in range(BACKENDS)]
    sleepers = [None] * BACKENDS
    completed = [0] * BACKENDS
    response_sum_s = [0.0] * BACKENDS

    def arrivals():
        for _ in range(requests):
            yield timeout(expovariate(ARRIVAL_RATE_RPS))
            shortest = loads.index(min(loads))
            loads[shortest] += 1
            queues[shortest].append(env.now)
            sleeper = sleepers[shortest]
            if sleeper is not None:
                sleepers[shortest] = None
                sleeper.succeed()

    def backend(index):
        queue = queues[index]
        while True:
            while queue:
                yield timeout(expovariate(SERVICE_RATE_RPS))
                response_sum_s[index] += env.now - queue.popleft()
                completed[index] += 1
                loads[index] -= 1
            sleepers[index] = env.event()
            yield sleepers[index]

    for index in range(BACKENDS):
        env.process(backend(index))
    env.process(arrivals())
    env.run()
    return sum(completed), sum(response_sum_s)


def main():
    """Measures one run in CPU time and prints the result as one JSON line."""
    try:
        name, requests, seed = sys.argv[1:]
        form = {"usual": usual, "lean": lean}[name]
        requests, seed = int(requests), int(seed)
    except (ValueError, KeyError):
        print("simpy: give FORM REQUESTS SEED: FORM is usual or lean, the others are whole numbers", file=sys.stderr)
        sys.exit(2)
    start_s = time.process_time()
    completed, response_sum_s = form(requests, seed)
    cpu_s = time.process_time() - start_s
    if completed != requests or requests == 0:
        sys.exit(f"simpy: {completed} requests completed where {requests} were to be")
    result = {
        "tool": "simpy" if form is usual else "simpy-lean",
        "requests": requests,
        "mean_response_s": response_sum_s / requests,
        "cpu_s": cpu_s,
        "requests_per_cpu_s": requests / cpu_s,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
