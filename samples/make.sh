#!/usr/bin/env bash
# Makes the bundled sample trace: a synthetic workload, written as an access log in common log format.
#
# Usage: samples/make.sh [PLIMSOLL [FILE.gz]]      PLIMSOLL: the command, `plimsoll` unless given
set -euo pipefail
cd "$(dirname "$0")/.."
plimsoll=${1:-plimsoll}
file=${2:-samples/departmental.log.gz}

# The rice workload in small: 6,000 targets with 300 MiB instead of 37,703 with 1,418, and 150,000 requests within a
# day. The memory that covers 97, 98 and 99 % of the requests is not fitted to the published figures of the large one.
"$plimsoll" trace synth rice --seed 1 --requests 150000 --set targets=6000 --set total_mib=300 --set rate=1.7361 \
  --set cover97_mib=0 --set cover98_mib=0 --set cover99_mib=0 --to-format csv --to - |
  LC_ALL=C awk -F, '
    NR == 1 {
      if ($0 != "time_s,target,size_bytes,client" && $0 != "time_s,target,size_bytes") {
        print "make.sh: unexpected columns: " $0 > "/dev/stderr"
        exit 1
      }
      next
    }
    {
      second = int($1)
      # Clients mean nothing to the simulation; the addresses are of the range for documentation (RFC 5737).
      printf "192.0.2.%d - - [%02d/Mar/2026:%02d:%02d:%02d +0000] \"GET %s HTTP/1.1\" 200 %d\n", \
        1 + NR % 200, 2 + int(second / 86400), int(second / 3600) % 24, int(second / 60) % 60, second % 60, $2, $3
    }' |
  gzip -9 --no-name >"$file"
