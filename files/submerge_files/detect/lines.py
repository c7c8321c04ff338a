"""Alarms as text: a line or two for a person, an object for a machine."""

from __future__ import annotations

import math
from typing import Any

from submerge.history.detection import FoundAlarm, RowPlace
from submerge_files.console.printable import name_text, printable
from submerge_files.console.units import figure, moment
from submerge_files.detect.run import Detected, lasted


def as_object(found: FoundAlarm) -> dict[str, Any]:
    """Return an alarm as JSON holds it; times are seconds since 1970, None without times."""
    alarm = found.alarm
    return {
        "machine": alarm.node,
        "began": _place(found.began),
        "peaked": _place(found.peaked),
        "ended": None if found.ended is None else _place(found.ended),
        "worst": alarm.worst,
        "cause": alarm.cause,
        "first": dict(alarm.first),
        "top": dict(alarm.top),
        "deviations": {
            each.channel: {"value": each.value, "expected": each.expected}
            for each in found.deviations
        },
        "settled": alarm.settled,
        "provisional": alarm.provisional,
    }


def as_text(found: FoundAlarm, detection: Detected) -> str:
    """Return the lines of an alarm."""
    alarm = found.alarm
    when = _when(found.began)
    if detection.machines > 1:
        when = f"{name_text(alarm.node)} {when}"
    marks = "".join(
        f", {mark}"
        for mark, holds in (("provisional", alarm.provisional), ("settled", alarm.settled))
        if holds
    )
    channels = ", ".join(f"{name_text(name)} {share:.0%}" for name, share in alarm.first)
    about = f"{lasted(found)}, {alarm.worst:.3g} times its limit"
    lines = [f"{when}  {about} ({alarm.cause}){marks}: {channels or 'no channel'}"]
    for each in found.deviations[:1]:
        unit = detection.units.get(each.channel, "")
        value = f"{figure(each.value)} {name_text(unit)}".rstrip()
        lines.append(
            f"    {name_text(each.channel)} {value}, where the others say {figure(each.expected)}"
        )
    return "\n".join(lines)


def _place(place: RowPlace) -> dict[str, Any]:
    time = None if math.isnan(place.time) else place.time
    return {"time": time, "file": place.file, "row": place.row}


def _when(place: RowPlace) -> str:
    if math.isnan(place.time):
        return f"{printable(place.file)} row {place.row}"
    return moment(place.time)
