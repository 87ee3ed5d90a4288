"""Draws throughput.svg from the runs.csv that `plimsoll simulate ... --out DIR` writes.

Usage: python3 docs/images/throughput.py DIR/runs.csv >docs/images/throughput.svg
"""

import csv
import sys

SERIES = [  # policy, label, class
    ("lard_r", "LARD/R", "a"),
    ("lard", "LARD", "b"),
    ("uri_hash", "LB (URI hash)", "c"),
    ("lb_gc", "LB/GC", "d"),
    ("wrr_gms", "WRR/GMS", "e"),
    ("weighted_round_robin", "WRR", "f"),
]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 130, 44, 52

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #333 }
.title { font-weight: 600; font-size: 15px }
.grid { stroke: #ccc; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5 }
.a { stroke: #0b6bcb } .b { stroke: #1a8f5c } .c { stroke: #b3620e }
.d { stroke: #8246af } .e { stroke: #a0711c; stroke-dasharray: 6 4 } .f { stroke: #c62f2f }
.dot { fill: #fff }
.e.dot { stroke-dasharray: none }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .grid { stroke: #444 } .dot { fill: #0d1117 }
  .a { stroke: #6cb0f5 } .b { stroke: #5fd09c } .c { stroke: #f0a352 }
  .d { stroke: #c59bea } .e { stroke: #d8b25c } .f { stroke: #ff8080 }
}
"""


def main():
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    points = {}
    for row in rows:
        points.setdefault(row["policy"], []).append((int(row["backends"]), float(row["throughput_rps"])))
    most_x = max(x for line in points.values() for x, _ in line)
    step = 2000
    most_y = -(-max(y for line in points.values() for _, y in line) // step) * step

    def x_of(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * x / most_x

    def y_of(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / most_y

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Throughput by number of back-ends for six policies">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="22">Throughput in requests per second, Rice-like workload</text>',
    ]
    for tick in range(0, int(most_y) + 1, step):
        y = y_of(tick)
        out.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4.5:.1f}" text-anchor="end">{tick:,}</text>')
    for x in sorted({x for line in points.values() for x, _ in line}):
        out.append(f'<text x="{x_of(x):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle:.0f}" y="{HEIGHT - 10}" text-anchor="middle">back-ends</text>')
    lowest = None
    for policy, label, style in sorted(SERIES, key=lambda s: max(points[s[0]])[1]):
        line = sorted(points[policy])
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        out.append(f'<polyline class="line {style}" points="{path}"/>')
        for x, y in line:
            out.append(f'<circle class="dot {style}" stroke-width="2" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3"/>')
        # Labels stand at the ends of their lines, moved up where they would overlap.
        y = y_of(line[-1][1]) + 4.5
        lowest = y if lowest is None else min(y, lowest - 16)
        out.append(f'<text x="{WIDTH - RIGHT + 12}" y="{lowest:.1f}">{label}</text>')
    out.append("</svg>")
    print("\n".join(out))


main()
