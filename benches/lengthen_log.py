"""Writes an access log again and again, each time with later dates, until there are enough lines.

Usage: lengthen_log.py LOG.gz LINES >LONG.log

Lines without a date stay as they are, so that broken lines are as frequent as in the original.
"""

import datetime
import gzip
import re
import sys

# The date of a common log's time, as in [01/Jul/1995:00:00:01 -0400].
DATE = re.compile(rb"(?<=\[)\d\d/[A-Z][a-z]{2}/\d{4}(?=:)")
FORMAT = "%d/%b/%Y"


def parse(text):
    """The date that an access log writes so."""
    return datetime.datetime.strptime(text.decode(), FORMAT).date()


def main():
    """Reads, repeats, writes."""
    path, lines = sys.argv[1], int(sys.argv[2])
    with gzip.open(path) as file:
        log = file.read()
    dates = {text: parse(text) for text in set(DATE.findall(log))}
    span = max(dates.values()) - min(dates.values()) + datetime.timedelta(days=1)
    for copy in range(-(-lines // log.count(b"\n"))):
        later = {text: (date + copy * span).strftime(FORMAT).encode() for text, date in dates.items()}
        sys.stdout.buffer.write(DATE.sub(lambda match: later[match[0]], log))


if __name__ == "__main__":
    main()
