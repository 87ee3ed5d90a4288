"""What Autobahn's suite says of an echo server of WebSockets, directly and through the front-end: the same must come out.

Usage: websocket.py PLIMSOLL [CASES]        CASES: as Autobahn writes them, for example `1.*,7.*`; all by default

The suite needs Python 2.7: PYTHON27 in the environment names one; otherwise `python2.7` or one of pyenv's is taken. The suite is
installed below benches/.venv27.
"""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import parts

VERSION = "25.10.1"
# The suite's server takes only requests for its own port, so all have the same, at addresses of their own.
PORT = 9755
ECHO, PLAIN, SECURE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
CONFIG = """
[[listener]]
address = "{plain}:{port}"
[[listener]]
address = "{secure}:{port}"
{tls}
[[backend]]
address = "{echo}:{port}"
[health]
probe = "tcp"
[admin]
address = "127.0.0.1:9758"
"""


def python27():
    of_pyenv = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/2.7.*/bin/python")))
    # What pyenv puts in the way of `python2.7` works only where that version is chosen.
    chosen = os.environ.get("PYTHON27") or next(reversed(of_pyenv), None) or shutil.which("python2.7")
    return chosen or sys.exit("the suite needs Python 2.7: name one with PYTHON27=PATH (pyenv install 2.7.18 makes one)")


def suite():
    """Installs the suite if it is not there yet. The commands of its client and of its echo server."""
    python, home = python27(), pathlib.Path(__file__).parent.parent / ".venv27"
    if not (home / "autobahntestsuite").exists():
        parts.run(python, "-m", "pip", "install", "--quiet", "--target", home, f"autobahntestsuite=={VERSION}")
    prepare = f"import site; site.addsitedir({str(home)!r})\n"
    client = prepare + "from autobahntestsuite.wstest import run; run()"
    server = prepare + f"""
from twisted.internet import reactor
from autobahntestsuite.testee import TesteeServerFactory
reactor.listenTCP({PORT}, TesteeServerFactory("ws://{ECHO}:{PORT}"), interface="{ECHO}")
reactor.run()"""
    return [python, "-c", client], [python, "-c", server]


def main(plimsoll, cases="*"):
    client, server = suite()
    with tempfile.TemporaryDirectory() as directory:
        parts.certificates(directory)
        config = CONFIG.format(port=PORT, plain=PLAIN, secure=SECURE, echo=ECHO, tls=parts.TLS.format(d=directory))
        servers = {"direct": f"ws://{ECHO}:{PORT}", "HTTP/1.1": f"ws://{PLAIN}:{PORT}", "TLS": f"wss://{SECURE}:{PORT}"}
        spec = pathlib.Path(directory) / "spec.json"
        spec.write_text(json.dumps({
            "outdir": f"{directory}/reports",
            "servers": [{"agent": agent, "url": url} for agent, url in servers.items()],
            "cases": cases.split(","),
            "exclude-cases": [],
            "exclude-agent-cases": {},
        }))
        with parts.Process(server, (ECHO, PORT)), parts.front_end(plimsoll, directory, config, (PLAIN, PORT)):
            subprocess.run([*client, "-m", "fuzzingclient", "-s", str(spec)], check=True,
                           stdout=subprocess.DEVNULL, timeout=3600)
        found = json.loads((pathlib.Path(directory) / "reports/index.json").read_text())
    tell(found, servers)


def tell(found, servers):
    """Counts the results, and names the cases whose result is another one through the front-end."""
    result = lambda agent, case: (found[agent][case]["behavior"], found[agent][case]["behaviorClose"])
    different = 0
    for agent in servers:
        results = [found[agent][case]["behavior"] for case in found[agent]]
        counts = ", ".join(f"{results.count(each)} {each}" for each in sorted(set(results)))
        print(f"{agent}: {len(results)} cases: {counts}")
        for case in found["direct"]:
            if result(agent, case) != result("direct", case):
                different += 1
                print(f"  {case}: {result(agent, case)}, directly {result('direct', case)}")
    sys.exit(1 if different or not found["direct"] else 0)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
