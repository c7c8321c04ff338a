"""What golden records hold of blocks that are no hours, and of provisional limits."""

from __future__ import annotations

from dataclasses import replace

from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor_state import MonitorState
from submerge.protocol.alarm_status import Alarm, Looks, Waiting
from submerge.protocol.messages import Model, Report
from submerge.stats.block_maxima import BlockMaxima
from support import golden_parts as parts


def report(value: Report) -> Report:
    """Return a report of blocks of 64 s, and of provisional alarms."""
    scores, status = value.scores, value.alarm_status
    assert scores is not None
    assert status is not None
    waiting = Waiting("mean", 4, 10)
    status = replace(status, alarms=_alarms(status.alarms), open=0, waiting=waiting)
    return replace(
        value,
        scores=scores._replace(maxima=_maxima(scores.maxima)),
        alarm_status=replace(status, provisional_rows=1300.5),
    )


def model(value: Model) -> Model:
    """Return a model of a group that goes over to other blocks."""
    return replace(value, maxima=_maxima(value.maxima), block_s=256.0)


def monitor(value: MonitorState) -> MonitorState:
    """Return a monitor that has gone over to other blocks."""
    detector = value.detector
    hours = replace(
        detector.hours, block_s=256.0, before=_maxima(parts.maxima(301, of_readings=True))
    )
    highest = HighestSoFar(
        {"spe": 250, "t2": 125}, {"spe": 2.5, "t2": 3.5}, {"spe": 1.25, "t2": 1.75}
    )
    return replace(
        value,
        detector=replace(detector, alarms=_alarms(detector.alarms), hours=hours, highest=highest),
        reference=None if value.reference is None else model(value.reference),
    )


def looking(value: tuple[Alarm, ...]) -> tuple[Alarm, ...]:
    """Return alarms that look like a sensor, and like the process, in turns."""
    looks = Looks("sensor", 5, 1.25), Looks("process", 5, 4.5)
    return tuple(replace(each, looks=looks[i % 2]) for i, each in enumerate(value))


def report_with_looks(value: Report) -> Report:
    """Return a report whose alarms say what they look like."""
    status = value.alarm_status
    assert status is not None
    return replace(value, alarm_status=replace(status, alarms=looking(status.alarms)))


def _maxima(value: BlockMaxima | None) -> BlockMaxima:
    assert value is not None
    return replace(value, block_s=64.0, lengths=(0, 0, 0, 0, 0, 0, 1))


def _alarms(value: tuple[Alarm, ...]) -> tuple[Alarm, ...]:
    return tuple(replace(alarm, provisional=True) for alarm in value)
