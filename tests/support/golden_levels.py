"""What golden records hold of a client whose alarms have settled at a new level, or may yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from submerge.client.alarms.new_level import NewLevel
from submerge.client.monitor_state import MonitorState
from submerge.protocol.alarm_status import Alarm, Deviation
from submerge.stats.node_mean import OwnMean
from support.golden_parts import numbers


def monitor(value: MonitorState) -> MonitorState:
    """Return a monitor with an open alarm whose rows are somewhere else than before."""
    assert value.own is not None
    return replace(
        value,
        detector=replace(value.detector, alarms=tuple(map(_alarm, value.detector.alarms))),
        level=NewLevel(_mean(value.own, 3.0), _mean(value.own, 4.0), calm_s=43_210.5),
        offset=numbers(0.75, len(value.own.rows)),
    )


def _mean(like: OwnMean, first: float) -> OwnMean:
    features = None if like.features is None else numbers(first + 1, len(like.features))
    return OwnMean(numbers(first, len(like.rows)), features, 500.5 + first, 600, 50_000.25 + first)


def _alarm(value: Alarm) -> Alarm:
    """Return an alarm with its onset, and with values; the one that is over has settled."""
    changes: dict[str, Any] = {
        "first": (("flow", 0.625), ("bearing heat", 0.375)),
        "deviations": (Deviation("bearing heat", 71.5, 64.25), Deviation("oil", -2.5, 3.5)),
        "settled": not value.is_open and not value.verdict,
    }
    return replace(value, **changes)
