"""CPU time of Plimsoll's front-end under TLS beside HAProxy and nginx.

Usage: tls.py PLIMSOLL        PLIMSOLL: the optimized program

As bench.py, whose clients, back-ends and way of measuring it uses: the proxies on CPU 0, the load on CPU 1, each proxy with one
thread, one certificate of ECDSA (P-256), TLS to the client and none to the back-ends. Three kinds of load: kept connections under
TLS 1.3; a connection for each request with a full handshake under TLS 1.3 (wrk); and connections that resume a session under TLS 1.2
(openssl s_time, which asks for one document on each). The proxies take turns within each round; ratios are formed within a round
beside the better of HAProxy and nginx, and medians over the rounds are shown. Wrong answers fail the run, missed goals are only shown.

ROUNDS (5) and SECONDS (2) in the environment set the number of rounds and the time of one measurement.
"""

import pathlib
import re
import socket
import ssl
import statistics
import subprocess
import sys
import time

import bench

GOAL = 1.0
IDLE_GOAL_BYTES = 16_384
IDLE_CONNECTIONS = 2000
PORTS = {"HAProxy": 9631, "nginx": 9632, "Plimsoll": 9633}
NGINX_TLS = """ssl_certificate {d}/site.pem; ssl_certificate_key {d}/site.key;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:10m;"""
HAPROXY_TLS = " ssl crt {d}/both.pem alpn {alpn} ssl-min-ver TLSv1.2"
PLIMSOLL = """
workers = 1
{backends}
[[listener]]
address = "127.0.0.1:{port}"
tls = true
[[certificate]]
chain = "{d}/site.pem"
key = "{d}/site.key"
[policy]
name = "round_robin"
[health]
path = "/100"
[admission]
limit = 4096
[admin]
enabled = false
"""


class TlsProxy(bench.Proxy):
    """A proxy whose clients speak TLS."""

    def url(self, size_bytes):
        return f"https://127.0.0.1:{self.port}/{size_bytes}"


def issue(directory):
    """A certificate of its own signature, as all three read it."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    command += ["-subj", "/CN=bench", "-addext", "subjectAltName=DNS:bench.example"]
    command += ["-keyout", f"{directory}/site.key", "-out", f"{directory}/site.pem"]
    subprocess.run(command, check=True, capture_output=True)
    both = pathlib.Path(f"{directory}/site.pem").read_text() + pathlib.Path(f"{directory}/site.key").read_text()
    pathlib.Path(f"{directory}/both.pem").write_text(both)


def kept(size_bytes):
    """A load of requests on 32 kept connections."""
    return lambda proxy: bench.load(proxy.url(size_bytes), 32, bench.SECONDS)


def handshakes(proxy):
    """A load of connections with one request each; how many there were."""
    command = ["taskset", "-c", "1", "wrk", "-t1", "-c32", f"-d{bench.SECONDS}", "-H", "Connection: close", proxy.url(100)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        sys.exit(f"{proxy.name}: wrong answers\n{out}")
    return int(re.search(r"(\d+) requests in", out).group(1))


def resumed(proxy):
    """A load of connections, one after the other, that resume a session; how many there were."""
    command = ["taskset", "-c", "1", "openssl", "s_time", "-connect", f"127.0.0.1:{proxy.port}", "-reuse", "-tls1_2"]
    command += ["-time", str(bench.SECONDS), "-www", "/100"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"(\d+) connections in (\d+) real seconds", out)
    if not lines:
        sys.exit(f"{proxy.name}: no connections\n{out}")
    return int(lines[-1][0])


LOADS = {
    "8 KB, kept connections": kept(8192),
    "100 KB, kept connections": kept(102_400),
    "full handshakes": handshakes,
    "resumed, TLS 1.2": resumed,
}


def cost_us(proxy, load):
    """CPU time for each request or connection."""
    before = proxy.cpu_us()
    count = load(proxy)
    return (proxy.cpu_us() - before) / count


def measure(proxies, loads):
    """Prints a line for each load."""
    print(f"{'':28}" + "".join(f"{p.name:>14}" for p in proxies) + "    Plimsoll / the better of the others")
    for label, load in loads.items():
        rounds = []
        for number in range(bench.ROUNDS):
            turn = proxies[number % len(proxies) :] + proxies[: number % len(proxies)]
            rounds.append({p.name: cost_us(p, load) for p in turn})
        medians = [statistics.median(r[p.name] for r in rounds) for p in proxies]
        ratio = statistics.median(r["Plimsoll"] / min(r["HAProxy"], r["nginx"]) for r in rounds)
        print(
            f"{label:>26}  " + "".join(f"{m:11.2f} us" for m in medians) + f"    {ratio:5.2f} ({bench.mark(ratio, GOAL)})",
            flush=True,
        )


def idle_bytes(proxy, ask, alpn):
    """Memory of the proxy for each idle connection that has had one answer; `ask` gets it, and `alpn` is what is spoken."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    before, clients = proxy.resident_bytes(), []
    for _ in range(IDLE_CONNECTIONS):
        client = context.wrap_socket(socket.create_connection(("127.0.0.1", proxy.port), 5))
        ask(client)
        clients.append(client)
    after = proxy.resident_bytes()
    for client in clients:
        client.close()
    return (after - before) / IDLE_CONNECTIONS


def measure_idle(proxies, goal_bytes, ask, alpn):
    print(f"\nResident memory per idle connection ({IDLE_CONNECTIONS} connections, one request each)")
    for proxy in proxies:
        per = idle_bytes(proxy, ask, alpn)
        print(f"  {proxy.name:12} {per:7.0f} B" + (f"   {bench.mark(per, goal_bytes)}" if proxy.name == "Plimsoll" else ""))


def ask(client):
    client.sendall(b"GET /100 HTTP/1.1\r\nHost: bench\r\n\r\n")
    client.recv(4096)


def commands(plimsoll, d, nginx_listen, haproxy_alpn):
    """Writes the three configurations; the commands that start the proxies."""
    (d / "tls.toml").write_text(PLIMSOLL.format(d=d, backends=bench.backend_tables(), port=PORTS["Plimsoll"]))
    bind = HAPROXY_TLS.format(d=d, alpn=haproxy_alpn)
    others = bench.configure_others(d, PORTS, listen=nginx_listen, tls=NGINX_TLS.format(d=d), bind=bind)
    return {**others, "Plimsoll": [plimsoll, "balance", "--no-watch", "--config", f"{d}/tls.toml"]}


def starter(nginx_listen, haproxy_alpn):
    """Makes back-ends and proxies whose clients speak TLS: nginx listens with these parameters, HAProxy offers that protocol."""

    def start(plimsoll, d):
        issue(d)
        backends = bench.start_backends(d)
        time.sleep(0.3)
        all_commands = commands(plimsoll, d, nginx_listen, haproxy_alpn)
        return backends, [TlsProxy(name, command, PORTS[name]) for name, command in all_commands.items()]

    return start


def measure_all(proxies):
    print("CPU time of the proxy per request, or per connection with one request\n")
    measure(proxies, LOADS)
    measure_idle(proxies, IDLE_GOAL_BYTES, ask, "http/1.1")


if __name__ == "__main__":
    bench.run(__doc__, starter(" ssl", "http/1.1"), measure_all)
