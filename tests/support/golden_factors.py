"""What golden records hold of a group whose model has factors: distances beside SPE and T2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge.client.monitor_state import MonitorState
from submerge.pca.factor import Factors
from submerge.protocol.alarm_status import Alarm, TypicalAlarms
from submerge.protocol.messages import Model, Report
from support import golden_parts as parts
from support.golden_parts import numbers

CAUSES = {"spe": "distance", "t2": "smoothed"}
"""Causes of alarms of such a group, in the place of others."""


def factors(dim: int) -> Factors:
    """Return factors whose loadings are apart."""
    return Factors(noise=numbers(0.5, dim), loadings=np.outer(numbers(1.0, dim), [2.0, 0.25]))


def report(value: Report) -> Report:
    """Return a report with distances, and with alarms that they raised."""
    scores, status = value.scores, value.alarm_status
    assert scores is not None
    assert status is not None
    maxima = replace(
        scores.maxima, distance=parts.fine_sketch(201), smoothed=parts.fine_sketch(202)
    )
    typical = TypicalAlarms(promised=1.125, unconfirmed=5, nodes=4)
    return replace(
        value,
        scores=scores._replace(maxima=maxima, distance=parts.coarse_sketch(203)),
        alarm_status=replace(status, alarms=tuple(map(_alarm, status.alarms)), typical=typical),
    )


def model(value: Model) -> Model:
    """Return a model with factors."""
    maxima = replace(value.maxima, distance=parts.fine_sketch(204), smoothed=parts.fine_sketch(205))
    return replace(
        value,
        maxima=maxima,
        limits=replace(value.limits, distance=(30.5, 40.5, 50.5)),
        factors=tuple(factors(part.dim) for part in value.scoring_summary.parts),
        widened=1.375,
    )


def monitor(value: MonitorState) -> MonitorState:
    """Return a monitor whose hours and limits are of distances, too."""
    detector = value.detector
    hours = replace(
        detector.hours,
        windows={
            **detector.hours.windows,
            "distance": (parts.fine_sketch(206), parts.fine_sketch(207)),
            "smoothed": (parts.fine_sketch(208), parts.fine_sketch(209)),
        },
        spared={**detector.hours.spared, "distance": 2.125, "smoothed": 2.25},
    )
    return replace(
        value,
        detector=replace(
            detector,
            alarms=tuple(map(_alarm, detector.alarms)),
            frozen={**detector.frozen, "distance": 6.5, "smoothed": 7.5},
            hours=hours,
        ),
        reference=None if value.reference is None else model(value.reference),
    )


def _alarm(value: Alarm) -> Alarm:
    cause: Any = CAUSES.get(value.cause, value.cause)
    return replace(value, cause=cause)
