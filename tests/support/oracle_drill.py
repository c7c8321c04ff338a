"""The drill's twin: faults written into a table, which the real detector reads row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from submerge.client.alarms.detect import detect
from submerge.client.alarms.detector import AlarmDetector, Situation
from submerge.client.alarms.limits import AlarmLimits
from submerge.drill.response import NodeScorer
from submerge.judge.prepare import prepare
from submerge.judge.score import score
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings


def with_fault(
    rows: np.ndarray, lags: int, channel: int, start: int, offsets: np.ndarray
) -> np.ndarray:
    """Return rows whose channel is off from `start` on, in each row's copies of it, too."""
    spoilt, channels = rows.copy(), rows.shape[1] // lags
    for t, offset in enumerate(offsets):
        for lag in range(lags):
            if start + t + lag < len(rows):
                spoilt[start + t + lag, channel + lag * channels] += offset
    return spoilt


def raises_alarm(
    model: NodeScorer, rows: np.ndarray, limits: dict, settings: AlarmSettings, since: int
) -> bool:
    """Return whether a node that reads rows in turn has an alarm at `since`, or after it."""
    n = model.channels
    detector = AlarmDetector.of("node", settings, tuple(f"x{i}" for i in range(n)))
    detector = replace(detector, limits=AlarmLimits(limits, dict.fromkeys(limits, 0.0)))
    for i in range(len(rows)):
        block = prepare(
            rows[i : i + 1],
            model.schema,
            fill=lambda gappy: model.scoring.filled(gappy, model.own),
        )
        scores = score(block, model.scoring, model.own, model.residual_scale)
        detector, decision = detect(detector, block, scores, Situation(Now(60.0 * i, 60.0 * i), 1))
        if i >= since and decision.alarmed.any():
            return True
    return False
