"""fit_apart(): a history is learnt part by part, by workers: what `history.fit` learns here.

    here                            workers
    parts of rows, in order     ->  times              -> layout of cells
    some parts                  ->  rows               -> summaries of cells, keys of chunks
    folds of all cells          ->  rows of a machine  -> scores of rows that were not learnt

The bytes are the same for any number of workers, and equal to those of one machine to rounding.
What is done here takes memory for the cells, and for a few numbers of each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from submerge import Channel
from submerge.condition import Condition
from submerge.errors import NothingLearnt
from submerge.history.chunk_keys import ChunkKeys
from submerge.history.first_pass import FirstPass, LearntCells, learnt_cells
from submerge.history.fit import Fitted, fitted, folds_after
from submerge.history.folds import HeldOut
from submerge.history.layout import CellBlocks, LaidOut, Layout
from submerge.history.recording import Recorded
from submerge.history.second_pass import (
    JudgedHistory,
    JudgedMachine,
    NewestRows,
    RowSpan,
    SpanPass,
    joined,
    spans_over,
)
from submerge.history.settings import FitSettings
from submerge.pca.expectation import Estimate
from submerge.protocol.history import Chunk
from submerge_files.stretches import RowOrder
from submerge_files.workers import Advance, Task, Workers

LOOKED = 16
"""Parts whose times one task looks at."""

LEAST_ROWS, MOST_ROWS, TASKS = 1 << 16, 1 << 22, 32
"""Rows of a task: a history is in so many tasks, within these bounds, whatever the workers are."""


class ReadablePart(Protocol):
    """Rows of one machine that follow one another, as a worker has them."""

    def rows(self) -> Iterator[Recorded]:
        """Read them."""

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Read their times, and the channels of a condition; as `Recordings.looks`."""


class SeenPart(NamedTuple):
    """A part, or what becomes one at a worker, and the rows that it has."""

    part: Any
    machine: str
    rows: int


def look(
    settings: FitSettings, width: int, *parts: ReadablePart
) -> tuple[list[tuple[str, int]], Layout]:
    """Return machine and rows of each part, and the layout of all."""
    layout, seen = Layout(width, settings), []
    for part in parts:
        machine, rows = "", 0
        for recorded in part.looks(settings.when):
            layout.add(recorded)
            machine, rows = recorded.machine, rows + len(recorded.rows)
        seen.append((machine, rows))
    return seen, layout


def learn(
    names: Sequence[str],
    settings: FitSettings,
    laid: LaidOut,
    known: Mapping[int, Estimate],
    *parts: ReadablePart,
) -> tuple[LearntCells, tuple[Chunk, ...], RowOrder]:
    """Return the summaries of cells, the chunks of rows, and what is at the ends of the rows."""
    keys, order = ChunkKeys(names), RowOrder()

    def rows() -> Iterator[Recorded]:
        for part in parts:
            for recorded in part.rows():
                order.add(recorded)
                keys.add(recorded)
                yield recorded

    blocks = CellBlocks(laid.grid, settings.without, laid)
    return learnt_cells(rows(), names, settings, blocks, known), keys.end(), order


def judge(
    held_out: HeldOut,
    settings: FitSettings,
    last_fold: int | None,
    span: RowSpan,
    skip: int,
    *parts: ReadablePart,
) -> JudgedMachine | None:
    """Return what comes of a span, but of folds after `last_fold`; its parts have `skip` more."""
    one = SpanPass(held_out, settings, span, last_fold)
    for recorded in _after(skip, parts):
        one.add(recorded)
        if one.is_past and recorded.times is not None:
            break  # all later rows are of later folds
    found = one.end()
    # Only the last pass wants the newest rows: they do not travel before.
    return found if found is None or last_fold is None else replace(found, newest=NewestRows())


def _after(skip: int, parts: Sequence[ReadablePart]) -> Iterator[Recorded]:
    """Yield the rows of parts after so many."""
    for part in parts:
        for recorded in part.rows():
            n = len(recorded.rows)
            if skip < n:
                yield recorded.part(skip, n) if skip else recorded
            skip = max(0, skip - n)


