"""Faults, each as a function that returns figures by name. Every load is bounded in count and time."""

import asyncio
import collections
import signal
import statistics
import time

import client
from client import exchange, get, open_loop, post
from front_ends import backend


def share(answers, status=200):
    return sum(a.status == status for a in answers)


def failed(answers, of):
    """How many were not answered by 200, and what they got instead: 0 is no whole answer."""
    others = collections.Counter(a.status for a in answers if a.status != 200)
    return {f"failed of {of}": sum(others.values()), "statuses": dict(others)}


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * p // 100)] if values else float("nan")


def backends(**of_one):
    """Three back-ends; `b0` as told, the others without faults. Policies that look at loads give ties to the first one."""
    return [backend(i, **(of_one if i == 0 else {})) for i in range(3)]


async def failing(front_end, reset):
    with_faults = backends(fail_every=2, reset=reset)
    try:
        with front_end():
            before = await client.counts()
            answers = await open_loop(500, 3000)
            after = await client.counts()
        return failed(answers, "3,000") | {
            "attempts per request": (sum(after) - sum(before)) / 3000,
            # The back-end fails every other request that it gets.
            "failed attempts": after[0] // 2 - before[0] // 2,
        }
    finally:
        [b.stop() for b in with_faults]


async def half_closed(front_end):
    """One back-end closes the connection of every other request, its health checks are good: 3,000 GETs at 500/s."""
    return await failing(front_end, 0)


async def half_reset(front_end):
    """The same with resets."""
    return await failing(front_end, 1)


async def reset_peer(front_end):
    """For 4 of 8 s a back-end resets all connections after 100 ms, checks too: 2,400 GETs at 300/s."""
    there = backends()

    async def fault():
        for seconds in (2, 4):
            await asyncio.sleep(seconds)
            there[0].signal(signal.SIGUSR1)

    try:
        with front_end():
            await asyncio.sleep(1)
            answers, _ = await asyncio.gather(open_loop(300, 2400), fault())
        return failed(answers, "2,400")
    finally:
        [b.stop() for b in there]


async def killed_in_turn(front_end):
    """Back-ends are killed and restarted, one after the other, under 1,000 GETs/s: 15,000 in all."""
    there = backends()

    async def kill():
        for turn in range(6):
            index = turn % 3
            there[index].stop()
            await asyncio.sleep(1.2)
            there[index] = await asyncio.to_thread(backend, index)
            await asyncio.sleep(1.2)

    try:
        with front_end():
            await asyncio.sleep(1)
            answers, _ = await asyncio.gather(open_loop(1000, 15_000), kill())
        return failed(answers, "15,000")
    finally:
        [b.stop() for b in there]


async def killed_every_second(front_end):
    """One back-end is killed and restarted every second under 1,000 GETs/s for 60 s: 60,000 in all."""
    there = backends()

    async def kill():
        for _ in range(58):
            there[0].stop()
            await asyncio.sleep(0.5)
            there[0] = await asyncio.to_thread(backend, 0)
            await asyncio.sleep(0.4)

    try:
        with front_end():
            await asyncio.sleep(1)
            answers, _ = await asyncio.gather(open_loop(1000, 60_000), kill())
        return failed(answers, "60,000")
    finally:
        [b.stop() for b in there]


async def beside(front_end, slow, **options):
    """30 GETs beside 160 slow clients."""
    there = [backend(i, **options) for i in range(3)]
    try:
        with front_end():
            await asyncio.sleep(1)
            tasks = await slow(160, 12)
            await asyncio.sleep(2)
            answers = await open_loop(10, 30, timeout=5)
            [t.cancel() for t in tasks]
            await asyncio.gather(*tasks, return_exceptions=True)
        return failed(answers, "30")
    finally:
        [b.stop() for b in there]


async def slow_posts(front_end):
    """160 POSTs of 4,000 bytes at 20 B/s, and beside them 30 GETs."""
    return await beside(front_end, client.slow_senders)


async def slow_large_posts(front_end):
    """160 POSTs of 1 MB at 1,200 B/s, and beside them 30 GETs."""
    return await beside(front_end, lambda n, s: client.slow_senders(n, s, length=1_000_000, piece=600))


async def slow_readers(front_end):
    """160 GETs of 400 KB, read at 4 KiB/s, and beside them 30 GETs."""
    return await beside(front_end, client.slow_readers, size=400_000)


async def long_polls(front_end):
    """500 GETs at once, each of which its back-end answers after 3 s."""
    there = [backend(i, service_s=3) for i in range(3)]
    try:
        with front_end():
            await asyncio.sleep(1)
            answers = await asyncio.gather(*(exchange(get(), timeout=20) for _ in range(500)))
        return failed(answers, "500")
    finally:
        [b.stop() for b in there]


