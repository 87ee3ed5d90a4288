"""Serves files in the ordinary way of asyncio: `files.py LOOP PROCESSES CONTENT LISTEN...`.

LOOP is asyncio or uvloop, PROCESSES how many accept connections. LISTEN is the path of a Unix socket, or ADDRESS:PORT.
A request's body is read, and its size told in the field X-Body. The field X-Client tells who asks.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys

LOOP, PROCESSES, CONTENT, *PLACES = sys.argv[1:]
SMALL_BYTES = 10_000


def listener(place):
    if place.startswith("/"):
        sock = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        sock.bind(place)
        # For servers in front of this one, which are not root.
        os.chmod(place, 0o777)
    else:
        address, port = place.rsplit(":", 1)
        sock = socket.create_server((address, int(port)))
    sock.listen(1000)
    sock.setblocking(False)
    return sock


def span(field, size):
    """The first byte that is asked for, and the one behind the last."""
    if field is None:
        return 0, size
    first, last = field.removeprefix("bytes=").split("-")
    return int(first), min(int(last) + 1, size)


async def send(writer, file, first, behind):
    if LOOP == "asyncio" and behind - first > SMALL_BYTES:
        await writer.drain()
        await asyncio.get_running_loop().sendfile(writer.transport, file, first, behind - first)
        return
    file.seek(first)
    writer.write(file.read(behind - first))
    await writer.drain()


async def answer(reader, writer):
    """Answers one request. Whether another may follow."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *lines = head.strip().split("\r\n")
    method, path, _ = request.split(" ")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    goes_on = fields.get("connection", "").lower() != "close"
    told = f"X-Body: {len(body)}\r\nX-Client: {writer.get_extra_info('peername')}\r\n"
    if not goes_on:
        told += "Connection: close\r\n"
    try:
        file = open(CONTENT + ("/index.html" if path == "/" else path), "rb")
    except OSError:
        writer.write(f"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n{told}\r\nnone\n".encode())
        return goes_on
    with file:
        size = os.fstat(file.fileno()).st_size
        first, behind = span(fields.get("range"), size)
        status = "200 OK"
        if "range" in fields:
            status = "206 Partial Content"
            told += f"Content-Range: bytes {first}-{behind - 1}/{size}\r\n"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {behind - first}\r\n{told}\r\n".encode())
        if method != "HEAD":
            await send(writer, file, first, behind)
    return goes_on


async def converse(reader, writer):
    try:
        while await answer(reader, writer):
            pass
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(sockets):
    for sock in sockets:
        start = asyncio.start_unix_server if sock.family == socket.AF_UNIX else asyncio.start_server
        await start(converse, sock=sock)
    await asyncio.Event().wait()


def main():
    if LOOP == "uvloop":
        import uvloop

        uvloop.install()
    sockets = [listener(place) for place in PLACES]
    others = []
    for _ in range(int(PROCESSES) - 1):
        if (other := os.fork()) == 0:
            break
        others.append(other)
    else:
        def stop(*_):
            for other in others:
                os.kill(other, signal.SIGTERM)
            os._exit(0)

        signal.signal(signal.SIGTERM, stop)
    asyncio.run(serve(sockets))


main()
