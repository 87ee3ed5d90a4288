"""Runs one of Plimsoll's own measuring programs ROUNDS times and prints medians beside the goals.

Usage: alone.py polling PROGRAM           random polling from one front-end and from sixteen
       alone.py apache PROGRAM            connections to Apache back-ends
       alone.py study PROGRAM             the LARD study, in its usual length and ten times as long
       alone.py decisions PROGRAM         time per decision of each policy
       alone.py adaptload STUDY BOUNDARIES  the AdaptLoad study's day, boundaries and decisions
       alone.py classes PROGRAM           time to find the class of a request
       alone.py parsing PROGRAM LOG...    reading access logs
       alone.py sniffing PROGRAM          sniffing a request, and entering it into the estimate
       alone.py calls PROGRAM             CPU time per call of the client library
       alone.py inquiries PROGRAM         load inquiries to an agent, beside a bare echo
ROUNDS in the environment says how often (5 unless set, at least 2).
Exit status: 0 unless a program fails; a missed goal is only shown.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys

POLLING_REQUESTS = 5_000_000
# By number of front-ends.
POLLING_GOALS_RPS = {1: 4e6, 16: 2e6}
APACHE_REQUESTS = 4_000_000
APACHE_GOAL_RPS = 3e5
STUDY_GOAL_RPS = 3e6
STUDY_MULTIPLES = (1, 10)
# Ten times the requests may take at most so much more memory: what is kept for each target and back-end, but for no
# request, still fills up in a longer run.
STUDY_GOAL_MEMORY = 1.5
DECISION_GOAL_NS = 150
DECISION_GOAL_POLICY = "lard"
DECISION_GOAL_POPULARITY = "zipf 0.9"
ADAPTLOAD_GOAL_RPS = 2e6
ADAPTLOAD_GOAL_ADJUSTMENT_US = 20
ADAPTLOAD_GOAL_DECISION_NS = 50
CLASSES_GOAL_NS = 1000
PARSING_GOAL_LPS = 1.5e6
PARSING_GOAL_STEP = "read"
# Sniffing with classification, and entering into the estimate.
SNIFFING_GOALS_NS = {"sniff": 1000, "estimate": 300}
CALLS = 400_000
INQUIRIES_GOAL = 200_000
# The 99th percentile over that of a bare echo, while all CPUs are busy.
INQUIRIES_GOAL_P99 = 3
# By how the name of the form begins.
CALLS_GOALS_US = {"own counts": 10, "polls": 25}


def rounds():
    """How often each program runs."""
    text = os.environ.get("ROUNDS", "5")
    if not text.isdecimal() or int(text) < 2:
        sys.exit(f"alone: ROUNDS is '{text}'; give a whole number of at least 2")
    return int(text)


def run(command):
    """The program's JSON lines."""
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if process.returncode != 0:
        sys.exit(f"alone: status {process.returncode} from {' '.join(command)}")
    return [json.loads(line) for line in process.stdout.splitlines()]


def repeated(command):
    """For each line of the program's output, that line of every round."""
    return list(zip(*(run(command) for _ in range(rounds())), strict=True))


def values(lines, key):
    """One figure of every round."""
    return [line[key] for line in lines]


def median(lines, key):
    """The median of a figure over the rounds."""
    return statistics.median(values(lines, key))


def spread(lines, key, scale=1.0, digits=2):
    """Least and greatest figure of the rounds."""
    figures = values(lines, key)
    return f"{min(figures) / scale:.{digits}f} .. {max(figures) / scale:.{digits}f}"


def verdict(goal, met):
    """The goal and whether it is met."""
    return f"{goal}: {'met' if met else 'NOT MET'}"


def polling(program):
    """Requests per CPU-second of front-ends that ask two back-ends before each choice."""
    print(f"{'front-ends':>10}{'late':>6}{'requests':>12}{'mean response, ms':>19}{'discarded':>11}{'million requests/CPU-s':>24}{'min .. max':>15}  goal")
    for (front_ends, goal_rps), late_share in itertools.product(POLLING_GOALS_RPS.items(), (0, 0.13)):
        (lines,) = repeated([program, str(POLLING_REQUESTS), str(front_ends), str(late_share)])
        rate, first = median(lines, "requests_per_cpu_s"), lines[0]
        print(
            f"{front_ends:>10}{late_share:>6.0%}{first['requests']:>12,}{first['mean_response_ms']:>19.1f}{first['discarded']:>11.2%}"
            f"{rate / 1e6:>24.2f}{spread(lines, 'requests_per_cpu_s', 1e6):>15}"
            f"  {verdict(f'{goal_rps / 1e6:g} million', rate >= goal_rps)}"
        )


