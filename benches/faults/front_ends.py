"""The front-ends that are compared, each with its defaults: what a user writes on the first day."""

import pathlib
import resource
import socket
import subprocess
import sys
import time

PORT = 9720
BACKENDS = (9711, 9712, 9713)

HAPROXY = """
global
  maxconn {connections}
defaults
  mode http
  timeout client 60s
  timeout http-request 10s
  timeout server 30s
  timeout connect 5s
  option redispatch
  retry-on all-retryable-errors
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  balance roundrobin
  option httpchk GET /health
  default-server inter 1s fastinter 250ms rise 2 fall 2
  {servers}
"""
NGINX = """
worker_processes 2; pid {d}/nginx.pid; error_log {d}/nginx.log crit; daemon off; user root; worker_rlimit_nofile 16384;
events {{ worker_connections {half}; }}
http {{ access_log off; client_body_temp_path {d}/body; proxy_temp_path {d}/proxy; fastcgi_temp_path {d}/f;
  uwsgi_temp_path {d}/u; scgi_temp_path {d}/s;
  upstream b {{ {servers} }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://b; }} }} }}
"""
PLIMSOLL = """
[[listener]]
address = "127.0.0.1:{port}"
{backends}
[policy]
name = "{policy}"
[health]
path = "/health"
{limits}
"""
POLICIES = ("weighted_round_robin", "least_connections", "lard_r")


def names():
    return [f"plimsoll {policy}" for policy in POLICIES] + ["HAProxy", "nginx"]


def wait_for(port, process, seconds=10):
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"nothing listens at {port}: {process.args}")
            time.sleep(0.01)


class Process:
    """A process that ends with this object."""

    def __init__(self, args, port, wait=True):
        self.process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait:
            wait_for(port, self.process)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def backend(index, **options):
    args = [sys.executable, str(pathlib.Path(__file__).with_name("backend.py")), f"b{index}", str(BACKENDS[index])]
    return Process([*args, *(f"{key}={value}" for key, value in options.items())], BACKENDS[index])


class FrontEnd(Process):
    """The front-end of this name in front of the back-ends, with at most `connections` clients where that is given."""

    def __init__(self, name, plimsoll, directory, connections=None):
        resource.setrlimit(resource.RLIMIT_NOFILE, (16384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        directory = pathlib.Path(directory)
        file = directory / "config"
        if name == "HAProxy":
            servers = "\n  ".join(f"server b{i} 127.0.0.1:{port} check" for i, port in enumerate(BACKENDS))
            file.write_text(HAPROXY.format(port=PORT, servers=servers, connections=connections or 4096))
            args = ["haproxy", "-db", "-f", str(file)]
        elif name == "nginx":
            servers = " ".join(f"server 127.0.0.1:{port};" for port in BACKENDS)
            half = connections // 2 if connections else 768
            file.write_text(NGINX.format(d=directory, port=PORT, servers=servers, half=half))
            args = ["nginx", "-c", str(file)]
        else:
            backends = "\n".join(f'[[backend]]\nname = "b{i}"\naddress = "127.0.0.1:{p}"' for i, p in enumerate(BACKENDS))
            limits = f"[limits]\nconnections = {connections}" if connections else ""
            file.write_text(PLIMSOLL.format(port=PORT, backends=backends, policy=name.split()[1], limits=limits))
            args = [plimsoll, "balance", "--no-watch", "--config", str(file)]
        super().__init__(args, PORT)
        self.name = name

    def stop(self):
        # nginx and HAProxy have workers, which end with their master only when it may say so.
        self.process.terminate()
        try:
            self.process.wait(0.5 if self.name == "nginx" else 2)
        except subprocess.TimeoutExpired:
            pass
        super().stop()
