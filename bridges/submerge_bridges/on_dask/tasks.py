"""Tasks that read files: a worker runs them, and may be lost. Each is given all that it needs: its
work, what is common to a run, and partitions of a Dask collection, if rows come from one. Dask
looks into tuples and lists of arguments, and not into dataclasses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from submerge.history.chunk_keys import ChunkKeys
from submerge.history.first_pass import LearntCells, learnt_cells
from submerge.history.folds import HeldOut
from submerge.history.layout import Cell, CellBlocks, LaidOut, Layout, places_of
from submerge.history.recording import Recorded
from submerge.history.second_pass import JudgedMachine, NewestRows, SpanPass, spans_over
from submerge.history.settings import FitSettings
from submerge.pca.expectation import Estimate
from submerge.protocol.history import Chunk
from submerge_bridges.on_dask.cluster import answering
from submerge_bridges.on_dask.portions import FileStretch, Portion, PortionReading
from submerge_bridges.on_dask.worker_memory import keep_blocks
from submerge_files.reader.time_order import TimeOrder

Place = tuple[str, int, float | None]
"""Where a row is, so that its cell can be found: its file, number and time."""


class StretchEnds(NamedTuple):
    """Rows of a stretch, and where its first and its last row are."""

    rows: int = 0
    first: Place | None = None
    last: Place | None = None


class Edges(NamedTuple):
    """Hashes of a portion's first and last row, and whether rows in it have equal times."""

    first: str
    last: str
    coarse: bool


@dataclass(frozen=True)
class Work:
    """Which rows a task reads, and how they are learnt."""

    reading: PortionReading
    settings: FitSettings
    portions: Sequence[Portion]


@dataclass(frozen=True)
class CellPlan:
    """How rows are cut into cells, and what fills rare gaps of each machine's rows."""

    laid: LaidOut
    known: Mapping[int, Estimate]


@dataclass(frozen=True)
class Judging:
    """What judges rows.

    last_fold : Rows of later folds are not judged.
    newest_of : The machine whose newest rows are wanted, by its number.
    """

    judge: HeldOut
    last_fold: int | None
    newest_of: int | None


@answering
def digest(reading: PortionReading, stretch: FileStretch) -> bytes:
    """Return the hash of one file's rows."""
    return reading.on(()).file(stretch).digest()


@answering
def look(work: Work, *frames: Any) -> tuple[list[StretchEnds], Layout]:
    """Return what each stretch of portions holds, and the layout of all."""
    keep_blocks()
    reading, settings = work.reading.on(frames), work.settings
    layout, seen = Layout(len(reading.names), settings), []
    for portion in work.portions:
        for stretch in portion.stretches:
            one = StretchEnds()
            for recorded in reading.looks(portion.machine, stretch, settings.when):
                layout.add(recorded)
                n = len(recorded.rows)
                last = _place(recorded, n - 1)
                one = StretchEnds(one.rows + n, one.first or _place(recorded, 0), last)
            seen.append(one)
    return seen, layout


@answering
def learn(
    work: Work, plan: CellPlan, *frames: Any
) -> tuple[list[Edges], LearntCells, tuple[Chunk, ...]]:
    """Return the ends of portions, the cells that begin in them, and the chunks of their rows."""
    keep_blocks()
    reading, settings, laid = work.reading.on(frames), work.settings, plan.laid
    keys, edges = ChunkKeys(reading.names), list[Edges]()
    blocks = CellBlocks(laid.grid, settings.without, laid)
    parts = _owned_in(reading, laid, work.portions, keys, edges)
    learnt = learnt_cells(parts, reading.names, settings, blocks, plan.known)
    return edges, learnt, keys.end()


@answering
def judge(work: Work, judging: Judging, *frames: Any) -> list[tuple[int, int, JudgedMachine]]:
    """Return what comes of spans of machines, each judged by models of other rows."""
    # With each are the numbers of its machine, and of the span.
    keep_blocks()
    reading, settings, found = work.reading.on(frames), work.settings, judging.judge
    judged = []
    for portion in work.portions:
        span = next(spans_over(portion.begin, portion.begin + 1, settings.judged_rows))
        one, order = SpanPass(found, settings, span, judging.last_fold), TimeOrder()
        for recorded in _after(reading, portion, order):
            one.add(recorded)
            if one.is_past and recorded.times is not None:
                break  # all later rows are of later folds
        what = one.end()
        if what is not None:
            number = found.laid.machines.index(portion.machine)
            if number != judging.newest_of:
                what = replace(what, newest=NewestRows())
            judged.append((number, span.number, what))
    return judged


def _after(reading: PortionReading, portion: Portion, order: TimeOrder) -> Iterator[Recorded]:
    """Yield the rows of a portion after those that it skips."""
    skip = portion.skip
    for stretch in portion.stretches:
        for recorded in reading.rows(portion.machine, stretch, order):
            n = len(recorded.rows)
            if skip < n:
                yield recorded.part(skip, n) if skip else recorded
            skip = max(0, skip - n)


def _owned_in(
    reading: PortionReading,
    laid: LaidOut,
    portions: Sequence[Portion],
    keys: ChunkKeys,
    edges: list[Edges],
) -> Iterator[Recorded]:
    """Yield the rows of all cells that begin in portions; `edges` takes what is at their ends."""
    cell_of = CellOf(laid)
    for portion in portions:
        yield from _owned(reading, cell_of, portion, keys, edges)


def _owned(
    reading: PortionReading,
    cell_of: CellOf,
    portion: Portion,
    keys: ChunkKeys,
    edges: list[Edges],
) -> Iterator[Recorded]:
    machine, before, order, last = portion.machine, portion.before, TimeOrder(), None
    first_row, last_row = "", ""
    for stretch in portion.stretches[: portion.own]:
        for recorded in reading.rows(machine, stretch, order):
            keys.add(recorded)
            first_row = first_row or _row_hash(recorded, 0)
            last_row = _row_hash(recorded, -1)
            start, n = 0, len(recorded.rows)
            while before is not None and start < n:
                cell, stop = cell_of(recorded, start)
                if cell != before:
                    before = None
                else:
                    start = stop
            if start < n:
                last = cell_of(recorded, n - 1)[0]
                yield recorded.part(start, n) if start else recorded
    edges.append(Edges(first_row, last_row, order.coarse))
    if last is None:
        return
    for stretch in portion.stretches[portion.own :]:
        for recorded in reading.rows(machine, stretch, TimeOrder()):
            start, n = 0, len(recorded.rows)
            while start < n:
                cell, stop = cell_of(recorded, start)
                if cell != last:
                    break
                start = stop
            if start:
                yield recorded.part(0, start)
            if start < n:
                return


class CellOf:
    """Finds cells of rows in a settled layout."""

    def __init__(self, laid: LaidOut) -> None:
        self._grid = laid.grid
        self._machines, self._files = places_of(laid.machines), places_of(laid.files)

    def __call__(self, recorded: Recorded, row: int) -> tuple[Cell, int]:
        """Return the cell of a row, and the row behind the last one in it."""
        run = 0 if recorded.times is not None else self._files[recorded.file]
        return self._grid.first_cell(recorded, row, self._machines[recorded.machine], run)


def _place(recorded: Recorded, row: int) -> Place:
    time = None if recorded.times is None else float(recorded.times[row])
    return recorded.file, recorded.number(row), time


def _row_hash(recorded: Recorded, row: int) -> str:
    plain = np.asarray(recorded.rows[row] + 0.0)
    return hashlib.sha256(np.where(np.isnan(plain), np.nan, plain).tobytes()).hexdigest()