@dataclass
class FitApart:
    """Learns a history on workers, in two passes.

    parts : Of rows, machine by machine and in order, or what becomes one at a worker.
    """

    workers: Workers
    parts: Sequence[Any]
    channels: Sequence[Channel]
    settings: FitSettings
    advance: Advance = lambda _: None
    _seen: list[SeenPart] = field(default_factory=list)

    def run(self) -> Fitted:
        """Learn it."""
        names = [channel.name for channel in self.channels]
        FirstPass(names, self.settings)  # refuses too many channels
        laid = self._look()
        if laid is None:
            raise NothingLearnt("expected rows that can be learnt, got none")
        first = FirstPass(names, self.settings, laid)
        keys = self._learn(first, laid)
        if known := first.known_once_more():
            first = FirstPass(names, self.settings, laid, known)
            self._learn(first, laid)
        folds = folds_after(first, self.channels, self.settings)
        held_out = HeldOut.of(folds, laid)
        # How long scores stay alike, and so how long a block is, a part of the rows says.
        block_s = self._judge(held_out, last_fold=0).block_s
        judged = self._judge(held_out.of_blocks(block_s))
        return fitted(first, folds, judged, self.settings, block_s, keys)

    def _look(self) -> LaidOut | None:
        """Settle by times how cells are laid out, and note what each part holds."""
        layout = Layout(len(self.channels), self.settings)
        some = [self.parts[at : at + LOOKED] for at in range(0, len(self.parts), LOOKED)]
        function = partial(look, self.settings, len(self.channels))
        answers = self.workers.map(function, [Task(tuple(each)) for each in some])
        for parts, (seen, found) in zip(some, answers, strict=True):
            each = (SeenPart(part, *held) for part, held in zip(parts, seen, strict=True))
            self._seen += [part for part in each if part.rows]
            layout.merged(found)
        return layout.laid_out()

    def _learn(self, first: FirstPass, laid: LaidOut) -> tuple[Chunk, ...]:
        """Let the cells be learnt; return the chunks of all rows, by key."""
        function = partial(learn, first.names, self.settings, laid, first.known)
        tasks = [
            Task(tuple(each.part for each in some), sum(each.rows for each in some))
            for some in self._in_tasks()
        ]
        found, whole = dict[bytes, Chunk](), RowOrder()
        for cells, chunks, order in self.workers.map(function, tasks, self.advance):
            first.take(cells)
            for chunk in chunks:
                found.setdefault(chunk.key, chunk)
            whole.follow(order)
        first.end()
        return tuple(found[key] for key in sorted(found))

    def _judge(self, held_out: HeldOut, last_fold: int | None = None) -> JudgedHistory:
        """Let the rows of each machine be judged, a span a task."""
        spans = [*self._spans()]
        function = partial(judge, held_out, self.settings, last_fold)
        tasks = [Task((span, skip, *parts), rows) for _, span, skip, parts, rows in spans]
        advance = self.advance if last_fold is None else lambda _: None
        found: dict[int, dict[int, JudgedMachine]] = {}
        answers = self.workers.map(function, tasks, advance)
        for (machine, span, *_), judged in zip(spans, answers, strict=True):
            if judged is not None:
                number = held_out.laid.machines.index(machine)
                found.setdefault(number, {})[span.number] = judged
        machines = {machine: joined(each) for machine, each in found.items()}
        return JudgedHistory.of(machines, held_out.block_s)

    def _spans(self) -> Iterator[tuple[str, RowSpan, int, list[Any], int]]:
        """Yield what is judged in one go: a machine, its span, rows to skip, parts, and rows."""
        for machine, group in groupby(self._seen, lambda each: each.machine):
            seen = list(group)
            rows = sum(each.rows for each in seen)
            for span in spans_over(0, rows, self.settings.judged_rows):
                end, at, parts, skip = min(rows, span.end), 0, list[Any](), span.lead
                for each in seen:
                    if at + each.rows <= span.lead:
                        skip -= each.rows
                    elif at < end:
                        parts.append(each.part)
                    at += each.rows
                if span.begin < rows:
                    yield machine, span, skip, parts, end - span.lead

    def _in_tasks(self) -> Iterator[list[SeenPart]]:
        """Yield what each task reads: so many rows or more."""
        total = sum(each.rows for each in self._seen)
        most, some, rows = min(MOST_ROWS, max(LEAST_ROWS, total // TASKS)), list[SeenPart](), 0
        for each in self._seen:
            some.append(each)
            rows += each.rows
            if rows >= most:
                yield some
                some, rows = [], 0
        if some:
            yield some
