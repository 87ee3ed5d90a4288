"""CPU time, system calls and memory of Plimsoll's front-end beside HAProxy and nginx.

Usage: bench.py PLIMSOLL        PLIMSOLL: the optimized program

The proxies run on CPU 0, the load generator (wrk) and four back-ends (nginx) on CPU 1. What is measured is the CPU time
of a proxy's process, user and system, per request, from /proc/PID/task/*/schedstat. `bare` (bare.c) is the least that a proxy
with epoll can do: it passes bytes on and nothing else. The proxies take turns within each round; ratios are formed within a round, and medians over the rounds are shown. Wrong answers fail the run, missed goals
are only shown.

ROUNDS (5) and SECONDS (2) in the environment set the number of rounds and the time of one measurement.
"""

import contextlib
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = int(os.environ.get("SECONDS", "2"))
SIZES = {"100 B": 100, "8 KB": 8192, "100 KB": 102_400}
CONNECTIONS = (32, 256)
GOALS = {"100 B": 1.2, "8 KB": 1.2, "100 KB": 1.25}
LARD_GOAL = 1.05
# (numerator, denominator, goals by size)
RATIOS = [
    ("round_robin", "HAProxy", GOALS),
    ("lard_r", "round_robin", dict.fromkeys(SIZES, LARD_GOAL)),
    ("no log", "HAProxy", {"100 B": 0.9, "8 KB": 0.9}),
    ("access log", "HAProxy log", {"100 B": 0.95, "8 KB": 0.95}),
    ("bare", "HAProxy", {}),
]
SYSCALL_GOAL = 4.4
IDLE_GOAL_BYTES = 8192
IDLE_CONNECTIONS = 5000
GROWTH_REQUESTS = 1_000_000
BACKENDS = [9611, 9612, 9613, 9614]
PORTS = {
    "HAProxy": 9621,
    "HAProxy log": 9626,
    "nginx": 9622,
    "round_robin": 9623,
    "lard_r": 9624,
    "no log": 9627,
    "access log": 9628,
    "bare": 9625,
}

NGINX_BACKENDS = """
worker_processes 1; pid {d}/backends.pid; error_log {d}/backends.log; daemon off; {user}
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on; {temp}
  server {{ {listen} root {d}/root; }} }}
"""
NGINX_PROXY = """
worker_processes 1; pid {d}/proxy.pid; error_log {d}/proxy.log; daemon off; {user}
events {{ worker_connections 8192; }}
http {{ access_log off; keepalive_requests 100000000; {temp}
  upstream b {{ keepalive 512; keepalive_requests 100000000; {servers} }}
  server {{ listen 127.0.0.1:{port}{listen} backlog=4096; {tls}
    location / {{ proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""
HAPROXY = """
global
  nbthread 1
  maxconn 8192
defaults
  {log}
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  http-reuse always
frontend f
  bind 127.0.0.1:{port}{bind} backlog 4096
  default_backend b
backend b
  balance roundrobin
  option httpchk GET /100
  {servers}