def apache(program):
    """Requests per CPU-second of connections to Apache back-ends, in a light and a heavy case."""
    print(f"{'policy':<18}{'requests/s':>11}{'server latency, s':>19}{'million requests/CPU-s':>24}{'min .. max':>15}  goal")
    for policy, rate_rps in itertools.product(("round_robin", "least_connections"), (4000, 6000)):
        (lines,) = repeated([program, str(APACHE_REQUESTS), str(rate_rps), policy])
        rate = median(lines, "requests_per_cpu_s")
        print(
            f"{policy:<18}{rate_rps:>11,}{lines[0]['server_latency_s']:>19.4f}"
            f"{rate / 1e6:>24.2f}{spread(lines, 'requests_per_cpu_s', 1e6):>15}"
            f"  {verdict(f'{APACHE_GOAL_RPS / 1e6:g} million', rate >= APACHE_GOAL_RPS)}"
        )


def study(program):
    """Requests per CPU-second and memory of the study's simulation."""
    print(f"{'requests':>12}{'million requests/CPU-s':>24}{'min .. max':>15}{'peak MiB':>10}  goal")
    peaks_mib = []
    for multiple in STUDY_MULTIPLES:
        (lines,) = repeated([program, "lard_r", "8", str(multiple)])
        rate = median(lines, "requests_per_cpu_s")
        peaks_mib.append(median(lines, "peak_mib"))
        print(
            f"{lines[0]['requests']:>12,}{rate / 1e6:>24.2f}{spread(lines, 'requests_per_cpu_s', 1e6):>15}"
            f"{peaks_mib[-1]:>10.1f}  {verdict(f'{STUDY_GOAL_RPS / 1e6:g} million', rate >= STUDY_GOAL_RPS)}"
        )
    growth = peaks_mib[-1] / peaks_mib[0]
    goal = verdict(f"at most {STUDY_GOAL_MEMORY:g}", growth <= STUDY_GOAL_MEMORY)
    print(f"Peak memory, {STUDY_MULTIPLES[-1]} times the requests to the usual number: {growth:.2f}  {goal}")


def inquiries(program, plimsoll):
    """Inquiries per CPU-second of `plimsoll agent`, and how long they take on a busy machine."""
    (lines,) = repeated([program, plimsoll])
    rate, echoes = median(lines, "inquiries_per_cpu_s"), median(lines, "echoes_per_cpu_s")
    ratios = [line["busy_p99_us"] / line["busy_echo_p99_us"] for line in lines]
    print(f"{'':>8}{'per CPU-second':>16}{'min .. max, thousand':>24}{'p99 with busy CPUs, us':>26}")
    for name, speed, p99 in (("agent", "inquiries_per_cpu_s", "busy_p99_us"), ("echo", "echoes_per_cpu_s", "busy_echo_p99_us")):
        print(f"{name:>8}{median(lines, speed):>16,.0f}{spread(lines, speed, 1e3, 0):>24}{median(lines, p99):>26.1f}")
    print(f"Inquiries per CPU-second: {rate:,.0f}  {verdict(f'{INQUIRIES_GOAL:,.0f}', rate >= INQUIRIES_GOAL)}; echo {echoes:,.0f}")
    ratio = statistics.median(ratios)
    goal = verdict(f"at most {INQUIRIES_GOAL_P99:g}", ratio <= INQUIRIES_GOAL_P99)
    print(f"p99 of the agent over that of the echo: {ratio:.2f} ({min(ratios):.2f} .. {max(ratios):.2f})  {goal}")


def decisions(program):
    """Nanoseconds per decision, a row per policy."""
    columns = {}
    for lines in repeated([program]):
        columns.setdefault((lines[0]["popularity"], lines[0]["backends"]), {})[lines[0]["policy"]] = lines
    print(f"{'policy':<28}" + "".join(f"{f'{popularity}, {count}':>15}" for popularity, count in columns))
    for policy in next(iter(columns.values())):
        cells = (f"{median(column[policy], 'ns_per_decision'):>15.0f}" for column in columns.values())
        print(f"{policy:<28}" + "".join(cells))
    for (popularity, count), column in columns.items():
        if popularity == DECISION_GOAL_POPULARITY:
            lines = column[DECISION_GOAL_POLICY]
            ns = median(lines, "ns_per_decision")
            goal = verdict(f"under {DECISION_GOAL_NS} ns", ns < DECISION_GOAL_NS)
            rounds_ns = spread(lines, "ns_per_decision", digits=0)
            print(f"{DECISION_GOAL_POLICY}, {popularity}, {count} back-ends: {ns:.0f} ns ({rounds_ns})  {goal}")


