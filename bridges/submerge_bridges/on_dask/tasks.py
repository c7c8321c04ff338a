"""Tasks that read rows: a worker runs them, and may be lost. Each is given all that it needs: its
work, what is common to a run, and partitions of a Dask collection, if rows come from one. Dask
looks into tuples and lists of arguments, and not into dataclasses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from submerge import Array
from submerge.history.chunk_keys import ChunkKeys
from submerge.history.first_pass import LearntCells, learnt_cells
from submerge.history.folds import HeldOut
from submerge.history.layout import CellBlocks, LaidOut, Layout
from submerge.history.recording import Recorded
from submerge.history.second_pass import JudgedMachine, NewestRows, SpanPass, spans_over
from submerge.history.settings import FitSettings
from submerge.pca.expectation import Estimate
from submerge.protocol.history import Chunk
from submerge_bridges.on_dask.cluster import answering
from submerge_bridges.on_dask.rows import AnyStretch, Partition, RowReader, Stretch
from submerge_files.reader.time_order import TimeOrder


class RowEnd(NamedTuple):
    """The first or the last row of a stretch; `time` is NaN without times."""

    file: str
    number: int
    time: float


class LookedAt(NamedTuple):
    """A stretch, its rows, and where the first and the last of them are."""

    stretch: AnyStretch
    rows: int = 0
    first: RowEnd | None = None
    last: RowEnd | None = None


class Edge(NamedTuple):
    """The first and the last row of a task, (channels,), and machines with rows of equal times."""

    first: Array
    last: Array
    coarse: frozenset[str]


class JudgedSpan(NamedTuple):
    """Stretches that have a span of a machine's rows, from `begin` on, after `skip` and a lead."""

    machine: str
    stretches: Sequence[AnyStretch]
    begin: int
    skip: int
    rows: int


@dataclass(frozen=True)
class Work:
    """How rows are read and learnt; `numbers`: of the partitions that the task has."""

    reader: RowReader
    settings: FitSettings
    numbers: tuple[int, ...] = ()

    def reads(self, frames: Sequence[Any]) -> RowReader:
        """Return what reads rows in the task."""
        _keep_blocks()
        return self.reader.on(dict(zip(self.numbers, frames, strict=True)))


@dataclass(frozen=True)
class Judging:
    """What judges rows, but of folds after `last_fold`; the newest are wanted of one machine."""

    judge: HeldOut
    last_fold: int | None
    newest_of: int | None


@answering
def digest(reader: RowReader, stretch: Stretch) -> bytes:
    """Return the hash of one file's rows."""
    return reader.on({}).file(stretch).digest()


@answering
def look(
    work: Work, stretches: Sequence[AnyStretch], *frames: Any
) -> tuple[list[LookedAt], Layout]:
    """Return what each stretch holds, and the layout of all."""
    reader, seen = work.reads(frames), []
    layout = Layout(len(reader.names), work.settings)
    for stretch in stretches:
        one = LookedAt(stretch)
        for recorded in reader.looks(stretch, work.settings.when):
            layout.add(recorded)
            n = len(recorded.rows)
            last = _end(recorded, n - 1)
            one = LookedAt(stretch, one.rows + n, one.first or _end(recorded, 0), last)
        seen.append(one)
    return seen, layout


@answering
def learn(
    work: Work,
    stretches: Sequence[AnyStretch],
    laid: LaidOut,
    known: Mapping[int, Estimate],
    *frames: Any,
) -> tuple[Edge, LearntCells, tuple[Chunk, ...]]:
    """Return what is at the ends of the rows, the summaries of cells, and the chunks of rows."""
    reader, settings = work.reads(frames), work.settings
    keys, orders, ends = ChunkKeys(reader.names), dict[str, TimeOrder](), list[Array]()

    def rows() -> Iterator[Recorded]:
        for stretch in stretches:
            for recorded in reader.rows(stretch, orders.setdefault(stretch.machine, TimeOrder())):
                keys.add(recorded)
                ends[1:] = [recorded.rows[-1]] if ends else [recorded.rows[0], recorded.rows[-1]]
                yield recorded

    blocks = CellBlocks(laid.grid, settings.without, laid)
    learnt = learnt_cells(rows(), reader.names, settings, blocks, known)
    coarse = frozenset(machine for machine, order in orders.items() if order.coarse)
    return Edge(ends[0], ends[-1], coarse), learnt, keys.end()


@answering
def judge(
    work: Work, spans: Sequence[JudgedSpan], judging: Judging, *frames: Any
) -> list[tuple[int, int, JudgedMachine]]:
    """Return what comes of spans, each judged by models of other rows."""
    # With each are the numbers of its machine, and of the span.
    reader, settings, found, judged = work.reads(frames), work.settings, judging.judge, []
    for each in spans:
        span = next(spans_over(each.begin, each.begin + 1, settings.judged_rows))
        one = SpanPass(found, settings, span, judging.last_fold)
        for recorded in _after(reader, each):
            one.add(recorded)
            if one.is_past and recorded.times is not None:
                break  # all later rows are of later folds
        what = one.end()
        if what is not None:
            number = found.laid.machines.index(each.machine)
            if number != judging.newest_of:
                what = replace(what, newest=NewestRows())
            judged.append((number, span.number, what))
    return judged


def _after(reader: RowReader, span: JudgedSpan) -> Iterator[Recorded]:
    """Yield the rows of a span after those that it skips."""
    skip, order = span.skip, TimeOrder()
    for stretch in span.stretches:
        for recorded in reader.rows(stretch, order):
            n = len(recorded.rows)
            if skip < n:
                yield recorded.part(skip, n) if skip else recorded
            skip = max(0, skip - n)


def _end(recorded: Recorded, row: int) -> RowEnd:
    time = np.nan if recorded.times is None else float(recorded.times[row])
    return RowEnd(recorded.file, recorded.number(row), time)


def numbers_in(stretches: Sequence[AnyStretch]) -> tuple[int, ...]:
    """Return the numbers of the partitions that a task needs."""
    return tuple(sorted({each.number for each in stretches if isinstance(each, Partition)}))


KEPT, LARGEST = 64 << 20, 32 << 20
"""Bytes that a worker keeps for the next blocks of rows, at most; larger blocks go back at once."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


@cache
def _keep_blocks() -> bool:
    """Let the C library keep freed blocks of rows, once in a process; others are as they are."""
    # Dask starts workers with MALLOC_TRIM_THRESHOLD_, by which glibc gives each freed block back:
    # then every block of rows costs its page faults again.
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))
