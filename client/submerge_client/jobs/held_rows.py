"""HeldSample: the rows that a client holds for jobs.

1. They are a uniform sample of the complete rows that came under the present schema, as that
   schema scales them. Another schema empties it.
2. A row that is not learnt is not held: one that an alarm or an operator withholds, one outside the
   operating state, one with a gap, filled or not.
3. The memory is 8 bytes for each number: `most` rows of the schema's channels.
4. While the fleet has still to choose its landmarks, they are a sample to choose from, in the units
   of the open schema (`LandmarkSample`).
5. It is in memory only, and a process begins with none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np

from submerge import Schema
from submerge._linalg import Array
from submerge.client.node import ClientNode
from submerge.features import OpenLandmarks
from submerge.jobs.landmark_sample import LandmarkSample, RowSample
from submerge.judge.prepare import prepare
from submerge.protocol.machine import Effect, Scored
from submerge.protocol.names import RandomSource


class HeldSample:
    """A sample of rows. The agent's loop adds to it, and another thread reads it.

    most : Rows that it holds; 0: none.
    """

    def __init__(self, most: int, rng: RandomSource) -> None:
        self.most, self._rng = most, rng
        self._lock = threading.Lock()
        self._fingerprint = ""
        self._sample: RowSample | LandmarkSample | None = None

    def __len__(self) -> int:
        """Return how many rows it holds."""
        return 0 if self._sample is None else len(self._sample)

    def read(self) -> tuple[str, Array]:
        """Return the fingerprint of the rows' schema, and a copy of them, (n, channels)."""
        with self._lock:
            rows = np.empty((0, 0)) if self._sample is None else self._sample.rows
            return self._fingerprint, rows

    def see(self, rows: Array, effects: Iterable[Effect], node: ClientNode) -> None:
        """Take what a node has learnt of rows (n, channels), given in their units.

        effects : of the step that read them
        """
        current = node.current
        # While the scaling is open there is nothing to hold, but for a choice of landmarks.
        chooses = isinstance(current.schema.features, OpenLandmarks)
        if not self.most or not (current.learns or chooses):
            return
        if current.fingerprint != self._fingerprint:
            self._begin(current.fingerprint, current.schema, raw=current.raw)
        scored = next((each for each in effects if isinstance(each, Scored)), None)
        learnt = _without_scores(rows, node) if scored is None else _learnt(scored)
        if len(learnt) and self._sample is not None:
            with self._lock:
                self._sample.add(learnt)

    def _begin(self, fingerprint: str, schema: Schema, *, raw: bool) -> None:
        with self._lock:
            self._fingerprint = fingerprint
            self._sample = RowSample(self.most, schema.width, self._rng)
            if isinstance(schema.features, OpenLandmarks):
                known = self.most, schema.width, schema.features.kernel, self._rng
                self._sample = LandmarkSample(*known, raw=raw)


def _learnt(scored: Scored) -> Array:
    """Return the scored rows that are complete, and are learnt."""
    block = scored.block
    fine = ~scored.decision.withheld
    if block.gaps is not None:
        fine &= ~block.gaps.any(axis=1)
    return block.rows if fine.all() else block.rows[fine]


def _without_scores(rows: Array, node: ClientNode) -> Array:
    """Return the complete rows while there is no model: all of them are learnt, or none."""
    current, monitor = node.current, node.monitor
    if monitor is not None and monitor.withholds:
        return rows[:0]
    when = node.settings.learn_when
    return prepare(rows, current.schema, fill=None, when=when, lifts=False).rows
