"""What a flood does to a root: its memory, and the latency of an honest child beside it.

`python benchmarks/floods.py` prints the table of floods.md. Each flood runs against a new root,
a process with mutual TLS, for `--seconds`; then the root is left alone for `--rest`. The child
reports every 0.2 s over a connection of its own; a second child opens a new
connection each second. Words pick the floods whose names begin with one of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.besieged import Besieged, HonestChild, end
from support.programs import Programs

MIB = 1 << 20
RUNS = (
    *(("garbage", n, 1) for n in (1, 16, 64)),
    *(("garbage", 64, 64), ("many_calls", 16, 1), ("many_calls", 16, 16)),
    *(("fitting", 16, 1), ("fitting", 16, 16), ("slow", 16, 1), ("slow", 16, 16)),
    *(("unread", 16, 1), ("unread", 16, 16), ("headers_only", 16, 16), ("half_headers", 500, 1)),
    *(("idle", 2000, 1), ("no_handshake", 2000, 1), ("pings", 16, 1), ("settings", 16, 1)),
    *(("resets", 16, 1), ("watches", 16, 1), ("watches", 16, 16)),
    *(("http_silent", 1000, 1), ("http_slow", 1000, 1), ("http_gets", 32, 1)),
    ("http_body", 32, 1),
)
"""Floods, connections and kits."""

HEAD = (
    "| flood | connections | kits | MiB before | most | after | median ms | p95 ms | newcomer ms |\
 tries refused | lost | counted as |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
)


def row(name: str, connections: int, names: int, seconds: float, rest: float, more: str) -> str:
    """Run one flood; return its line of the table."""
    with Programs() as programs:
        root = Besieged(programs, more)
        with HonestChild(root) as child:
            time.sleep(3.0)
            child.latency()
            before = root.resident
            root.forget_peak()
            flood = root.flood(name, connections, names)
            time.sleep(seconds)
            latency = child.latency()
            tries = sorted(set(child.refused))
            end(flood)
            time.sleep(rest)
            peak, after = root.peak, root.resident
            try:
                counted = root.refused()
            except OSError as error:
                counted = {str(error): 1}
    shown = ", ".join(f"`{reason}` {n:,}" for reason, n in sorted(counted.items()))
    sizes = " | ".join(f"{size / MIB:.0f}" for size in (before, peak, after))
    times = " | ".join(f"{1000 * s:.0f}" for s in (latency.median, latency.p95, latency.newcomer))
    for line in tries[:3]:
        print(line, file=sys.stderr)
    return (
        f"| {name} | {connections} | {names} | {sizes} | {times}"
        f" | {latency.refused} | {latency.lost} | {shown} |"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("words", nargs="*")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--rest", type=float, default=40.0)
    options.add_argument("--more", default="", help="further lines of [listen.grpc]")
    given = options.parse_args()
    print(*HEAD, sep="\n")
    for run in RUNS:
        if not given.words or any(run[0].startswith(word) for word in given.words):
            print(row(*run, given.seconds, given.rest, given.more), flush=True)


if __name__ == "__main__":
    main()
