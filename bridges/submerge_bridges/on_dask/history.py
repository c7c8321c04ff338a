"""fit_on(): a history is learnt on a cluster: the same bytes as `submerge.history.fit` on one
machine, whatever the number of workers. What is done here takes memory for the cells, and for a few
numbers of each stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from submerge import Channel, UsageError
from submerge.errors import NothingLearnt
from submerge.history.first_pass import FirstPass
from submerge.history.fit import Fitted, fitted, folds_after
from submerge.history.folds import HeldOut
from submerge.history.layout import Cell, LaidOut, Layout, places_of
from submerge.history.recording import Recorded
from submerge.history.second_pass import JudgedHistory, JudgedMachine, joined, spans_over
from submerge.history.settings import FitSettings
from submerge.protocol.history import Chunk
from submerge_bridges.on_dask import tasks
from submerge_bridges.on_dask.cluster import Call, Cluster
from submerge_bridges.on_dask.portions import AnyStretch, Partition, Portion
from submerge_bridges.on_dask.sources import ClusterRows
from submerge_bridges.on_dask.tasks import (
    CellOf,
    CellPlan,
    Edges,
    Judging,
    Place,
    StretchEnds,
    Work,
)
from submerge_client.datasets.source import refusal
from submerge_files.reader.time_order import iso

Advance = Callable[[int], None]

LOOKED = 16
"""Stretches whose times one task looks at."""

LEAST_ROWS, MOST_ROWS, SPANS = 1 << 16, 1 << 22, 32
"""Rows of a task: a history is in so many spans, within these bounds. What is learnt does not
depend on it."""


class SeenStretch(NamedTuple):
    """A stretch, and what a look at it has shown."""

    machine: str
    stretch: AnyStretch
    seen: StretchEnds = StretchEnds()


@dataclass
class ClusterFit:
    """Learns a history on a cluster."""

    cluster: Cluster
    rows: ClusterRows
    channels: Sequence[Channel]
    settings: FitSettings
    advance: Advance = lambda _: None
    _seen: list[SeenStretch] = field(default_factory=list)

    def run(self) -> Fitted:
        """Learn it in two passes."""
        names = [channel.name for channel in self.channels]
        FirstPass(names, self.settings)  # refuses too many channels
        laid = self._look()
        if laid is None:
            raise NothingLearnt("expected rows that can be learnt, got none")
        first = FirstPass(names, self.settings, laid)
        keys = self._learn(first, laid)
        first.end()
        if known := first.known_once_more():
            first = FirstPass(names, self.settings, laid, known)
            self._learn(first, laid)
            first.end()
        folds = folds_after(first, self.channels, self.settings)
        judge = HeldOut.of(folds, laid)
        # How long scores stay alike, and so how long a block is, a part of the rows says.
        block_s = self._judge(judge, last_fold=0).block_s
        judged = self._judge(judge.of_blocks(block_s))
        return fitted(first, folds, judged, self.settings, block_s, keys)

    def _look(self) -> LaidOut | None:
        """Settle by times how cells are laid out."""
        every = [
            SeenStretch(machine, stretch)
            for machine, stretches in self.rows.machines.items()
            for stretch in stretches
        ]
        parts = [every[at : at + LOOKED] for at in range(0, len(every), LOOKED)]
        calls = [self._call((), [_portion([each]) for each in part]) for part in parts]
        layout, self._seen = Layout(len(self.channels), self.settings), []
        answers = self.cluster.answers(tasks.look, calls)
        for part, (seen, found) in zip(parts, answers, strict=True):
            known = (each._replace(seen=one) for each, one in zip(part, seen, strict=True))
            self._seen += [each for each in known if each.seen.rows]
            layout.merged(found)
        return layout.laid_out()

    def _learn(self, first: FirstPass, laid: LaidOut) -> tuple[Chunk, ...]:
        """Let the cells be learnt; return the chunks of all rows, by key."""
        works = list(self._works(laid))
        plan = CellPlan(laid, first.known)
        calls = [
            self._call((plan,), [each for each, _ in work], sum(rows for _, rows in work))
            for work in works
        ]
        found: dict[bytes, Chunk] = {}
        edges = list[Edges]()
        for ends, cells, chunks in self.cluster.answers(tasks.learn, calls, self.advance):
            first.take(cells)
            for chunk in chunks:
                found.setdefault(chunk.key, chunk)
            edges += ends
        self._check_edges(edges, [each for work in works for each, _ in work])
        return tuple(found[key] for key in sorted(found))

    def _judge(self, judge: HeldOut, last_fold: int | None = None) -> JudgedHistory:
        """Let the rows of each machine be judged."""
        laid = judge.laid
        last = laid.machines[max(cell.machine for cell in judge.fold_of)]
        newest = places_of(laid.machines)[last] if last_fold is None else None
        shared = self.cluster.share(Judging(judge, last_fold, newest))
        calls, work, rows = [], list[Portion](), 0
        most = self._rows_of_a_task()
        for portion, n in self._spans():
            work.append(portion)
            rows += n
            if rows >= most:
                calls.append(self._call((shared,), work, rows))
                work, rows = [], 0
        if work:
            calls.append(self._call((shared,), work, rows))
        spans: dict[int, dict[int, JudgedMachine]] = {}
        advance = self.advance if last_fold is None else lambda _: None
        for answers in self.cluster.answers(tasks.judge, calls, advance):
            for machine, span, judged in answers:
                spans.setdefault(machine, {})[span] = judged
        machines = {machine: joined(each) for machine, each in spans.items()}
        return JudgedHistory.of(machines, judge.block_s)

    def _spans(self) -> Iterator[tuple[Portion, int]]:
        """Yield what is judged in one go, with its number of rows."""
        for machine in self.rows.machines:
            seen = [each for each in self._seen if each.machine == machine]
            rows, most = sum(each.seen.rows for each in seen), self.settings.judged_rows
            for begin in range(0, rows, most):
                span = next(spans_over(begin, begin + 1, most))
                end, at, within = min(rows, span.end), 0, list[SeenStretch]()
                skip = span.lead
                for each in seen:
                    n = each.seen.rows
                    if at + n <= span.lead:
                        skip -= n
                    elif at < end:
                        within.append(each)
                    at += n
                portion = _portion(within)._replace(begin=begin, skip=skip)
                yield portion, end - span.lead

    def _works(self, laid: LaidOut) -> Iterator[list[tuple[Portion, int]]]:
        """Yield the portions of each task: whole cells, each in one portion."""
        most, work, held = self._rows_of_a_task(), list[tuple[Portion, int]](), 0
        for own, after, before in _grouped(self._seen, CellOf(laid), most):
            rows = sum(each.seen.rows for each in own)
            portion = _portion([*own, *after], len(own), before)
            work.append((portion, rows))
            held += rows
            if held >= most:
                yield work
                work, held = [], 0
        if work:
            yield work

    def _rows_of_a_task(self) -> int:
        total = sum(each.seen.rows for each in self._seen)
        return min(MOST_ROWS, max(LEAST_ROWS, total // SPANS))

    def _call(self, common: tuple[Any, ...], work: Sequence[Portion], rows: int = 0) -> Call:
        """Return the arguments of a task, with the partitions that its portions are of."""
        partitions, portions = list[Any](), []
        for portion in work:
            stretches = list[AnyStretch]()
            for stretch in portion.stretches:
                if isinstance(stretch, Partition):
                    partitions.append(self.rows.partitions[stretch.number])
                    stretch = stretch._replace(number=len(partitions) - 1)
                stretches.append(stretch)
            portions.append(portion._replace(stretches=stretches))
        asked = Work(self.rows.reading, self.settings, portions)
        return Call((asked, *common, *partitions), rows)

    def _check_edges(self, edges: Sequence[Edges], portions: Sequence[Portion]) -> None:
        """Refuse times that go back from one portion to the next, or a row that comes again."""
        at, coarse, last_row = 0, dict[str, bool](), ""
        before: SeenStretch | None = None
        for edge, portion in zip(edges, portions, strict=True):
            first, last = self._seen[at], self._seen[at + portion.own - 1]
            at += portion.own
            machine = portion.machine
            if before is not None and before.machine == machine:
                _check_edge(before, first, same=edge.first == last_row, coarse=coarse)
            coarse[machine] = coarse.get(machine, False) or edge.coarse
            before, last_row = last, edge.last


def _cell(cell_of: CellOf, machine: str, place: Place | None) -> Cell:
    """Return the cell of the first or the last row of a stretch."""
    if place is None:
        raise UsageError("expected a stretch with rows, got none")
    file, number, time = place
    times = None if time is None else np.array([time])
    return cell_of(Recorded(machine, np.empty((1, 0)), times, file, number), 0)[0]


def _grouped(
    seen: Sequence[SeenStretch], cell_of: CellOf, most: int
) -> Iterator[tuple[list[SeenStretch], list[SeenStretch], Cell | None]]:
    """Yield stretches of one machine that are learnt together."""
    # Beside them come those that their last cell goes on into, and the cell of the row before them.
    at = 0
    while at < len(seen):
        machine, end, rows = seen[at].machine, at, 0
        last: Cell | None = None
        while end < len(seen) and seen[end].machine == machine:
            one = _cell(cell_of, machine, seen[end].seen.last)
            # What is in one cell from end to end belongs to the portion that the cell begins in.
            if rows >= most and one != last:
                break
            rows, last, end = rows + seen[end].seen.rows, one, end + 1
        after = []
        for each in seen[end:]:
            if each.machine != machine or _cell(cell_of, machine, each.seen.first) != last:
                break
            after.append(each)
            if _cell(cell_of, machine, each.seen.last) != last:
                break
        previous = seen[at - 1] if at and seen[at - 1].machine == machine else None
        before = None if previous is None else _cell(cell_of, machine, previous.seen.last)
        yield list(seen[at:end]), after, before
        at = end


def _portion(
    seen: Sequence[SeenStretch], own: int | None = None, before: Cell | None = None
) -> Portion:
    stretches = [each.stretch for each in seen]
    return Portion(seen[0].machine, stretches, len(seen) if own is None else own, before)


def _check_edge(
    before: SeenStretch, after: SeenStretch, *, same: bool, coarse: dict[str, bool]
) -> None:
    if before.seen.last is None or after.seen.first is None:
        return
    (file, row, last), (other, first_row, first) = before.seen.last, after.seen.first
    if last is None or first is None:
        return
    if first < last:
        raise refusal(
            f"{other}, row {first_row}",
            expected=f"no time before {iso(last)} (row {row} of {file})",
            got=iso(first),
            hint="the files overlap: each is a machine (--node-by file), or sort them before",
        )
    if first == last and file != other and same and not coarse.get(after.machine, False):
        raise refusal(
            f"{other}, row {first_row}",
            expected="each row once",
            got=f"that of {iso(first)} again (row {row} of {file})",
            hint="leave one of them out",
        )
    if first == last:
        coarse[after.machine] = True
