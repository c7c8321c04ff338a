"""recent_statistics(), recent_readings(): a client's newest rows, as people look at them.

They are computed when they are asked for, by the model, the mean and the limits of that moment: an
older row may have been scored otherwise when it came.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.detector import AlarmDetector, RecentScores, row_statistics
from submerge.client.drill import DrillTask
from submerge.client.monitor import NodeMonitor
from submerge.errors import UsageError
from submerge.judge.prepare import in_units
from submerge.judge.score import RowScores
from submerge.pca.reconstruct import usual_squares
from submerge.schema import Schema
from submerge.stats.statistic import By

BLAMED = 3  # channels that are named with a row
CHUNK = 64  # rows that are scored together: memory stays small
MOST_SCORE = 1e300  # a score is no more: what is infinite cannot be drawn


class RecentStatistics(NamedTuple):
    """Statistics of the newest rows by a model, as compared with limits, oldest first."""

    version: int
    provisional: bool
    at: Array  # Unix seconds
    limits: dict[By, float | None]
    values: dict[By, Array]  # (n,) of each kind
    blame: list[list[tuple[int, float]]]  # (channel, share) of each row, the largest share first


class RecentReadings(NamedTuple):
    """Readings (n, channels) of the newest rows in their units, oldest first; a gap is NaN."""

    at: Array  # Unix seconds
    values: Array
    expected: Array
    sd: Array  # (channels,), NaN where nothing predicts channels


def recent_statistics(monitor: NodeMonitor | None) -> RecentStatistics:
    """Return the scores of the rows in memory; UsageError if rows are not scored, and why."""
    monitor, task, detector = _scoring(monitor)
    settings, settled = detector.settings, monitor.own is None or monitor.own.settled
    scored = [
        task.model.score(task.rows[first : first + CHUNK])
        for first in range(0, len(task.rows), CHUNK)
    ]
    even = {kind: np.concatenate([each.even[kind] for each in scored]) for kind in scored[0].even}
    watched = RecentScores().watched(even, lambda kind: task.limits.get(kind, math.inf))
    if not settled:
        watched.pop("channel", None)
    span = RecentScores().span(watched, settings.of - 1)
    found = row_statistics(tuple(watched), span, settings.of, settings.after)
    return RecentStatistics(
        monitor.scored_by,
        detector.limits.provisional_s > 0,
        monitor.recent_rows.times,
        {kind: task.limits.get(kind) for kind in watched},
        {
            kind: np.nan_to_num(np.minimum(each, MOST_SCORE))
            for kind, each in zip(watched, found, strict=True)
        },
        [row for each in scored for row in _blamed(each)],
    )


def recent_readings(monitor: NodeMonitor | None, schema: Schema, numbers: int) -> RecentReadings:
    """Return the newest readings in memory, at most so many numbers, and what is expected."""
    monitor, task, _ = _scoring(monitor)
    channels = task.model.channels
    rows = task.rows[-max(1, numbers // channels) :]
    parts = [_expected(task, rows[first : first + CHUNK]) for first in range(0, len(rows), CHUNK)]
    scale = np.ones(channels) if schema.scaling is None else schema.scaling.scale[:channels]
    scores = parts[0][1]
    # Only the leading numbers of a row are of its own time.
    padded = rows.copy()
    padded[:, :channels] = np.concatenate([expected for expected, _ in parts])
    return RecentReadings(
        monitor.recent_rows.times[-len(rows) :],
        in_units(rows, schema)[:, :channels],
        in_units(padded, schema)[:, :channels],
        _sd(scores) * scale,
    )


def _scoring(monitor: NodeMonitor | None) -> tuple[NodeMonitor, DrillTask, AlarmDetector]:
    if monitor is None:
        raise UsageError("no row has come yet under a settled schema")
    if monitor.detector is None:
        raise UsageError("its rows are not scored for alarms: [alarms] is off")
    if monitor.waiting is not None:
        raise UsageError(f"it is {monitor.waiting.words}")
    task = monitor.drill_task()
    if task is None or not len(task.rows):
        raise UsageError("no row has been scored since it began")
    return monitor, task, monitor.detector


def _expected(task: DrillTask, rows: Array) -> tuple[Array, RowScores]:
    """Return what is expected of each channel (n, channels), scaled."""
    filled, gaps = rows, np.isnan(rows).any(axis=1)
    if gaps.any():
        filled = rows.copy()
        filled[gaps] = task.model.scoring.filled(rows[gaps], task.model.own)
    scores = task.model.score(rows)
    return filled[:, : task.model.channels] - scores.left_out, scores


def _sd(scores: RowScores) -> Array:
    """Return by how much channels are off, typically: (channels,), scaled."""
    expected, scale = scores.expected, scores.residual_scale
    if expected is None:
        return np.full(scores.errors.shape[1], math.nan)
    if scale is not None and scale.ready:
        expected = usual_squares(expected, scale.typical)
    return np.sqrt(expected)


def _blamed(scores: RowScores) -> list[list[tuple[int, float]]]:
    order, shares = scores.top(BLAMED)
    return [
        [(channel, share) for channel, share in zip(*row, strict=True) if share > 0]
        for row in zip(order.tolist(), shares.tolist(), strict=True)
    ]
