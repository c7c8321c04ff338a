"""AlarmSpan: an alarm on rows, as plain values for Python."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from submerge.history.detection import FoundAlarm, RowPlace
from submerge.protocol.alarm_status import excess


@dataclass(frozen=True, slots=True, repr=False)
class AlarmSpan:
    """An alarm on rows.

    began, peaked : As the frame has it, in UTC from files; else the row's number (in files from 1).
    ended : None if the rows ended first.
    worst : The highest score, over its limit.
    cause : Which score that was.
    channels : The channels to blame when it began, with their shares, the largest first.
    value, expected : Of these at the peak: what was read, and what the others say, in units.
    provisional : Whether a limit of few rows raised it.
    settled : Whether it ended because the readings keep to a new level.
    """

    began: Any
    peaked: Any
    ended: Any
    worst: float
    cause: str
    channels: Mapping[str, float]
    value: Mapping[str, float]
    expected: Mapping[str, float]
    provisional: bool
    settled: bool
    machine: str
    file: str = ""

    def __repr__(self) -> str:
        until = "open at the end" if self.ended is None else f"to {self.ended}"
        blamed = ", ".join(f"{name} {share:.0%}" for name, share in self.channels.items())
        off = [
            f"; {name} {value:.4g}, expected {self.expected[name]:.4g}"
            for name, value in self.value.items()
        ]
        mark = ", provisional" if self.provisional else ""
        return (
            f"<Alarm {self.began} {until}, {excess(self.worst)} times its limit{mark}:"
            f" {blamed or 'no channel'}{off[0] if off else ''}>"
        )


def alarm_span(found: FoundAlarm, when: Callable[[RowPlace], Any]) -> AlarmSpan:
    alarm = found.alarm
    return AlarmSpan(
        when(found.began),
        when(found.peaked),
        None if found.ended is None else when(found.ended),
        alarm.worst,
        alarm.cause,
        dict(alarm.first),
        {each.channel: each.value for each in found.deviations},
        {each.channel: each.expected for each in found.deviations},
        alarm.provisional,
        alarm.settled,
        alarm.node,
        found.began.file,
    )


def when_in(place: RowPlace) -> Any:
    """Return the time of a row of a file in UTC, or its number."""
    if math.isnan(place.time):
        return place.row
    return datetime.datetime.fromtimestamp(place.time, datetime.UTC)
