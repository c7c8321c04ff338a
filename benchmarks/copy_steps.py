"""What a commit waits for a copy of its store: by steps of several sizes, and in other ways.

One thread commits 20 rows of 4 kB at a time, 5 ms after each other, as the commit thread does.
Another copies the store by SQLite's online backup over the same connection: in steps, between
which the connection is the commits' (`storage.py`); at once; or without a lock, when
SQLite's own mutex decides who is next.
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

import processes
from report import Table
from submerge_aggregator import storage
from submerge_aggregator.store import Store

ROW_BYTES, ROWS_AT_ONCE, PAUSE_S = 4000, 20, 0.005
ALONE_S = 3.0


class Way(NamedTuple):
    """A row of the table; times in milliseconds."""

    way: str
    copy_ms: float
    commits: int
    median_ms: float
    worst_ms: float


def measured(store: Store, way: str, rows: int, work: Callable[[], object]) -> Way:
    """Commit while some work is done."""
    ended, waits = threading.Event(), list[float]()

    def commit() -> None:
        rng = random.Random(1)  # noqa: S311 - to be repeated
        while not ended.is_set():
            some = {
                ("row", str(rng.randrange(rows))): os.urandom(ROW_BYTES)
                for _ in range(ROWS_AT_ONCE)
            }
            began = time.perf_counter()
            with store.copies.turn:
                store.write(some)
            waits.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)

    writer = threading.Thread(target=commit)
    writer.start()
    time.sleep(0.2)
    waits.clear()
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    ended.set()
    writer.join()
    return Way(way, 1e3 * took, len(waits), 1e3 * median(waits), 1e3 * max(waits))


def in_steps(store: Store, pages: int) -> None:
    """Copy as the aggregator does."""
    storage.STEP_PAGES = pages
    fd, _ = store.copies.make(lambda: None, lambda *_: None)
    os.close(fd)


def without_lock(store: Store, folder: Path) -> None:
    """Copy as Python would have it."""
    with closing(sqlite3.connect(folder / "copied", check_same_thread=False)) as target:
        target.execute("PRAGMA synchronous = OFF")
        store._sql.backup(target, pages=256, sleep=0.001)


@click.command(help=__doc__)
@click.option("--rows", default=20_000, help="Of 4 kB in the store.")
def main(rows: int) -> None:
    """Print a table."""
    began = processes.load()
    with TemporaryDirectory() as name, closing(Store(Path(name) / "store")) as store:
        store.write({("row", str(each)): os.urandom(ROW_BYTES) for each in range(rows)})
        size = store._sql.execute("PRAGMA page_count").fetchone()[0] * storage.PAGE_BYTES
        ways = [measured(store, "no copy", rows, lambda: time.sleep(ALONE_S))]
        for pages in (64, 256, 1024):
            way = f"steps of {pages} pages"
            ways.append(measured(store, way, rows, lambda pages=pages: in_steps(store, pages)))
        ways.append(measured(store, "at once", rows, lambda: in_steps(store, -1)))
        work = lambda: without_lock(store, Path(name))  # noqa: E731 - as the others
        ways.append(measured(store, "256 pages, without a lock", rows, work))
    columns = {
        "": "",
        "copied in ms": ".0f",
        "commits meanwhile": "d",
        "median ms": ".1f",
        "worst ms": ".0f",
    }
    note = f"A store of {size / 1e6:.0f} MB. Load when it began: {began}."
    print(Table("A commit beside a copy", columns, ways, note).markdown)


if __name__ == "__main__":
    main()
