"""Gives a front-end that counts where its time goes the traffic that it is optimized for.

Usage: train.py PLIMSOLL        PLIMSOLL: the program that counts; it writes its counts when it ends

As many requests of each kind in every run. Clients are h2load and wrk, the back-end is nginx. Wrong answers fail the run.
"""

import contextlib
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "benches" / "proxy"))
import bench
import tls

SIZES_BYTES = (100, 8192, 102_400)
NGINX = """
worker_processes 1; pid {d}/nginx.pid; error_log {d}/nginx.log; daemon off; {user}
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on;
  ssl_certificate {d}/site.pem; ssl_certificate_key {d}/site.key;
  {temp}
  server {{ listen 127.0.0.1:{plain}; listen 127.0.0.2:{plain};
    listen 127.0.0.1:{tls} ssl; listen 127.0.0.2:{tls} ssl; listen 127.0.0.1:{http2} ssl http2; listen 127.0.0.2:{http2} ssl http2;
    root {d}/root;
    location = /text {{ gzip on; gzip_types *; gzip_min_length 1; }}
    location = /form {{ client_max_body_size 10m; return 200 "stored\n"; }} }} }}
"""
LISTENERS = """
workers = 1
[[listener]]
address = "127.0.0.1:{http}"
[[listener]]
address = "127.0.0.1:{https}"
tls = true
[[certificate]]
chain = "{d}/site.pem"
key = "{d}/site.key"
[admin]
enabled = false
[[backend]]
address = "127.0.0.1:{backend}"
name = "a"
{more}
[[backend]]
address = "127.0.0.2:{backend}"
name = "b"
{more}
"""
LOGGED = """
[policy]
name = "{policy}"
[access_log]
file = "{d}/access.log"
format = "{format}"
[decision_log]
directory = "{d}/decisions"
file_size = "16MiB"
files = 2
"""
TO_TLS = 'tls = true\n'
UNVERIFIED = "[backend_tls]\nverify = false\n"
# Name, the back-end's port, what each back-end has in its configuration, and what follows; the share of requests.
FRONT_ENDS = [
    ("least configuration", "plain", "", "", 1.0),
    ("with logs", "plain", "", LOGGED.replace("{policy}", "lard_auto").replace("{format}", "json"), 0.5),
    ("with combined log", "plain", "", LOGGED.replace("{policy}", "lard_r").replace("{format}", "combined"), 0.3),
    ("TLS to back-ends", "tls", TO_TLS, UNVERIFIED, 0.2),
    ("HTTP/2 to back-ends", "http2", TO_TLS + "http2 = true\n", UNVERIFIED, 0.2),
]
BROWSER = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br",
    "Cookie: session=5f2b1c9e7d3a4f60; theme=dark; consent=yes",
    "Referer: https://www.example.com/catalogue/page-17.html",
    "Upgrade-Insecure-Requests: 1",
    "Cache-Control: max-age=0",
]
KEPT, STREAMS = ["--h1", "-c32"], ["-c10", "-m100"]
# Scheme, path, body in bytes, fields, how, requests.
LOADS = [
    ("http", "/100", 0, [], KEPT, 100_000),
    ("http", "/100", 0, [], ["--h1", "-c256"], 60_000),
    ("http", "/8192", 0, [], KEPT, 100_000),
    ("http", "/8192", 0, BROWSER, ["--h1", "-c64"], 60_000),
    ("http", "/102400", 0, [], KEPT, 30_000),
    ("http", "/text", 0, BROWSER, KEPT, 20_000),
    ("http", "/form", 1000, BROWSER, KEPT, 30_000),
    ("http", "/form", 100_000, [], KEPT, 3000),
    ("http", "/100", 0, [], STREAMS, 100_000),
    ("http", "/8192", 0, BROWSER, STREAMS, 60_000),
    ("https", "/8192", 0, [], KEPT, 50_000),
    ("https", "/102400", 0, [], KEPT, 10_000),
    ("https", "/100", 0, [], STREAMS, 60_000),
    ("https", "/8192", 0, BROWSER, STREAMS, 60_000),
    ("https", "/102400", 0, [], STREAMS, 10_000),
    ("https", "/form", 1000, BROWSER, STREAMS, 20_000),
]


