"""A million requests over TLS and HTTP/2 through Plimsoll: what memory and descriptors it has after each fifth of them.

Usage: growth.py PLIMSOLL        PLIMSOLL: the optimized program

h2load sends each fifth over 50 new connections of 20 streams. The exit code is 1 when a request fails, or memory or descriptors after
the last fifth are beyond those after the first by more than 8 MiB or 16. All traffic stays on the loopback interface, ports 9721 to 9723. Every load is
bounded in count and time.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

from front_ends import wait_for
from used import files, memory_mib

REQUESTS, FIFTHS, CONNECTIONS = 200_000, 5, 50
MOST_MIB, MOST_FILES = 8, 16
HTTPS, ADMIN, BACKEND = 9721, 9722, 9723


def certificate(directory):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", f"{directory}/key.pem", "-out", f"{directory}/chain.pem"],
        check=True, capture_output=True,
    )


def configuration(directory):
    text = f"""
[[listener]]
address = "127.0.0.1:{HTTPS}"
tls = true
[[certificate]]
chain = "chain.pem"
key = "key.pem"
[admin]
address = "127.0.0.1:{ADMIN}"
[[backend]]
address = "127.0.0.1:{BACKEND}"
[health]
probe = "tcp"
"""
    path = os.path.join(directory, "plimsoll.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def load():
    """Sends a fifth; how many failed."""
    done = subprocess.run(
        ["h2load", "-n", str(REQUESTS), "-c", str(CONNECTIONS), "-m", "20", "-t", "1", f"https://127.0.0.1:{HTTPS}/1k"],
        check=True, capture_output=True, text=True, timeout=300,
    ).stdout
    succeeded = int(re.search(r"(\d+) succeeded", done).group(1))
    good = int(re.search(r"status codes: (\d+) 2xx", done).group(1))
    return REQUESTS - min(succeeded, good)


def main():
    plimsoll = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        certificate(directory)
        origin = subprocess.Popen(
            [plimsoll, "origin", "--synthetic", "fixed:1KB", "--listen", f"127.0.0.1:{BACKEND}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        front_end = subprocess.Popen(
            [plimsoll, "balance", "--config", configuration(directory), "--no-watch"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            for port, process in ((BACKEND, origin), (HTTPS, front_end)):
                wait_for(port, process)
            seen, failed = [], 0
            print(f"at the start: {memory_mib(front_end.pid):.1f} MiB, {files(front_end.pid)} descriptors", flush=True)
            for fifth in range(1, FIFTHS + 1):
                began = time.monotonic()
                failed += load()
                took = time.monotonic() - began
                # What is idle is given back after a while.
                time.sleep(1)
                seen.append((memory_mib(front_end.pid), files(front_end.pid)))
                mib, count = seen[-1]
                print(f"after {fifth * REQUESTS:,}: {mib:.1f} MiB, {count} descriptors, failed: {failed} ({took:.0f} s)", flush=True)
        finally:
            for process in (front_end, origin):
                process.terminate()
                process.wait()
    grown = seen[-1][0] - seen[0][0] > MOST_MIB or seen[-1][1] - seen[0][1] > MOST_FILES
    return 1 if failed or grown else 0


if __name__ == "__main__":
    sys.exit(main())
