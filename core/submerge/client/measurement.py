"""What a client measures while the fleet's scaling or gamma is open (docs/decisions/0037)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array
from submerge.judge.prepare import LARGEST_SCALED, prepare
from submerge.pca.budget import MOST_AT_ONCE, gapped_bytes
from submerge.pca.expectation import Guesses
from submerge.pca.sapca import SAPCA
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Counts, Report, successor
from submerge.protocol.summaries import Summaries, Summary
from submerge.schema import Schema

AT_ONCE = 256
"""Readings that are lifted into features at once."""

FAINT = 2.0**-200
"""Least weight of what is kept: smaller ones would underflow."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRows:
    """Readings in the units of an open schema: all of their scatter, or the readings."""

    whole: WholeScatter | None
    rows: Array  # (n, channels), the oldest first, without the whole scatter
    weights: Array  # (n,), what fading has left of each, at most 1 and never falling
    schema: bytes = b""  # an earlier version kept none


class MeasuringMemory:
    """The readings of one incarnation, as long as its schema is open."""

    def __init__(self, schema: Schema, summaries: Summaries) -> None:
        self._fingerprint = schema.fingerprint if summaries.is_narrow(schema) else ""
        room = gapped_bytes(schema.width, MOST_AT_ONCE)  # so it holds the whole scatter
        self._engine, self._weight = SAPCA(1, oversample=0, memory=room), 0.0  # of a narrow group
        self._schema = schema.canonical
        # Half of the memory: where readings are thinned, both copies are there for a moment.
        self._most = max(2, summaries.memory // (16 * (schema.width + 1)))
        self._room = np.empty((0, schema.width + 1))
        self._n, self._seen, self._every = 0, 0, 1

    def learn(self, rows: Array, gaps: Guesses | None = None) -> None:
        """Take in rows (n, channels), at least one, in the units of the open schema."""
        if self._fingerprint:
            self._engine.partial_fit(rows, gaps=gaps)
            self._weight += len(rows)
            return
        while self._n + len(picked := rows[-self._seen % self._every :: self._every]) > self._most:
            kept = self._room[: self._n : 2].copy()
            self._room, self._n, self._every = kept, len(kept), 2 * self._every
        end = self._n + len(picked)
        if end > len(self._room):
            larger = np.empty((min(2 * end, self._most), self._room.shape[1]))
            larger[: self._n] = self._room[: self._n]
            self._room = larger
        self._room[self._n : end, :-1], self._room[self._n : end, -1] = picked, 1.0
        self._n, self._seen = end, self._seen + len(rows)

    def fade(self, factor: float) -> None:
        if self._weight * factor > FAINT:
            self._engine.fade(factor)
            self._weight *= factor
        weights = self._room[: self._n, -1]
        np.maximum(weights * factor, FAINT, out=weights)

    def kept(self, factor: float) -> MeasuredRows | None:
        """Return the readings, faded by `factor`; None before the first."""
        whole = self._engine.whole_scatter
        if whole is not None:
            none = self._room[:0]
            whole = replace(whole, schema=self._fingerprint)
            whole = whole.faded(factor) if whole.weight * factor > FAINT else whole
            return MeasuredRows(whole, none[:, :-1], none[:, -1], self._schema)
        if not self._n:
            return None
        room = self._room[: self._n].copy()
        weights = np.maximum(room[:, -1] * factor, FAINT)
        return MeasuredRows(None, room[:, :-1], weights, self._schema)


def successors_report(
    report: Report, measured: MeasuredRows, settled: Schema, summaries: Summaries
) -> Report | None:
    """Return the final report of a successor; None if the readings are of another schema."""
    counts = report.counts
    schema = _open_schema(report.fingerprint, settled, measured.schema)
    scales = schema is not None and schema.scaling is None and settled.scaling is not None
    if schema is None:
        opened = Schema.parse(measured.schema) if measured.schema else None
        if opened is None or opened.family != settled.family:
            return None
        # Channels have come or gone while they were measured.
        summary, learnt = _restated(measured, opened, settled, summaries, counts.learnt)
    elif measured.whole is None:
        # Rows that are scaled already are only lifted.
        units = settled if scales else replace(settled, scaling=None)
        summary, learnt = _learnt(measured, units, settled, summaries)
    else:
        summary = _rescaled(measured.whole, settled, scales=scales)
        learnt = 0 if summary is None else counts.learnt
    rest = counts.learnt - learnt
    name = successor(report.stamp.incarnation, settled.family)
    return replace(
        report,
        stamp=report.stamp._replace(incarnation=name),
        fingerprint=settled.fingerprint,
        summary=summary,
        moments=None,
        counts=Counts(learnt, counts.withheld + rest, counts.lost),
        scores=None,
        alarm_status=None,
    )


def _open_schema(fingerprint: str, settled: Schema, text: bytes) -> Schema | None:
    """Return the schema of that fingerprint, if `settled` has only settled what it left open."""
    opened = Schema.parse(text) if text else None
    if opened is not None and opened.fingerprint == fingerprint and settled.is_like(opened):
        return opened
    features = {settled.features, settled.features.settled_at(None)}
    schemas = [
        replace(settled, scaling=scaling, features=each)
        for scaling in (settled.scaling, None)
        for each in features
    ]
    return next((each for each in schemas if each.fingerprint == fingerprint), None)


def _rescaled(whole: WholeScatter, settled: Schema, *, scales: bool) -> WholeScatter | None:
    """Return a scatter in the units of the settled schema; None if its rows are too large."""
    whole = replace(whole, schema=settled.fingerprint)
    if scales and settled.scaling is not None:
        whole = whole.scaled(np.array(settled.scaling.offset), np.array(settled.scaling.scale))
    if settled.center == "none":
        scatter = whole.scatter + whole.weight * np.outer(whole.mean, whole.mean)
        energies, mean = np.diag(scatter).copy(), np.zeros(whole.dim)
        energy = float(energies.sum())
        whole = replace(whole, held=scatter, mean=mean, energy=energy, channel_energies=energies)
    largest = max(float(np.abs(whole.mean).max()), (whole.energy / whole.weight) ** 0.5)
    return whole.rounded() if largest < LARGEST_SCALED else None


def _restated(
    measured: MeasuredRows, opened: Schema, settled: Schema, summaries: Summaries, readings: int
) -> tuple[Summary | None, int]:
    """Return what was measured under an open schema as learnt under one with other channels."""
    if measured.whole is not None:
        found = summaries.restated(measured.whole, opened, settled, like=None)
        largest = max(float(np.abs(each.mean).max()) for each in found.pieces)
        return (found, readings) if largest < LARGEST_SCALED else (None, 0)
    places = {channel: i for i, channel in enumerate(opened.named)}
    # A channel that was not there is where it is measured from.
    offset = np.zeros(settled.width) if settled.scaling is None else settled.scaling.offset
    rows = np.tile(np.asarray(offset), (len(measured.rows), 1))
    for i, channel in enumerate(settled.named):
        if channel in places:
            rows[:, i] = measured.rows[:, places[channel]]
    return _learnt(replace(measured, rows=rows), settled, settled, summaries)


def _learnt(
    measured: MeasuredRows, units: Schema, settled: Schema, summaries: Summaries
) -> tuple[Summary | None, int]:
    """Return what a learner has learnt of the readings that are kept, and how many they are."""
    learner, learnt, last = summaries.learner(settled), 0, 0.0
    for rows, weight in _alike(measured):
        block = prepare(rows, units, fill=None)
        if not len(block):
            continue
        if last and weight != last:
            learner.fade(last / weight)
        learner.learn(block.rows, block.features)
        learnt, last = learnt + len(block), weight
    if not learnt:
        return None, 0
    if last != 1.0:
        learner.fade(last)
    return learner.summary(), learnt


def _alike(measured: MeasuredRows) -> Iterator[tuple[Array, float]]:
    """Yield readings of one weight at a time, and the weight."""
    rows, weights = measured.rows, measured.weights
    changes = np.flatnonzero(np.diff(weights)) + 1
    for some, weight in zip(
        np.split(rows, changes), weights[np.concatenate([[0], changes])], strict=True
    ):
        for start in range(0, len(some), AT_ONCE):
            yield some[start : start + AT_ONCE], float(weight)