def free_ports(names):
    """A free port for each of these names."""
    with contextlib.ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        return {name: s.getsockname()[1] for name, s in zip(names, sockets, strict=True)}


def wait_for(port, process):
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            sys.exit(f"train.py: {process.args[0]} ended with status {process.returncode}")
        time.sleep(0.1)
    sys.exit(f"train.py: {process.args[0]} does not listen on port {port}")


def prepare(d, ports):
    """Writes documents, a certificate and the back-end's configuration."""
    (d / "root").mkdir()
    for size_bytes in SIZES_BYTES:
        (d / "root" / str(size_bytes)).write_bytes(b"x" * size_bytes)
    (d / "root" / "text").write_text("".join(f"line {n} of {n * n}\n" for n in range(400)))
    (d / "body").mkdir()
    tls.issue(d)
    user, temp = bench.unprivileged_nginx(d)
    (d / "nginx.conf").write_text(NGINX.format(d=d, user=user, temp=temp, **ports))


def send(d, ports, load, share):
    """Sends the requests of one load, and checks that each was answered well."""
    scheme, path, body_bytes, fields, how, requests = load
    requests = int(requests * share)
    url = f"{scheme}://127.0.0.1:{ports[scheme]}{path}"
    command = ["h2load", *how, "-t1", f"-n{requests}", *(f"-H{field}" for field in fields)]
    if body_bytes:
        body = d / "body" / str(body_bytes)
        body.write_bytes(b"y" * body_bytes)
        command += ["-d", body]
    out = subprocess.run([*command, url], capture_output=True, text=True, check=True, timeout=120).stdout
    if f"status codes: {requests} 2xx" not in out:
        sys.exit(f"train.py: {url}: wrong answers\n{out}")


def send_on_new_connections(ports):
    """One request on each connection, for a while."""
    for scheme in ("http", "https"):
        command = ["wrk", "-t1", "-c32", "-d3", "-H", "Connection: close", f"{scheme}://127.0.0.1:{ports[scheme]}/100"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in out or not re.search(r"[1-9]\d* requests in", out):
            sys.exit(f"train.py: {command[-1]}: wrong answers\n{out}")


def train(plimsoll, d, ports, front_end):
    """Runs one front-end under all loads; it ends by itself when it is told to, and writes its counts."""
    name, backend, more, tables, share = front_end
    config = LISTENERS.format(d=d, backend=ports[backend], more=more, **ports) + tables.format(d=d)
    (d / "plimsoll.toml").write_text(config)
    with (d / "plimsoll.log").open("w") as log:
        command = [plimsoll, "balance", "--no-watch", "--config", d / "plimsoll.toml"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for(ports["http"], process)
            # Until back-ends have been checked.
            time.sleep(1)
            for load in LOADS:
                send(d, ports, load, share)
            send_on_new_connections(ports)
        finally:
            process.terminate()
            status = process.wait(60)
    if status != 0:
        sys.exit(f"train.py: the front-end ended with status {status}\n{(d / 'plimsoll.log').read_text()}")
    print(f"train.py: {name}: done", flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        d = pathlib.Path(directory)
        ports = free_ports(("plain", "tls", "http2", "http", "https"))
        prepare(d, ports)
        nginx = subprocess.Popen(["nginx", "-e", f"{d}/nginx.log", "-c", f"{d}/nginx.conf"], stderr=subprocess.DEVNULL)
        try:
            wait_for(ports["plain"], nginx)
            for front_end in FRONT_ENDS:
                train(sys.argv[1], d, ports, front_end)
        finally:
            nginx.terminate()
            nginx.wait(10)


if __name__ == "__main__":
    main()
