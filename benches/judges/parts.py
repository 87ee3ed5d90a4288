"""What the judges share: certificates, a back-end, a front-end. All of it is on the loopback interface, at addresses
127.0.0.1 to 127.0.0.3, ports 9751 to 9759."""

import http.server
import pathlib
import socket
import subprocess
import sys
import threading
import time

TLS = """tls = true
[[certificate]]
chain = "{d}/server.pem"
key = "{d}/server.key"
"""


def run(*args, **options):
    """Runs a command; its output is shown where it fails."""
    done = subprocess.run(args, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}: {done.stdout}{done.stderr}")
    return done.stdout


def certificates(directory):
    """A CA (`ca.pem`), a certificate of `localhost` and 127.0.0.1 that it has signed (`server.pem`, `server.key`), and one of a
    client (`client.pem`, `client.key`)."""
    directory = pathlib.Path(directory)
    key = ("-newkey", "rsa:3072", "-nodes", "-sha256")
    ca = directory / "ca.pem"
    run("openssl", "req", "-x509", *key, "-days", "300", "-subj", "/CN=Judge CA", "-keyout", directory / "ca.key", "-out", ca)
    for name, subject, use in (("server", "/CN=localhost", "serverAuth"), ("client", "/CN=judge", "clientAuth")):
        request, extensions = directory / f"{name}.csr", directory / f"{name}.ext"
        run("openssl", "req", *key, "-subj", subject, "-keyout", directory / f"{name}.key", "-out", request)
        extensions.write_text(f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={use}\nbasicConstraints=CA:FALSE\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", directory / "ca.key", "-CAcreateserial",
            "-days", "200", "-sha256", "-extfile", extensions, "-out", directory / f"{name}.pem")


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers every request with a few bytes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"ok\n")

    do_HEAD = do_POST = do_GET

    def log_message(self, *_):
        pass


def backend(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class Process:
    """A process that listens at an address, and ends with this object."""

    def __init__(self, args, address):
        self.process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(address, 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"nothing listens at {address}: {' '.join(map(str, args))}")
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def front_end(plimsoll, directory, config, address):
    file = pathlib.Path(directory) / "plimsoll.toml"
    file.write_text(config)
    run(plimsoll, "check", "--config", file)
    return Process([plimsoll, "balance", "--no-watch", "--config", str(file)], address)
