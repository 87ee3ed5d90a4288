"""What a process uses, as /proc tells it."""

import os


def memory_mib(pid, key="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(f"{key}:"))
    return int(line.split()[1]) / 1024


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
