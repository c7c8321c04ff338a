"""LeafNode: the client that ships, whose readings come as numbers.

Every decision is `ClientNode`'s, by the same code: sessions, incarnations, checkpoints, finals and
reports. Only the way of a reading differs. Its `LeafIngest` counts readings, notes the buckets of
their scores, and keeps no monitor: there are no alarms, and no mean of its own.

A `ClientNode` is stepped at each reading. Here readings are taken together, before the next other
event, and `wakes_at` says at which of them something would be decided.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from submerge.client.incarnation import ClientIncarnation
from submerge.client.ingest import Ingest
from submerge.client.monitor import NodeMonitor
from submerge.client.node import ClientNode
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.names import RandomSource
from submerge.protocol.score_trail import MINUTE_S, UNLIMITED
from submerge.protocol.settings import ClientSettings
from submerge.schema import Schema
from submerge_lab.simulator.large.bank_scores import BankScores, ScoredRows
from submerge_lab.simulator.large.rows import NumberedRows, mixed
from submerge_lab.simulator.large.spans import SpanSummaries


class Taken(NamedTuple):
    """Readings of one stream that are taken together.

    numbers : of the readings
    walls : the wall time of each
    now : of the last
    """

    stream: int
    numbers: range
    walls: list[float]
    now: Now


class LeafRandom:
    """A `RandomSource` in a hundred bytes: NumPy's takes two thousand."""

    __slots__ = ("_drawn", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed, self._drawn = seed, 0

    def copy(self) -> LeafRandom:
        """Return another one that draws the same numbers."""
        other = LeafRandom(self._seed)
        other._drawn = self._drawn
        return other

    def _draw(self) -> int:
        self._drawn += 1
        return mixed(mixed(self._seed) + self._drawn)

    def random(self) -> float:
        """Return a number of [0, 1)."""
        return (self._draw() >> 11) * 2.0**-53

    def integers(self, high: int, /) -> int:
        """Return a whole number of [0, high)."""
        return self._draw() * high >> 64

    def bytes(self, length: int, /) -> bytes:
        """Return that many random bytes."""
        words = (self._draw().to_bytes(8, "little") for _ in range(-(-length // 8)))
        return b"".join(words)[:length]


class LeafIngest(Ingest):
    """An ingest of readings that are numbers."""

    def __init__(
        self,
        summaries: SpanSummaries,
        rng: RandomSource,
        settings: ClientSettings,
        rows: NumberedRows,
        scores: BankScores,
    ) -> None:
        super().__init__(summaries, rng, settings)
        self._of, self._by = rows, scores
        self._scored = ScoredRows()

    def monitor_for(self, current: ClientIncarnation) -> NodeMonitor | None:
        """Return None: nothing is judged."""
        return None

    @property
    def scores(self) -> ScoreSketches | None:
        """Sketches of recent scores; None before the first score."""
        return self._scored.sketches

    def take(
        self, taken: Taken, models: list[tuple[int, Model | None]], current: ClientIncarnation
    ) -> None:
        """Let an incarnation learn readings.

        models : how many readings, and the model that they are scored by, in their order
        """
        scored = [
            (n, self._by.buckets(model))
            for n, model in models
            if model is not None
            and model.summary is not None
            and model.fingerprint == current.fingerprint
        ]
        n = sum(n for n, _ in scored)
        if n:
            # A model is there from some reading on.
            last = taken.numbers.stop
            self._scored.add(scored, self._of.picks(taken.stream, last - n, last))
        for wall in taken.walls:
            if not self.trail.levels or int(wall // MINUTE_S) != self.trail.last:
                self.trail = self.trail.add(wall, UNLIMITED)
        rows = np.empty((len(taken.numbers), 2))
        rows[:, 0], rows[:, 1] = taken.stream, taken.numbers
        current.learn(rows, rows, taken.now)


class LeafNode(ClientNode):
    """A client whose readings are numbers.

    Attributes
    ----------
    next_at : float
        When its next reading comes, on its steady clock; infinite if none does.
    every_s : float
        Time between two readings.
    """

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: SpanSummaries,
        rng: RandomSource,
        scores: BankScores,
        rows: NumberedRows,
    ) -> None:
        super().__init__(settings, schema, summaries, rng)
        self._leaf = LeafIngest(summaries, rng, settings, rows, scores)
        self._ingest = self._leaf
        self.next_at, self.every_s = math.inf, 0.0

    def take(self, taken: Taken, models: list[tuple[int, Model | None]]) -> None:
        """Take readings that have come since the last step."""
        self._ending = False
        self._leaf.take(taken, models, self.current)

    @property
    def wakes_at(self) -> float:
        """When something may be decided: at a time of `ClientNode`, or at a reading."""
        news, session, reading = self._news, self._session, self.next_at
        has_news = news.has_news(self.current)
        due = session.due_at(news=has_news)
        if not has_news:
            # The next reading is news.
            due = min(due, max(session.due_at(news=True), reading))
        due = min(due, self.finals.due_at(session), self._turns_at(reading))
        if self._kept == self.current.progress:
            return min(due, max(self._checkpoint_at, reading))
        return min(due, self._checkpoint_at)

    def _turns_at(self, reading: float) -> float:
        """Return at which reading it looks whether its subspace has turned."""
        missing = self._news.look_at - self.current.counts.learnt
        return reading + max(0, missing - 1) * self.every_s