def adaptload(study_program, boundary_program):
    """Requests per CPU-second of the study's day, and what the policy itself costs."""
    (lines,) = repeated([study_program])
    rate = median(lines, "requests_per_cpu_s")
    print(
        f"{lines[0]['requests']:,} requests: {rate / 1e6:.2f} million/CPU-s"
        f" ({spread(lines, 'requests_per_cpu_s', 1e6)}), {median(lines, 'peak_mib'):.1f} MiB"
        f"  {verdict(f'{ADAPTLOAD_GOAL_RPS / 1e6:g} million', rate >= ADAPTLOAD_GOAL_RPS)}"
    )
    adjustments, *decided = repeated([boundary_program])
    us = median(adjustments, "us_per_adjustment")
    goal = verdict(f"under {ADAPTLOAD_GOAL_ADJUSTMENT_US} µs", us < ADAPTLOAD_GOAL_ADJUSTMENT_US)
    print(
        f"{adjustments[0]['bins']} bins cut for {adjustments[0]['backends']} back-ends: {us:.1f} µs"
        f" ({spread(adjustments, 'us_per_adjustment', digits=1)})  {goal}"
    )
    for lines in decided:
        ns = median(lines, "ns_per_decision")
        goal = verdict(f"under {ADAPTLOAD_GOAL_DECISION_NS} ns", ns < ADAPTLOAD_GOAL_DECISION_NS)
        rounds_ns = spread(lines, "ns_per_decision", digits=0)
        print(f"Choice and count on {lines[0]['backends']} back-ends: {ns:.0f} ns ({rounds_ns})  {goal}")


def classes(program):
    """Nanoseconds to classify a request, a row per table."""
    print(f"{'table':<12}{'patterns':>10}{'ns per request':>16}{'min .. max':>16}  goal")
    for lines in repeated([program]):
        table, ns = lines[0]["table"], median(lines, "ns_per_request")
        # Nobody sends such requests but to do harm: their cost has a bound, and no goal.
        goal = "" if table == "hostile" else verdict(f"at most {CLASSES_GOAL_NS} ns", ns <= CLASSES_GOAL_NS)
        row = f"{table:<12}{lines[0]['entries']:>10,}{ns:>16.0f}{spread(lines, 'ns_per_request', digits=0):>16}"
        print(f"{row}  {goal}".rstrip())


def parsing(program, *logs):
    """Lines per CPU-second."""
    print(f"{'log':<24}{'step':<11}{'lines':>10}{'million lines/CPU-s':>21}{'min .. max':>16}  goal")
    for log in logs:
        for lines in repeated([program, log]):
            first, rate = lines[0], median(lines, "lines_per_cpu_s")
            goal = verdict(f"{PARSING_GOAL_LPS / 1e6:g} million", rate >= PARSING_GOAL_LPS)
            print(
                f"{os.path.basename(log):<24}{first['step']:<11}{first['lines']:>10,}{rate / 1e6:>21.2f}"
                f"{spread(lines, 'lines_per_cpu_s', 1e6):>16}  {goal if first['step'] == PARSING_GOAL_STEP else ''}".rstrip()
            )


def sniffing(program):
    """Nanoseconds per request, a row per step."""
    for lines in repeated([program]):
        what, ns = lines[0]["what"], median(lines, "ns_per_request")
        goal_ns = SNIFFING_GOALS_NS.get(what)
        judged = "" if goal_ns is None else verdict(f"at most {goal_ns} ns", ns <= goal_ns)
        print(f"{what:<10}{ns:>6.0f} ns ({spread(lines, 'ns_per_request', digits=0)})  {judged}".rstrip())


def calls(program):
    """CPU time per call above a direct call, a row per form."""
    print(f"{'form':<34}{'µs CPU above a direct call':>28}{'min .. max':>16}{'failed':>8}  goal")
    for lines in repeated([program, str(CALLS)]):
        form, above_us = lines[0]["form"], median(lines, "above_direct_us")
        goal_us = next((goal for start, goal in CALLS_GOALS_US.items() if form.startswith(start)), None)
        judged = "" if goal_us is None else verdict(f"at most {goal_us}", above_us <= goal_us)
        row = f"{form:<34}{above_us:>28.2f}{spread(lines, 'above_direct_us'):>16}{sum(values(lines, 'failed')):>8}"
        print(f"{row}  {judged}".rstrip())


if __name__ == "__main__":
    WHAT = {
        "polling": polling,
        "apache": apache,
        "inquiries": inquiries,
        "classes": classes,
        "study": study,
        "decisions": decisions,
        "adaptload": adaptload,
        "parsing": parsing,
        "sniffing": sniffing,
        "calls": calls,
    }
    if len(sys.argv) < 3 or sys.argv[1] not in WHAT:
        sys.exit(__doc__)
    WHAT[sys.argv[1]](*sys.argv[2:])
