"""What the history of a fleet takes: bytes, writes and answers, in virtual time.

    python benchmarks/fleet_history.py

Nodes report every five minutes, each with the trail of its last 32 minutes, to one aggregator;
some raise alarms, and the root makes a model each minute. A day of it is fed to the history's
thread as fast as it takes it. Levels are random walks, which repeat less than real ones do. Bytes
are those of the files; what the process wrote is what the kernel counts for its `write` calls, so
what a memory card gets at most. A page of the fleet asks for all nodes in steps of 15 minutes.
"""

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click
import numpy as np

import measure
import processes
from report import Table
from speakers import schema_of
from submerge.aggregator.alarms.below import ReportedAlarm
from submerge.pca.subspace import Subspace
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.messages import Counts, Model
from submerge.protocol.score_trail import MINUTES
from submerge_aggregator.batch import AlarmsChanged
from submerge_aggregator.config import HistoryConfig
from submerge_aggregator.history.answers import ScoresAsked, ScoreSteps, scores_page
from submerge_aggregator.history.file import HistoryFile, ModelHeard, TrailHeard
from submerge_aggregator.history.recorder import HistoryRecorder

GROUP, DAY, EVERY, BEGAN = "room", 24 * 60, 5, 1_700_000_000 // 3600 * 60
"""The group; minutes of a day, and between two reports; the first minute."""


class Day(NamedTuple):
    """A row of the table."""

    nodes: int
    configured: float
    kept: float
    written: float
    writes: int
    write_ms: float
    worst_ms: float
    cpu_us: float
    read_ms: float
    pages: int
    hours: int
    grown: float


def walks(nodes: int) -> np.ndarray:
    """Return levels of each node and minute: random walks around half a limit."""
    rng = np.random.default_rng(1)
    steps = rng.integers(-4, 5, (nodes, DAY + MINUTES)).cumsum(axis=1)
    return (112 + steps % 32).astype(np.uint8)


def models() -> Iterator[Model]:
    """Yield a model for each minute of the day."""
    rng, schema = np.random.default_rng(2), schema_of(54)
    for version in range(1, DAY + 1):
        summary = Subspace.of(rng.normal(size=(60, 54)), schema, rank=8)
        yield Model(
            *(GROUP, version, b"", schema.fingerprint, summary, None, Counts(60 * version)),
            *(1000, (1.0, 1.0, 1.0), 60.0 * (BEGAN + version), 1e12),
            rank=4,
        )


def alarm(node: str, minute: int) -> Alarm:
    """Return an alarm that has ended, with three channels to blame."""
    at = 60.0 * minute
    top = (("temperature-17", 0.5), ("pressure-3", 0.3), ("flow-north-2", 0.1))
    return Alarm(node, minute, at - 600.0, at - 300.0, at, 2.5, "spe", top, 3)


def a_day(nodes: int, most: int) -> Day:
    """Feed a day, five minutes at a time, and ask for it."""
    names, levels = [f"node-{i:05}" for i in range(nodes)], walks(nodes)
    made, before = models(), measure.seconds()
    with TemporaryDirectory(prefix="submerge-") as folder:
        recorder = HistoryRecorder(Path(folder) / "h", most)
        wrote, taken, spent, grown = _wrote(), list[float](), 0.0, _resident()
        for minute in range(EVERY, DAY + 1, EVERY):
            now = BEGAN + minute
            parts = [levels[i, minute : minute + MINUTES].tobytes() for i in range(nodes)]
            heard = [next(made) for _ in range(EVERY)]
            before = measure.seconds()
            for first in range(0, nodes, 5000):  # the queue has room for so many
                for name, part in zip(names[first : first + 5000], parts[first:], strict=False):
                    recorder.take(TrailHeard(GROUP, name, now - MINUTES + 1, part))
                _settled(recorder)
            for model in heard:
                recorder.take(ModelHeard(model))
            ended = tuple(
                ReportedAlarm(alarm(name, now), name, 0.0) for name in names[minute % 97 :: 97]
            )
            recorder.take(AlarmsChanged(GROUP, (), True, ended))
            began = time.perf_counter()
            _settled(recorder)
            taken.append(time.perf_counter() - began)
            spent += measure.seconds() - before
        grown = _resident() - grown
        wrote = _wrote() - wrote
        began = time.perf_counter()
        pages = recorder.ask(lambda file: _all_pages(file)).result()
        read = time.perf_counter() - began
        hours = recorder.ask(lambda file: _hours(file)).result()
        kept = sum(each.stat().st_size for each in Path(folder).iterdir())
        if recorder.dropped or kept > most:
            raise RuntimeError(f"{recorder.dropped} dropped, {kept} bytes of {most}")
        recorder.close()
    reports = nodes * len(taken)
    return Day(
        nodes,
        most / 2**20,
        kept / 2**20,
        wrote / 2**20,
        len(taken),
        1e3 * sum(taken) / len(taken),
        1e3 * max(taken),
        1e6 * spent / reports,
        1e3 * read,
        pages,
        hours,
        grown / 2**20,
    )


def _settled(recorder: HistoryRecorder) -> None:
    """Wait until all that was handed in is on the disk."""
    recorder.ask(lambda _: None).result()


def _all_pages(file: HistoryFile) -> int:
    """Read all nodes of the day in steps of 15 minutes; return how many pages that takes."""
    now, after, more, pages = 60.0 * (BEGAN + DAY), "", True, 0
    steps = ScoreSteps(60 * BEGAN, 900)
    while more:
        page = scores_page(file, "root", ScoresAsked(GROUP, steps, after=after), now)
        more, after, pages = page.more, page.nodes[-1].node, pages + 1
    return pages


def _hours(file: HistoryFile) -> int:
    """Return how many hours of the first node are kept."""
    first, last = BEGAN // 60 - 1, (BEGAN + DAY) // 60 + 1
    (hours,) = file.levels(GROUP, range(first, last), most=1).values()
    return len(hours)


def _wrote() -> int:
    """Return the bytes that this process has handed to `write` calls."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def _resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@click.command(help=__doc__)
@click.option("--nodes", multiple=True, type=int, default=(1, 100, 1000), show_default=True)
@click.option("--max-bytes", default=HistoryConfig().max_bytes, show_default=True)
def main(nodes: tuple[int, ...], max_bytes: int) -> None:
    """Print the table."""
    load = processes.load()
    rows = [a_day(each, max_bytes) for each in nodes]
    columns = {
        "nodes": "d",
        "MiB at most": ".0f",
        "MiB kept": ".2f",
        "MiB written": ".1f",
        "writes": "d",
        "ms each": ".1f",
        "ms, the longest": ".1f",
        "µs a report": ".1f",
        "ms to read all": ".0f",
        "pages": "d",
        "hours kept": "d",
        "MiB of memory": ".1f",
    }
    title = "24 virtual hours of a history"
    click.echo(Table(title, columns, rows, f"Load when it began: {load}.").markdown)


if __name__ == "__main__":
    main()
