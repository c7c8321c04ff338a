"""Alarms on recorded rows as JSON holds them, and back."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from submerge.history.detection import FoundAlarm, RowPlace
from submerge.history.layout import Periods
from submerge.protocol.alarm_status import Alarm, Deviation
from submerge_files.detect.run import JudgedFiles

PAIRS = ("top", "first")
"""Fields of an alarm that are tuples of pairs."""


def judged_text(found: JudgedFiles) -> dict[str, Any]:
    """Return what came of rows as JSON holds it."""
    periods = found.periods
    return {
        "alarms": {name: [_alarm(each) for each in some] for name, some in found.alarms.items()},
        "rows": found.rows,
        "judged": found.judged,
        "stated_rows": found.stated_rows,
        "left_out": found.left_out,
        "apart": [*periods.counts.items()],
        "rounded": periods.rounded,
        "first": periods.first,
        "last": periods.last,
    }


def judged_of(text: dict[str, Any]) -> JudgedFiles:
    """Return what JSON holds."""
    counts = Counter({float(value): int(n) for value, n in text["apart"]})
    return JudgedFiles(
        {name: [_alarm_of(each) for each in some] for name, some in text["alarms"].items()},
        text["rows"],
        text["judged"],
        text["stated_rows"],
        Counter(text["left_out"]),
        Periods(counts, text["rounded"], text["first"], text["last"]),
    )


def _alarm(found: FoundAlarm) -> dict[str, Any]:
    return {
        "alarm": asdict(found.alarm),
        "began": _place(found.began),
        "peaked": _place(found.peaked),
        "ended": None if found.ended is None else _place(found.ended),
        "deviations": found.deviations,
    }


def _alarm_of(text: dict[str, Any]) -> FoundAlarm:
    fields = dict(text["alarm"])
    fields |= {name: tuple(map(tuple, fields[name])) for name in PAIRS}
    fields["deviations"] = _deviations_of(fields["deviations"])
    return FoundAlarm(
        Alarm(**fields),
        RowPlace(*text["began"]),
        RowPlace(*text["peaked"]),
        None if text["ended"] is None else RowPlace(*text["ended"]),
        _deviations_of(text["deviations"]),
    )


def _deviations_of(texts: list[list[Any]]) -> tuple[Deviation, ...]:
    return tuple(Deviation(*each) for each in texts)


def _place(place: RowPlace) -> list[Any]:
    return [place.file, place.row, place.time]
