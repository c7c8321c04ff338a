"""ClusterFit: a history is learnt on a cluster, as by `submerge.history.fit` on one machine: the
same bytes for any number of workers, and what one machine learns to rounding. What is done here
takes memory for the cells, and for a few numbers of each stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, TypeVar

import numpy as np

from submerge import Channel
from submerge.errors import NothingLearnt
from submerge.history.first_pass import FirstPass
from submerge.history.fit import Fitted, fitted, folds_after
from submerge.history.folds import HeldOut
from submerge.history.layout import LaidOut, Layout, places_of
from submerge.history.second_pass import JudgedHistory, JudgedMachine, joined, spans_over
from submerge.history.settings import FitSettings
from submerge.protocol.history import Chunk
from submerge_bridges.on_dask import tasks
from submerge_bridges.on_dask.cluster import Call, Cluster
from submerge_bridges.on_dask.rows import AnyStretch, ClusterRows
from submerge_bridges.on_dask.tasks import Edge, JudgedSpan, Judging, LookedAt, Work, numbers_in
from submerge_client.datasets.source import refusal
from submerge_files.reader.time_order import iso

Advance = Callable[[int], None]

LOOKED = 16
"""Stretches whose times one task looks at."""

LEAST_ROWS, MOST_ROWS, TASKS = 1 << 16, 1 << 22, 32
"""Rows of a task: a history is in so many tasks, within these bounds, whatever the workers are."""

Rows = TypeVar("Rows", LookedAt, JudgedSpan)


@dataclass
class ClusterFit:
    """Learns a history on a cluster."""

    cluster: Cluster
    rows: ClusterRows
    channels: Sequence[Channel]
    settings: FitSettings
    advance: Advance = lambda _: None
    _seen: list[LookedAt] = field(default_factory=list)

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
        """Settle by times how cells are laid out, and note what each stretch holds."""
        every, layout = self.rows.stretches, Layout(len(self.channels), self.settings)
        parts = [every[at : at + LOOKED] for at in range(0, len(every), LOOKED)]
        calls = [self._call(part, part) for part in parts]
        for seen, found in self.cluster.answers(tasks.look, calls):
            self._seen += [each for each in seen if each.rows]
            layout.merged(found)
        return layout.laid_out()

    def _learn(self, first: FirstPass, laid: LaidOut) -> tuple[Chunk, ...]:
        """Let the cells be learnt; return the chunks of all rows, by key."""
        works = list(self._in_tasks(self._seen))
        calls = []
        for work in works:
            stretches = [each.stretch for each in work]
            rows = sum(each.rows for each in work)
            calls.append(self._call(stretches, stretches, laid, first.known, rows=rows))
        found, edges = dict[bytes, Chunk](), list[Edge]()
        for edge, cells, chunks in self.cluster.answers(tasks.learn, calls, self.advance):
            first.take(cells)
            for chunk in chunks:
                found.setdefault(chunk.key, chunk)
            edges.append(edge)
        _check_edges(works, edges)
        return tuple(found[key] for key in sorted(found))

    def _judge(self, judge: HeldOut, last_fold: int | None = None) -> JudgedHistory:
        """Let the rows of each machine be judged."""
        laid = judge.laid
        last = laid.machines[max(cell.machine for cell in judge.fold_of)]
        newest = places_of(laid.machines)[last] if last_fold is None else None
        shared = self.cluster.share(Judging(judge, last_fold, newest))
        calls = []
        for work in self._in_tasks(list(self._spans())):
            stretches = [stretch for each in work for stretch in each.stretches]
            calls.append(self._call(stretches, work, shared, rows=sum(each.rows for each in work)))
        spans: dict[int, dict[int, JudgedMachine]] = {}
        advance = self.advance if last_fold is None else lambda _: None
        for answers in self.cluster.answers(tasks.judge, calls, advance):
            for machine, span, judged in answers:
                spans.setdefault(machine, {})[span] = judged
        machines = {machine: joined(each) for machine, each in spans.items()}
        return JudgedHistory.of(machines, judge.block_s)

    def _spans(self) -> Iterator[JudgedSpan]:
        """Yield what is judged in one go."""
        most = self.settings.judged_rows
        for machine, group in groupby(self._seen, lambda each: each.stretch.machine):
            seen = list(group)
            rows = sum(each.rows for each in seen)
            for begin in range(0, rows, most):
                span = next(spans_over(begin, begin + 1, most))
                end, at, within = min(rows, span.end), 0, list[AnyStretch]()
                skip = span.lead
                for each in seen:
                    if at + each.rows <= span.lead:
                        skip -= each.rows
                    elif at < end:
                        within.append(each.stretch)
                    at += each.rows
                yield JudgedSpan(machine, within, begin, skip, end - span.lead)

    def _in_tasks(self, work: Sequence[Rows]) -> Iterator[list[Rows]]:
        """Yield what each task reads: so many rows or more."""
        total = sum(each.rows for each in self._seen)
        most, some, rows = min(MOST_ROWS, max(LEAST_ROWS, total // TASKS)), list[Rows](), 0
        for each in work:
            some.append(each)
            rows += each.rows
            if rows >= most:
                yield some
                some, rows = [], 0
        if some:
            yield some

    def _call(self, stretches: Sequence[AnyStretch], *asked: Any, rows: int = 0) -> Call:
        """Return the arguments of a task, with the partitions that its stretches are of."""
        numbers = numbers_in(stretches)
        work = Work(self.rows.reader, self.settings, numbers)
        return Call((work, *asked, *(self.rows.partitions[number] for number in numbers)), rows)


def _check_edges(works: Sequence[Sequence[LookedAt]], edges: Sequence[Edge]) -> None:
    """Refuse times that go back from one task to the next, or a row that comes again."""
    coarse = set[str]()
    for (one, other), (before, after) in zip(pairwise(works), pairwise(edges), strict=True):
        coarse |= before.coarse
        machine, last, first = other[0].stretch.machine, one[-1].last, other[0].first
        if one[-1].stretch.machine != machine or last is None or first is None:
            continue
        if first.time < last.time:
            raise refusal(
                f"{first.file}, row {first.number}",
                expected=f"no time before {iso(last.time)} (row {last.number} of {last.file})",
                got=iso(first.time),
                hint="the files overlap: each is a machine (--node-by file), or sort them before",
            )
        same = np.array_equal(before.last, after.first, equal_nan=True)
        if first.time == last.time and first.file != last.file and same and machine not in coarse:
            raise refusal(
                f"{first.file}, row {first.number}",
                expected="each row once",
                got=f"that of {iso(first.time)} again (row {last.number} of {last.file})",
                hint="leave one of them out",
            )
        if first.time == last.time:
            coarse.add(machine)