"""
PLIMSOLL = """
workers = 1
{backends}
[[listener]]
address = "127.0.0.1:{port}"
[policy]
name = "{policy}"
[health]
path = "/100"
[admission]
limit = 4096
[admin]
address = "127.0.0.1:{admin}"
"""
ACCESS_LOG = """
[access_log]
file = "{d}/{policy}.access.log"
format = "json"
"""
DECISION_LOG = """
[decision_log]
directory = "{d}/{policy}.decisions"
file_size = "16MiB"
files = 2
"""
# Name of a front-end, its policy, and what it logs.
FRONT_ENDS = {
    "round_robin": ("round_robin", ACCESS_LOG + DECISION_LOG),
    "lard_r": ("lard_r", ACCESS_LOG + DECISION_LOG),
    "no log": ("round_robin", ""),
    "access log": ("round_robin", ACCESS_LOG),
}


class Proxy:
    """A running proxy."""

    def __init__(self, name, command, port, stdout=subprocess.DEVNULL):
        self.name, self.port = name, port
        self.process = subprocess.Popen(["taskset", "-c", "0", *command], stdout=stdout, stderr=subprocess.PIPE)
        self.pids = []

    def wait_until_ready(self):
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                break
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended: {self.process.stderr.read().decode()}")
            time.sleep(0.05)
        # nginx serves in a child.
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.pids = [self.process.pid, *map(int, children)]

    def cpu_us(self):
        total = 0
        for pid in self.pids:
            for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                total += int(stat.read_text().split()[0])
        return total / 1000

    def resident_bytes(self):
        pages = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return pages * resource.getpagesize()

    def url(self, size_bytes):
        return f"http://127.0.0.1:{self.port}/{size_bytes}"

    def stop(self):
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
            return
        self.process.kill()
        self.process.wait()


def load(url, connections, seconds):
    """Runs wrk; the number of requests. Any error ends the program."""
    command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}", url]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        sys.exit(f"{url}: wrong answers\n{out}")
    return int(re.search(r"(\d+) requests in", out).group(1))


def cpu_per_request_us(proxy, size_bytes, connections):
    before = proxy.cpu_us()
    requests = load(proxy.url(size_bytes), connections, SECONDS)
    return (proxy.cpu_us() - before) / requests


def mark(value, goal):
    return f"goal {goal:g}: {'met' if value <= goal else 'MISSED'}"


def measure_cpu(proxies):
    print(f"{'':22}" + "".join(f"{p.name:>12}" for p in proxies))
    ratios = []
    for label, size_bytes in SIZES.items():
        for connections in CONNECTIONS:
            rounds = []
            for number in range(ROUNDS):
                turn = proxies[number % len(proxies) :] + proxies[: number % len(proxies)]
                rounds.append({p.name: cpu_per_request_us(p, size_bytes, connections) for p in turn})
            load_text = f"{label:>8}, {connections:3} conns"
            medians = [statistics.median(r[p.name] for r in rounds) for p in proxies]
            print(f"{load_text:22}" + "".join(f"{m:9.2f} us" for m in medians), flush=True)
            for ours, theirs, goals in RATIOS:
                ratio = statistics.median(r[ours] / r[theirs] for r in rounds)
                told = f" ({mark(ratio, goals[label])})" if label in goals else ""
                ratios.append((f"{ours} / {theirs}", f"{load_text}  {ratio:5.2f}{told}"))
    for ours, theirs, _ in RATIOS:
        print(f"\n{ours} / {theirs}")
        for _, line in (r for r in ratios if r[0] == f"{ours} / {theirs}"):
            print(f"  {line}")


def measure_syscalls(proxies):
    print("\nSystem calls per request, 100 B, 32 connections; waiting for events (epoll_wait) is among them, and the more of it")
    print("the longer a proxy waits for wrk and nginx on the other CPU")
    for proxy in proxies:
        # perf counts from before the first request until after the last.
        pids = ",".join(map(str, proxy.pids))
        events = "raw_syscalls:sys_enter,syscalls:sys_enter_epoll_wait"
        command = ["perf", "stat", "-x,", "-e", events, "-p", pids, "--", "sleep", "3"]
        counting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        requests = load(proxy.url(100), 32, 2)
        counted = counting.communicate()[1]
        counts = [int(count) for count in re.findall(r"^(\d+),", counted, re.M)]
        if len(counts) != 2:
            print(f"  {proxy.name:12} perf cannot count here: {counted.strip()}")
            continue
        per, waits = (count / requests for count in counts)
        ours = proxy.name in ("round_robin", "lard_r")
        print(f"  {proxy.name:12} {per:6.2f}, {waits:.2f} of them waits" + (f"   {mark(per, SYSCALL_GOAL)}" if ours else ""))


def measure_idle(proxy):
    sockets = []
    before = proxy.resident_bytes()
    request = b"GET /100 HTTP/1.1\r\nHost: bench\r\n\r\n"
    for _ in range(IDLE_CONNECTIONS):
        s = socket.create_connection(("127.0.0.1", proxy.port), 5)
        s.sendall(request)
        s.recv(4096)
        sockets.append(s)
    after = proxy.resident_bytes()
    for s in sockets:
        s.close()
    return (after - before) / IDLE_CONNECTIONS


def measure_memory(proxies):
    print(f"\nResident memory per idle connection ({IDLE_CONNECTIONS} connections, one request each)")
    for proxy in proxies:
        per = measure_idle(proxy)
        ours = proxy.name in ("round_robin", "lard_r")
        print(f"  {proxy.name:12} {per:7.0f} B" + (f"   {mark(per, IDLE_GOAL_BYTES)}" if ours else ""))
    print(f"\nResident memory before and after {GROWTH_REQUESTS:,} requests (100 B, 32 connections)")
    for proxy in proxies:
        load(proxy.url(100), 32, 1)
        before, done = proxy.resident_bytes(), 0
        while done < GROWTH_REQUESTS:
            done += load(proxy.url(100), 32, 5)
        after = proxy.resident_bytes()
        print(f"  {proxy.name:12} {before / 2**20:7.1f} MiB   {after / 2**20:7.1f} MiB   after {done:,} requests")


def unprivileged_nginx(d):
    """What nginx needs in order to run as whoever started it, and to write below `d` only."""
    user = "user root;" if os.geteuid() == 0 else ""
    temp = " ".join(f"{k}_temp_path {d}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return user, temp


def start_backends(d):
    """Starts the back-ends, with a document of each size."""
    user, temp = unprivileged_nginx(d)
    root = d / "root"
    root.mkdir()
    for size_bytes in SIZES.values():
        (root / str(size_bytes)).write_bytes(b"x" * size_bytes)
    listen = " ".join(f"listen 127.0.0.1:{p} backlog=4096;" for p in BACKENDS)
    (d / "backends.conf").write_text(NGINX_BACKENDS.format(d=d, user=user, temp=temp, listen=listen))
    return subprocess.Popen(
        ["taskset", "-c", "1", "nginx", "-e", f"{d}/backends.log", "-c", f"{d}/backends.conf"], stderr=subprocess.DEVNULL
    )


def backend_tables():
    """The back-ends as tables of Plimsoll's configuration."""
    return "\n".join(f'[[backend]]\naddress = "127.0.0.1:{p}"' for p in BACKENDS)


