"""How long a CSV of 10^7 numbers and its times takes to read, over pyarrow's own reader.

Ten channels, 10^6 rows, times as text. pyarrow streams the file by itself, on one thread, and finds
the types of columns; our reader finds them too, and checks the order of times and the values of
each channel. The median of some runs of each, one after the other.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from pyarrow import csv

from submerge_files.reader import ReadingOptions, open_recordings

ROWS, CHANNELS = 1_000_000, 10


def written(path: Path) -> Path:
    """Write the file, a row a second."""
    rows = np.round(np.random.default_rng(0).normal(20, 3, (ROWS, CHANNELS)), 4)
    times = np.datetime64("2026-01-01T00:00:00") + np.arange(ROWS)
    csv.write_csv(pa.table({"time": times, **{f"c{i}": rows[:, i] for i in range(CHANNELS)}}), path)
    return path


def by_pyarrow(path: Path) -> int:
    """Return how many rows pyarrow reads."""
    options = csv.ReadOptions(use_threads=False)
    return sum(batch.num_rows for batch in csv.open_csv(path, read_options=options))


def by_us(path: Path) -> int:
    """Return how many rows our reader reads."""
    return sum(len(block.rows) for block in open_recordings([path], ReadingOptions()).rows())


def seconds(read: Callable[[Path], int], path: Path) -> float:
    """Return how long a reader takes."""
    began = time.perf_counter()
    rows = read(path)
    took = time.perf_counter() - began
    return took if rows == ROWS else float("nan")


@click.command()
@click.option("--times", default=5, show_default=True, help="Runs of each.")
def command(times: int) -> None:
    """Print the seconds of both, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "a.csv")
        runs = [(seconds(by_pyarrow, path), seconds(by_us, path)) for _ in range(times + 1)][1:]
    theirs, ours = (statistics.median(each) for each in zip(*runs, strict=True))
    click.echo(f"pyarrow {theirs:.2f} s, submerge {ours:.2f} s, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    command()
