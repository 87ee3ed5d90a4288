"""Measures when own counts mislead front-ends that share back-ends, and polls do not.

Usage: several.py PLIMSOLL
Four agents with an origin each, whose emulated CPU takes some 10 ms for a request, and two front-ends, all on loopback. Requests come by
Poisson processes of one seed, each on a connection of its own. `uneven`: the first front-end sends all of its requests, 60 % of what a
back-end can do, to one back-end; the second distributes 30 % of what all four can do by `random_polling` of two. `even`: both distribute
35 %. SECONDS in the environment says how long each way is measured (20 unless set).
"""

import asyncio
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time

from bench import key_file, start_agent, start_front_end

BACKENDS = 4
SERVE = ["origin:synthetic:fixed:8KB", "--cpu-delay", "lard98", "--cpu-speed", "0.1"]
SEED = 1
# Measured one after the other, without anybody else.
ALONE = 30


async def request(address, path):
    """How long a request takes in seconds; `None` if it is not answered well."""
    began = time.monotonic()
    host, port = address.rsplit(":", 1)
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read(-1)
        writer.close()
    except OSError:
        return None
    return time.monotonic() - began if answer.startswith(b"HTTP/1.1 200 ") else None


async def poisson(address, path, rate_rps, seconds, seed):
    """The times of requests that come at this rate; those of the first fifth are left out."""
    draw, tasks, early, due = random.Random(seed), [], [], time.monotonic()
    end, measured = due + seconds, due + seconds / 5
    while (due := due + draw.expovariate(rate_rps)) < end:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        task = asyncio.create_task(request(address, path))
        (tasks if due >= measured else early).append(task)
    await asyncio.gather(*early)
    return await asyncio.gather(*tasks)


def shares(case):
    """What each front-end sends, in back-ends' worth; and the policy of the first one."""
    return (0.6, 0.3 * BACKENDS, "uri_hash") if case == "uneven" else (0.35 * BACKENDS, 0.35 * BACKENDS, "random_polling")


async def both(first, second, rates_rps, seconds):
    """The times of both front-ends' requests."""
    loads = [poisson(address, f"/{name}", rate, seconds, seed) for seed, (name, address, rate) in enumerate(zip("ab", (first, second), rates_rps), SEED)]
    return await asyncio.gather(*loads)


def told(times):
    """Count, mean and 99th percentile in milliseconds, and how many failed."""
    good = sorted(t for t in times if t is not None)
    p99 = good[int(0.99 * (len(good) - 1))]
    return f"{len(good):>9}{1e3 * statistics.mean(good):>10.1f}{1e3 * p99:>10.1f}{len(times) - len(good):>8}"


def main(plimsoll):
    """Measures all, and prints a table."""
    seconds = float(os.environ.get("SECONDS", "20"))
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        key = key_file(directory)
        agents = [start_agent(stack, plimsoll, key, f"b{number}", SERVE) for number in range(BACKENDS)]
        service_s = statistics.median(asyncio.run(request(agents[0][0], "/a")) for _ in range(ALONE))
        print(f"a request alone takes {1e3 * service_s:.1f} ms")
        print(f"{'case':>8}{'loads':>8}{'front-end':>11}{'requests':>9}{'mean, ms':>10}{'p99, ms':>10}{'failed':>8}")
        for case in ("uneven", "even"):
            *rates, policy = shares(case)
            for source in ("own", "poll"):
                addresses = []
                for name in (policy, "random_polling"):
                    loads = "" if source == "own" or name == "uri_hash" else f'[load_information]\nfrom = "poll"\nkey_file = "{key}"\n'
                    text = f'[policy]\nname = "{name}"\n{loads}'
                    addresses.append(start_front_end(stack, plimsoll, directory, agents, text))
                times = asyncio.run(both(*addresses, [rate / service_s for rate in rates], seconds))
                for name, measured in zip(("first", "second"), times, strict=True):
                    print(f"{case:>8}{source:>8}{name:>11}{told(measured)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