def configure_haproxy(d, file, port, bind="", log=""):
    """Writes a configuration of HAProxy; the command that starts it."""
    servers = "\n  ".join(f"server s{p} 127.0.0.1:{p} check" for p in BACKENDS)
    (d / file).write_text(HAPROXY.format(servers=servers, port=port, bind=bind, log=log))
    return ["haproxy", "-db", "-f", f"{d}/{file}"]


def configure_others(d, ports, listen="", tls="", bind=""):
    """Writes the configurations of nginx and HAProxy, with these additions where they listen; the commands that start them."""
    user, temp = unprivileged_nginx(d)
    servers = " ".join(f"server 127.0.0.1:{p};" for p in BACKENDS)
    nginx = NGINX_PROXY.format(d=d, user=user, temp=temp, servers=servers, port=ports["nginx"], listen=listen, tls=tls)
    (d / "proxy.conf").write_text(nginx)
    return {
        "HAProxy": configure_haproxy(d, "haproxy.cfg", ports["HAProxy"], bind),
        "nginx": ["nginx", "-e", f"{d}/proxy.log", "-c", f"{d}/proxy.conf"],
    }


def start(plimsoll, d):
    backends = start_backends(d)
    others = configure_others(d, PORTS)
    for name, (policy, logs) in FRONT_ENDS.items():
        port = PORTS[name]
        text = PLIMSOLL.format(backends=backend_tables(), port=port, policy=policy, admin=port + 20)
        (d / f"{port}.toml").write_text(text + logs.format(policy=port, d=d))
    source = pathlib.Path(__file__).with_name("bare.c")
    subprocess.run(["cc", "-O2", "-o", d / "bare", source], check=True)
    time.sleep(0.3)
    commands = {
        **others,
        "HAProxy log": configure_haproxy(d, "log.cfg", PORTS["HAProxy log"], log="log stdout format raw local0\n  option httplog"),
        **{name: [plimsoll, "balance", "--no-watch", "--config", f"{d}/{PORTS[name]}.toml"] for name in FRONT_ENDS},
        "bare": [d / "bare", str(PORTS["bare"]), *map(str, BACKENDS)],
    }
    proxies = []
    for name, command in commands.items():
        with (d / f"{PORTS[name]}.out").open("wb") as stdout:
            proxies.append(Proxy(name, command, PORTS[name], stdout))
    return backends, proxies


def run(usage, start, measure):
    """Has `start` make back-ends and proxies of the program that is named, in a directory, and `measure` what they cost."""
    if len(sys.argv) != 2:
        sys.exit(usage)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as directory:
        backends, proxies = start(sys.argv[1], pathlib.Path(directory))
        try:
            for proxy in proxies:
                proxy.wait_until_ready()
            measure(proxies)
        finally:
            for proxy in proxies:
                proxy.stop()
            backends.terminate()
            backends.wait()


def measure_all(proxies):
    print("CPU time of the proxy per request. HAProxy log: with its own log of requests, to a file. round_robin and lard_r:")
    print("with JSON access log and decision log; no log, access log: round_robin with neither, and with the first alone;")
    print("bare: does nothing but pass bytes on. Health checks and admin API are on.\n")
    measure_cpu(proxies)
    few = [proxy for proxy in proxies if proxy.name in ("HAProxy", "nginx", "round_robin", "lard_r", "bare")]
    measure_syscalls(few)
    measure_memory(few)


if __name__ == "__main__":
    run(__doc__, start, measure_all)
