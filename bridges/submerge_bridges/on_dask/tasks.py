"""Tasks of a fit: functions of bytes that return bytes. A worker runs them, and may be lost.

Each is given all that it needs: what is common to a run, its portions of rows, and partitions of a
Dask collection, if rows come from one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from submerge.history.chunk_keys import ChunkKeys
from submerge.history.first_pass import learnt_cells
from submerge.history.layout import Cell, CellBlocks, LaidOut, Layout, places_of
from submerge.history.recording import Recorded
from submerge.history.second_pass import SpanPass, spans_over
from submerge.history.settings import FitSettings
from submerge_bridges.on_dask.answers import answering
from submerge_bridges.on_dask.forms import (
    cells_bytes,
    judge_of,
    known_from,
    laid_of,
    layout_bytes,
    settings_of,
)
from submerge_bridges.on_dask.judged_form import judged_bytes
from submerge_bridges.on_dask.packing import packed, unpacked
from submerge_bridges.on_dask.portions import Portion, PortionReading
from submerge_bridges.on_dask.worker_memory import keep_blocks
from submerge_files.reader.time_order import TimeOrder
from submerge_proto.files import chunks


@answering
def look(job: bytes, work: bytes, *frames: Any) -> bytes:
    """Return the layout of portions, and of each stretch its rows and its first and last time."""
    reading, settings = _job(job, frames)
    layout, seen = Layout(len(reading.names), settings), []
    for portion in _portions(work):
        for stretch in portion.stretches:
            rows, first, last = 0, None, None
            for recorded in reading.looks(portion.machine, stretch, settings.when):
                layout.add(recorded)
                if rows == 0:
                    first = _place(recorded, 0)
                rows += len(recorded.rows)
                last = _place(recorded, len(recorded.rows) - 1)
            seen.append([rows, first, last])
    return packed({"seen": seen}, [layout_bytes(layout)])


@answering
def learn(job: bytes, laid: bytes, work: bytes, *frames: Any) -> bytes:
    """Return the summaries of the cells that begin in portions, and the keys of their chunks."""
    reading, settings = _job(job, frames)
    head, _ = unpacked(laid)
    settled, known = laid_of(head["laid"]), known_from(head["known"])
    keys, edges = ChunkKeys(reading.names), list[dict[str, Any]]()
    blocks = CellBlocks(settled.grid, settings.without, settled)
    parts = _owned_in(reading, settled, _portions(work), keys, edges)
    learnt = learnt_cells(parts, reading.names, settings, blocks, known)
    message = chunks.chunks(keys.end()).SerializeToString(deterministic=True)
    return packed({"edges": edges}, [cells_bytes(learnt), message])


@answering
def judge(job: bytes, held_out: bytes, work: bytes, *frames: Any) -> bytes:
    """Return what comes of spans of machines, each judged by models of other rows."""
    reading, settings = _job(job, frames)
    head, packed_judge = unpacked(held_out)
    found, last_fold = judge_of(packed_judge[0]), head["last_fold"]
    judged = []
    for portion in _portions(work):
        span = next(spans_over(portion.begin, portion.begin + 1, settings.judged_rows))
        one, order = SpanPass(found, settings, span, last_fold), TimeOrder()
        for recorded in _after(reading, portion, order):
            one.add(recorded)
            if one.is_past and recorded.times is not None:
                break  # all later rows are of later folds
        what = one.end()
        if what is not None:
            number = found.laid.machines.index(portion.machine)
            newest = number == head["newest_of"]
            judged.append(judged_bytes((number, span.number), what, with_newest=newest))
    return packed({}, judged)


def _job(job: bytes, frames: tuple[Any, ...]) -> tuple[PortionReading, FitSettings]:
    keep_blocks()
    head, _ = unpacked(job)
    reading = PortionReading.of(head["reading"], frames)
    return reading, settings_of(head["settings"], reading.names)


def _portions(work: bytes) -> list[Portion]:
    return [Portion(*each) for each in unpacked(work)[0]["portions"]]


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
    portions: list[Portion],
    keys: ChunkKeys,
    edges: list[dict[str, Any]],
) -> Iterator[Recorded]:
    """Yield the rows of all cells that begin in portions; `edges` takes what is at their ends.

    keys : takes the rows of the portions themselves
    """
    cell_of = _CellOf(laid)
    for portion in portions:
        before = None if portion.before is None else Cell(*portion.before)
        yield from _owned(reading, cell_of, portion, before, keys, edges)


def _owned(
    reading: PortionReading,
    cell_of: _CellOf,
    portion: Portion,
    before: Cell | None,
    keys: ChunkKeys,
    edges: list[dict[str, Any]],
) -> Iterator[Recorded]:
    machine, order, last = portion.machine, TimeOrder(), None
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
    edges.append({"first": first_row, "last": last_row, "coarse": order.coarse})
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


class _CellOf:
    """Returns the cell of a row, and where the rows that follow it there end."""

    def __init__(self, laid: LaidOut) -> None:
        self._grid = laid.grid
        self._machines, self._files = places_of(laid.machines), places_of(laid.files)

    def __call__(self, recorded: Recorded, row: int) -> tuple[Cell, int]:
        run = 0 if recorded.times is not None else self._files[recorded.file]
        return self._grid.first_cell(recorded, row, self._machines[recorded.machine], run)


def _place(recorded: Recorded, row: int) -> list[Any]:
    """Return where a row is, so that its cell can be found: its file, number and time."""
    time = None if recorded.times is None else float(recorded.times[row])
    return [recorded.file, recorded.number(row), time]


def _row_hash(recorded: Recorded, row: int) -> str:
    plain = np.asarray(recorded.rows[row] + 0.0)
    return hashlib.sha256(np.where(np.isnan(plain), np.nan, plain).tobytes()).hexdigest()
