"""learnt(): recordings or a frame are learnt, here or part by part by workers (`RowsApart`).

The bytes are the same for any number of workers, and equal to those of one machine to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from submerge.condition import Condition
from submerge.errors import whole
from submerge.history.first_pass import FirstPass, LearntCells
from submerge.history.fit import Fitted, HistoryRows, LocalRows, fit_rows
from submerge.history.folds import HeldOut
from submerge.history.layout import LaidOut, Layout
from submerge.history.recording import Recorded
from submerge.history.second_pass import JudgedMachine, RowSpan, SecondPass, spans_over
from submerge.history.settings import FitSettings
from submerge.pca.expectation import Estimate
from submerge.protocol.history import Chunk
from submerge_files.console.reading_options import condition_of
from submerge_files.reader import Recordings
from submerge_files.reader.recordings import TimeOrder
from submerge_files.workers import Advance, Task, Workers

if TYPE_CHECKING:
    from submerge_files.python.frame_rows import FrameRows


def learnt(
    source: Recordings | FrameRows,
    settings: FitSettings,
    workers: Workers | None = None,
    advance: Advance = lambda _: None,
) -> Fitted:
    """Learn rows; `advance` takes numbers of those that were read."""
    rows: HistoryRows
    if workers is not None and isinstance(source, Recordings):
        rows = RowsApart(workers, source.pieces(), advance)
    else:
        look = partial(source.looks, settings.when)
        rows = LocalRows(source.rows, look, lambda recorded: advance(len(recorded.rows)))
    return fit_rows(rows, source.channels, settings)


def settings_for(
    source: Recordings | FrameRows, *, rank: int | None, when: str | None, **others: Any
) -> FitSettings:
    """Return the settings of a fit; notes on values are then of rows in the state `when`."""
    columns = source.columns if isinstance(source, Recordings) else ()
    condition = condition_of(when, source.names, columns)
    if condition is not None:
        source.note_only(condition.holds)
    directions = 0 if rank is None else whole("rank", rank, least=1)
    most = max(FitSettings().rank_max, directions)
    return FitSettings(directions, rank_max=most, when=condition, **others)


LOOKED = 16  # parts whose times one task looks at

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


def _look(
    width: int, settings: FitSettings, *parts: ReadablePart
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


def _learn(
    names: Sequence[str],
    settings: FitSettings,
    laid: LaidOut,
    known: Mapping[int, Estimate],
    *parts: ReadablePart,
) -> tuple[LearntCells, tuple[Chunk, ...], TimeOrder]:
    """Return the summaries of cells, the chunks of rows, and what is at the ends of the rows."""
    first, order = FirstPass(names, settings, laid, known), TimeOrder()
    chunks = _here(parts, order=order).learn(first)
    return first.close(), chunks, order


def _judge(
    held_out: HeldOut,
    settings: FitSettings,
    last_fold: int | None,
    span: RowSpan,
    skip: int,
    *parts: ReadablePart,
) -> dict[int, dict[int, JudgedMachine]]:
    """Return what comes of a span, but of folds after `last_fold`; its parts have `skip` more."""
    second = SecondPass(held_out, settings, last_fold, span)
    _here(parts, skip).judge(second)
    return second.close()


def _here(
    parts: Sequence[ReadablePart], skip: int = 0, order: TimeOrder | None = None
) -> LocalRows:
    """Return the rows of parts after so many."""

    def read() -> Iterator[Recorded]:
        rest = skip
        for recorded in (each for part in parts for each in part.rows()):
            n = len(recorded.rows)
            if rest < n:
                yield recorded.part(rest, n) if rest else recorded
            rest = max(0, rest - n)

    return LocalRows(read, read, (order or TimeOrder()).check)


@dataclass
class RowsApart:
    """Rows that workers read, in parts, machine by machine and in order."""

    workers: Workers
    parts: Sequence[Any]
    advance: Advance = lambda _: None
    _seen: list[SeenPart] = field(default_factory=list)

    def look(self, layout: Layout) -> None:
        """Show the times of rows to a layout, and note what each part holds."""
        some = [self.parts[at : at + LOOKED] for at in range(0, len(self.parts), LOOKED)]
        function = partial(_look, layout.width, layout.settings)
        answers = self.workers.map(function, [Task(tuple(each)) for each in some])
        for parts, (seen, found) in zip(some, answers, strict=True):
            each = (SeenPart(part, *held) for part, held in zip(parts, seen, strict=True))
            self._seen += [part for part in each if part.rows]
            layout.merged(found)

    def learn(self, first: FirstPass) -> tuple[Chunk, ...]:
        """Let the cells be learnt; return the chunks of all rows, by key."""
        function = partial(_learn, first.names, first.settings, first.laid, first.known)
        tasks = [
            Task(tuple(each.part for each in some), sum(each.rows for each in some))
            for some in self._in_tasks()
        ]
        found, whole = dict[bytes, Chunk](), TimeOrder()
        for cells, chunks, order in self.workers.map(function, tasks, self.advance):
            first.take(cells)
            for chunk in chunks:
                found.setdefault(chunk.key, chunk)
            whole.follow(order)
        return tuple(found[key] for key in sorted(found))

    def judge(self, second: SecondPass) -> None:
        """Let the rows of each machine be judged, a span a task."""
        function = partial(_judge, second.judge, second.settings, second.last_fold)
        tasks = [*self._spans(second.settings.judged_rows)]
        advance = self.advance if second.last_fold is None else lambda _: None
        for judged in self.workers.map(function, tasks, advance):
            second.take(judged)

    def _spans(self, judged_rows: int) -> Iterator[Task]:
        """Yield what is judged in one go: a span of a machine, rows to skip, and its parts."""
        for _, group in groupby(self._seen, lambda each: each.machine):
            seen = list(group)
            rows = sum(each.rows for each in seen)
            for span in spans_over(0, rows, judged_rows):
                end, at, parts, skip = min(rows, span.end), 0, list[Any](), span.lead
                for each in seen:
                    if at + each.rows <= span.lead:
                        skip -= each.rows
                    elif at < end:
                        parts.append(each.part)
                    at += each.rows
                if span.begin < rows:
                    yield Task((span, skip, *parts), end - span.lead)

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
