"""Clients: bounded loads over asyncio, one connection for each request unless said otherwise."""

import asyncio
import time

from front_ends import BACKENDS, PORT


class Answer:
    __slots__ = ("status", "seconds", "body", "head")

    def __init__(self, status, seconds, body=b"", head=b""):
        self.status, self.seconds, self.body, self.head = status, seconds, body, head


async def exchange(data, port=PORT, timeout=40, began=None):
    """Sends `data`, reads one answer. Status 0: no whole answer."""
    began = time.monotonic() if began is None else began
    writer = None
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line[15:])
            body = await reader.readexactly(length)
            return Answer(int(head.split(b" ", 2)[1]), time.monotonic() - began, body, head)
    except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
        return Answer(0, time.monotonic() - began)
    finally:
        if writer is not None:
            writer.transport.abort()


def get(path="/", fields=""):
    return f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n".encode()


def post(body, path="/"):
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def open_loop(rate, count, data=lambda n: get(f"/{n % 100}"), timeout=40):
    """`count` requests at `rate` a second, whatever becomes of them. Times count from when a request was due."""
    tasks, start = [], time.monotonic()
    for n in range(count):
        due = start + n / rate
        wait = due - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(exchange(data(n), timeout=timeout, began=due)))
    return await asyncio.gather(*tasks)


async def counts():
    """Requests that each back-end has got."""
    answers = [await exchange(get("/count"), port) for port in BACKENDS]
    return [int(answer.body or 0) for answer in answers]


async def slow_senders(count, seconds, length=4000, piece=10):
    """Opens `count` connections, each with a POST whose body trickles, and keeps them so."""

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.write(f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n".encode())
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                writer.write(b"x" * piece)
                await asyncio.sleep(0.5)
        except ConnectionError:
            pass
        writer.transport.abort()

    return [asyncio.create_task(one()) for _ in range(count)]


async def slow_readers(count, seconds, path="/large", rate=4096):
    """Opens `count` connections that read an answer at `rate` bytes a second."""

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=4096)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and await reader.read(rate // 2):
                await asyncio.sleep(0.5)
        except ConnectionError:
            pass
        writer.transport.abort()

    return [asyncio.create_task(one()) for _ in range(count)]


async def slow_heads(count, seconds):
    """Opens `count` connections that send a head byte by byte; opens each again that is closed."""

    async def one():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
                while time.monotonic() < end and not reader.at_eof():
                    writer.write(b"x")
                    try:
                        await asyncio.wait_for(reader.read(100), 0.5)
                        break
                    except TimeoutError:
                        pass
                writer.transport.abort()
            except OSError:
                pass
            await asyncio.sleep(0.1)

    return [asyncio.create_task(one()) for _ in range(count)]
