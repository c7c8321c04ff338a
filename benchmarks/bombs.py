"""What the largest messages that a hostile node can send take to read, in time and memory.

`python benchmarks/bombs.py` prints the table of bombs.md: each bomb is read in a process of its
own, once by protobuf and our readers alone, as it was before there were bounds, and once with
them. `--size 122880` for a broker's limit; a word picks the bombs whose names have it.

With PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python the slow protobuf reads them.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import multiprocessing
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from submerge import PeerError
from submerge_proto.implementation import implementation
from submerge_proto.wire import bounds, codec
from support.bombs import BOMBS
from support.wire import HELLO

HEAD = (
    "| bomb | bytes | refused as | without bounds: MiB | seconds | with them: MiB | seconds |",
    "|---|---|---|---|---|---|---|",
)


def peak_mib() -> float:
    """Return the most memory that this process ever had, in MiB; Linux."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def forget_peak() -> None:
    """Count the peak from here: what made the bomb is not what it costs."""
    Path("/proc/self/clear_refs").write_text("5")


def read(name: str, size: int, bounded: bool) -> tuple[int, str, float, float]:
    """Return a bomb's bytes, what it is refused as, and what that took: MiB and seconds."""
    kind, made = BOMBS[name]
    data = made(size)
    if not bounded:
        bounds.MOST_PARTS = bounds.MOST_WORDS = 2**60
    codec.decode("watch", codec.encode(HELLO))  # what is loaded late is loaded now
    forget_peak()
    before, began = peak_mib(), time.perf_counter()
    try:
        codec.decode(kind, data)
        refused = "taken"
    except PeerError as error:
        refused = error.kind
    return len(data), refused, peak_mib() - before, time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("words", nargs="*")
    options.add_argument("--size", type=int, default=4 * 1024 * 1024)
    given = options.parse_args()
    print(f"protobuf: {implementation()}\n", *HEAD, sep="\n")
    context = multiprocessing.get_context("spawn")
    for name in BOMBS:
        if given.words and not any(word in name for word in given.words):
            continue
        cells = []
        for bounded in (False, True):
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                # The longest honest tail that a bomb gets beside its own bytes is 900 bytes.
                took = pool.submit(read, name, given.size - 900, bounded).result()
            bytes_, refused, mib, seconds = took
            cells.append(f"{mib:.0f} | {seconds:.2f}")
        print(f"| {name} | {bytes_:,} | {refused} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
