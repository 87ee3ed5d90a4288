"""Measures what polls cost `plimsoll balance`, beside its own counts, and beside bare datagrams.

Usage: bench.py PLIMSOLL BARE_POLLS
Eight agents with an origin each, two front-ends with `random_polling` of two (one learns loads by polls, one counts its own requests), and
wrk, all on loopback. CPU time is the front-end's process alone, from /proc. ROUNDS in the environment says how often (5 unless set).
Exit status: 0 unless a program fails; a missed goal is only shown.
"""

import contextlib
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile

ORIGINS = 8
# Connections: as in part (f), and one for the latency without queues.
BUSY, ALONE = 16, 1
SECONDS = 4
CPU_GOAL = 1.35
# Added median latency over one round trip of a bare datagram between two CPUs. On the same CPU one takes a fifth of that or less, and it is
# the system that chooses where a thread runs: without fixed CPUs two measurements may differ ten times.
LATENCY_GOAL = 1.5
CLOCK_HZ = os.sysconf("SC_CLK_TCK")
UNIT_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


class Program:
    """A process of plimsoll, and where it listens."""

    def __init__(self, stack, command):
        self.process = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(self.process.terminate)

    def address(self, words):
        """The address behind these words in what it says."""
        said = []
        for line in self.process.stderr:
            said.append(line)
            found = re.search(re.escape(words) + r"(\S+?:\d+)", line)
            if found:
                return found.group(1)
        sys.exit("polls: " + "".join(said))

    def cpu_s(self):
        """CPU time of the process so far."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_HZ


def wrk(address, connections):
    """Requests answered, and the median latency in microseconds."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", f"http://{address}/a"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        sys.exit(f"polls: {said}")
    median, unit = re.search(r"\n\s+50%\s+([\d.]+)(us|ms|s)", said).groups()
    return int(re.search(r"(\d+) requests in", said).group(1)), float(median) * UNIT_US[unit]


def key_file(directory):
    """The path of a new key that front-ends and agents share."""
    key = os.path.join(directory, "load.key")
    with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    return key


def start_agent(stack, plimsoll, key, name, serve):
    """Where an agent's origin and where the agent itself listens."""
    command = [plimsoll, "agent", "--key", key, "--name", name, "--load-listen", "127.0.0.1:0", "--serve", *serve]
    agent = Program(stack, [*command, "--origin-listen", "127.0.0.1:0"])
    words, said = ["origin on http://", "telling the load at "], {}
    for line in agent.process.stderr:
        for word in words:
            if word in line:
                said[word] = re.search(re.escape(word) + r"(\S+?:\d+)", line).group(1)
        if len(said) == len(words):
            return said[words[0]], said[words[1]]
    return sys.exit("polls: an agent has not started")


def started(stack, plimsoll, directory, agents, more):
    """A front-end with one worker, and its address."""
    text = 'workers = 1\n[[listener]]\naddress = "127.0.0.1:0"\n[admin]\naddress = "127.0.0.1:0"\n'
    for number, (origin, load) in enumerate(agents):
        text += f'[[backend]]\nname = "b{number}"\naddress = "{origin}"\nload_port = {load.rsplit(":", 1)[1]}\n'
    file = os.path.join(directory, f"{secrets.token_hex(4)}.toml")
    with open(file, "w") as out:
        out.write(text + more)
    front_end = Program(stack, [plimsoll, "balance", "--config", file])
    return front_end, front_end.address("listening on http://")


def start_front_end(stack, plimsoll, directory, agents, more):
    """The address of a new front-end."""
    return started(stack, plimsoll, directory, agents, more)[1]


def front_ends(stack, plimsoll, directory):
    """The front-end with its own counts and that with polls, with their addresses."""
    key = key_file(directory)
    agents = [start_agent(stack, plimsoll, key, f"b{n}", ["origin:synthetic:fixed:1KB"]) for n in range(ORIGINS)]
    policy = '[policy]\nname = "random_polling"\nsize = 2\n'
    polls = f'[load_information]\nfrom = "poll"\nkey_file = "{key}"\n'
    texts = {"own counts": policy, "polls": policy + polls}
    return {name: started(stack, plimsoll, directory, agents, text) for name, text in texts.items()}


def main(plimsoll, bare_polls):
    """Measures in turns, and prints medians."""
    rounds = int(os.environ.get("ROUNDS", "5"))
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        measured = front_ends(stack, plimsoll, directory)
        cpu_us, median_us = {name: [] for name in measured}, {name: [] for name in measured}
        bare = []
        for _ in range(rounds):
            for name, (front_end, address) in measured.items():
                before_s = front_end.cpu_s()
                requests, _ = wrk(address, BUSY)
                cpu_us[name].append(1e6 * (front_end.cpu_s() - before_s) / requests)
                median_us[name].append(wrk(address, ALONE)[1])
            said = subprocess.run([bare_polls], capture_output=True, text=True, check=True).stdout
            bare.append([json.loads(line) for line in said.splitlines()])
    print(f"{'':>12}{'CPU us/request':>16}{'min .. max':>16}{'median latency, us':>20}")
    for name in measured:
        spread = f"{min(cpu_us[name]):.1f} .. {max(cpu_us[name]):.1f}"
        median = statistics.median(median_us[name])
        print(f"{name:>12}{statistics.median(cpu_us[name]):>16.1f}{spread:>16}{median:>20.0f}")
    own, polls = (statistics.median(cpu_us[name]) for name in ("own counts", "polls"))
    print(f"CPU of polls over own counts, {BUSY} connections: {polls / own:.2f}  goal {CPU_GOAL}: {met(polls / own <= CPU_GOAL)}")
    def median_of(name, **of):
        """The median of what the bare program says in lines of this kind."""
        found = [line[name] for lines in bare for line in lines if of.items() <= line.items()]
        return statistics.median(found)

    floor = median_of("cpu_us_per_poll", under_way=16)
    print(f"bare datagrams to two echoes and back, 16 under way: {floor:.1f} us; if every request sent them, {(own + floor) / own:.2f} at least")
    round_trip = median_of("round_trip_us", cpus="apart", asked=1, pause_us=0)
    added = statistics.median(p - o for o, p in zip(median_us["own counts"], median_us["polls"], strict=True))
    times = added / round_trip
    print(
        f"added median latency, {ALONE} connection: {added:.0f} us, {times:.2f} times a bare round trip to another CPU of {round_trip:.1f} us"
        f"  goal {LATENCY_GOAL}: {met(times <= LATENCY_GOAL)}"
    )
    for cpus, words in (("any", "where the system likes"), ("apart", "on other CPUs")):
        one, pair = (median_of("round_trip_us", cpus=cpus, asked=asked, pause_us=100) for asked in (1, 2))
        print(f"after pauses of 100 us, bare echoes {words}: one {one:.1f} us, two at once {pair:.1f} us")


def met(is_met):
    """The verdict in words."""
    return "met" if is_met else "NOT MET"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
