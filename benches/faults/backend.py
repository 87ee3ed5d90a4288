"""A back-end with faults: `backend.py NAME PORT [KEY=VALUE…]`.

Answers each request with 200 and its own name, after `service_s` seconds; `capacity` requests a second at most, one after
the other, where that is given. It always answers `/health` at once. Bodies of requests are read to their end. From one
SIGUSR1 to the next it answers nothing, checks neither, and resets each connection 100 ms after a request.

fail_every=N   closes the connection of every Nth request without an answer
reset=1        resets it instead
size=BYTES     bytes of a body (2)
fields=1       answers with the request's head
"""

import asyncio
import signal
import socket
import struct
import sys


class Backend:
    def __init__(self, name, options):
        self.name = name
        self.fail_every = int(options.get("fail_every", 0))
        self.reset = bool(int(options.get("reset", 0)))
        self.size = int(options.get("size", 2))
        self.fields = bool(int(options.get("fields", 0)))
        self.service_s = float(options.get("service_s", 0))
        self.capacity = float(options.get("capacity", 0))
        self.free_at = 0.0
        self.requests = 0
        self.resets = False

    def toggle(self):
        self.resets = not self.resets

    def reset_at_end(self, writer):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async def work(self):
        now = asyncio.get_running_loop().time()
        wait_s = self.service_s
        if self.capacity:
            self.free_at = max(self.free_at, now) + 1 / self.capacity
            wait_s += self.free_at - now
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def answer(self, head, body):
        content = head if self.fields else body
        return (
            f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nX-Backend: {self.name}\r\n"
            f"X-Requests: {self.requests}\r\n\r\n"
        ).encode() + content

    async def request(self, reader, writer):
        """Serves one request; false when the connection is over."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        fields = {}
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            fields[name.lower()] = value.strip()
        length = int(fields.get(b"content-length", 0))
        if length:
            await reader.readexactly(length)
        if self.resets:
            await asyncio.sleep(0.1)
            self.reset_at_end(writer)
            return False
        path = head.split(b" ", 2)[1]
        if path == b"/health":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        elif path == b"/count":
            writer.write(self.answer(head, str(self.requests).encode()))
        else:
            self.requests += 1
            if self.fail_every and self.requests % self.fail_every == 0:
                if self.reset:
                    self.reset_at_end(writer)
                return False
            await self.work()
            writer.write(self.answer(head, b"x" * self.size))
        await writer.drain()
        return fields.get(b"connection", b"").lower() != b"close"

    async def connection(self, reader, writer):
        try:
            while await self.request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def main(name, port, options):
    backend = Backend(name, options)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, backend.toggle)
    server = await asyncio.start_server(backend.connection, "127.0.0.1", port, backlog=4096, limit=1 << 20)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), dict(o.split("=", 1) for o in sys.argv[3:])))