async def waiting_handlers(front_end):
    """6,000 GETs at 1,000/s, each of which its back-end answers after 0.2 s, as many at once as come."""
    there = [backend(i, service_s=0.2) for i in range(3)]
    try:
        with front_end():
            await asyncio.sleep(1)
            answers = await open_loop(1000, 6000, timeout=10)
        ms = [a.seconds * 1000 for a in answers if a.status == 200]
        return failed(answers, "6,000") | {"median ms": percentile(ms, 50), "99 % ms": percentile(ms, 99)}
    finally:
        [b.stop() for b in there]


async def overload(front_end):
    """Three times what the back-ends can answer, 600/s, for 10 s; the first two do not count."""
    there = [backend(i, capacity=200) for i in range(3)]
    try:
        with front_end():
            await asyncio.sleep(1)
            answers = (await open_loop(1800, 18_000, timeout=10))[3600:]
        in_time = [a for a in answers if a.status == 200 and a.seconds <= 0.5]
        refused_ms = [a.seconds * 1000 for a in answers if a.status in (502, 503, 504)]
        return {
            "answered within 500 ms, per s": len(in_time) / 8,
            "answered, per s": share(answers) / 8,
            "refusals, median ms": statistics.median(refused_ms) if refused_ms else float("nan"),
            "refusals, 99 % ms": percentile(refused_ms, 99),
        }
    finally:
        [b.stop() for b in there]


async def all_dead(front_end):
    """All back-ends are killed, then one comes back."""
    there = backends()
    try:
        with front_end():
            await asyncio.sleep(1)
            [b.stop() for b in there]
            await asyncio.sleep(3)
            refused = [await exchange(get()) for _ in range(20)]
            there[0] = backend(0)
            began = time.monotonic()
            while (await exchange(get())).status != 200 and time.monotonic() - began < 30:
                await asyncio.sleep(0.02)
            return {
                "refusals, median ms": 1000 * statistics.median(a.seconds for a in refused),
                "first answer after, s": time.monotonic() - began,
            }
    finally:
        [b.stop() for b in there]


async def hung(front_end):
    """All back-ends stand still when a POST has been sent; when it is answered."""
    there = [backend(i, service_s=3) for i in range(3)]
    try:
        with front_end():
            await asyncio.sleep(1)
            sent = asyncio.create_task(exchange(post(b"hello")))
            await asyncio.sleep(0.5)
            [b.signal(signal.SIGSTOP) for b in there]
            answer = await sent
            return {"POST answered after, s": answer.seconds, "status": answer.status}
    finally:
        [b.stop() for b in there]


async def slow_heads(front_end):
    """As many slow heads as 1.5 times the limit on connections, 256; the longest time without an answer to others."""
    there = backends()
    try:
        with front_end(connections=256):
            await asyncio.sleep(1)
            tasks = await client.slow_heads(384, 10)
            last, longest, end = time.monotonic(), 0.0, time.monotonic() + 8
            while time.monotonic() < end:
                answer = await exchange(get(), timeout=12)
                if answer.status == 200:
                    longest, last = max(longest, time.monotonic() - last), time.monotonic()
                await asyncio.sleep(0.05)
            longest = max(longest, time.monotonic() - last)
            [t.cancel() for t in tasks]
            await asyncio.gather(*tasks, return_exceptions=True)
        return {"longest without an answer, s": longest}
    finally:
        [b.stop() for b in there]


async def no_http(front_end):
    """The first bytes of TLS and SSH: when the connection is over."""
    there = backends()
    try:
        with front_end():
            seconds = []
            for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 100, b"SSH-2.0-OpenSSH_9.2p1\r\n"):
                began = time.monotonic()
                reader, writer = await asyncio.open_connection("127.0.0.1", front_end.port)
                writer.write(data)
                try:
                    await asyncio.wait_for(reader.read(), 15)
                except (TimeoutError, ConnectionError):
                    pass
                writer.transport.abort()
                seconds.append(time.monotonic() - began)
        return {"over after, s": max(seconds)}
    finally:
        [b.stop() for b in there]


FORWARDING = (
    "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Ssl",
    "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Real-IP",
)


async def spoofed(front_end):
    """A stranger sends forwarding fields: how many of them reach the back-end."""
    there = [backend(i, fields=1) for i in range(3)]
    try:
        with front_end():
            fields = "".join(f"{name}: spoofed\r\n{name.replace('-', '_')}: spoofed\r\n" for name in FORWARDING)
            answer = await exchange(get(fields=fields))
            return {f"of {2 * len(FORWARDING)} fields passed on": answer.body.count(b"spoofed")}
    finally:
        [b.stop() for b in there]


ALL = (
    half_closed, half_reset, reset_peer, killed_in_turn, killed_every_second, slow_posts, slow_large_posts, slow_readers, long_polls,
    waiting_handlers, overload, all_dead, hung, slow_heads, no_http, spoofed,
)
