"""Line: how a machine is, in one line for a person, or in one of JSON for a program."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from submerge.protocol.alarm_status import Alarm, Deviation
from submerge_files.console.printable import name_text
from submerge_files.console.units import ago, figure
from submerge_operate.up.box_state import BoxState

Occasion = Literal["minute", "first scores", "alarm began", "alarm ended", "end"]
"""Why there is a line."""

MOST_NAMED = 2
"""Most channels that a line names."""

LEAST_SHARE = 0.01
"""Smaller shares of a limit have no figure."""


def text_of(
    state: BoxState, at: float, occasion: Occasion, *, units: Mapping[str, str], needed: int
) -> str:
    """Return a line for a person, in local time.

    at : wall time
    units : of channels, by name
    needed : readings that measure the scale
    """
    parts = [_rows(state, needed), *_missing(state)]
    if state.measured is None:
        parts.append(_score(state))
    elif occasion == "end":
        parts.append("the next start goes on from them")
    alarm = _alarms(state, at, occasion, units)
    parts.insert(0 if state.open else len(parts), alarm)
    return f"{_local(at)}  {'; '.join(parts)}"


def json_of(
    state: BoxState, at: float, occasion: Occasion, *, units: Mapping[str, str], needed: int
) -> str:
    """Return the same as one object of JSON."""
    score = state.score
    line: dict[str, Any] = {"at": round(at, 3), "why": occasion, "rows": state.rows}
    line |= {"learnt": state.learnt, "withheld": state.withheld}
    if state.measured is not None:
        line |= {"measured": state.measured, "of": needed}
        line["ready_in_s"] = None if state.ready_in_s < 0 else round(state.ready_in_s)
        line |= {"waits_on": state.waits_on} if state.waits_on else {}
    if score is not None:
        line |= {"statistic": score.kind, "score": _short(score.value)}
        line |= {} if score.share is None else {"share_of_limit": _short(score.share)}
    if state.waits_for:
        line["waits_for"] = state.waits_for
    if state.absent:
        line["absent"] = state.absent
    if state.never:
        line["never"] = state.never
    if state.quiet_s:
        line["quiet_s"] = round(state.quiet_s)
    line["provisional"] = state.provisional
    line["armed_in_s"] = None if state.armed_in_s < 0 else round(state.armed_in_s)
    line["alarms"] = [_alarm_fields(each, units) for each in state.open]
    return json.dumps(line, ensure_ascii=False)


def page_line(url: str, at: float, *, as_json: bool) -> str:
    """Return where the page is, as a line for a person, or as one object of JSON."""
    if as_json:
        return json.dumps({"at": round(at, 3), "why": "page", "url": url})
    return f"{_local(at)}  page at {url}"


def _missing(state: BoxState) -> Iterator[str]:
    """Yield what does not come from the sensor."""
    if state.quiet_s:
        yet = "" if state.rows else "yet, "
        advice = f" ({state.advice})" if state.advice else ""
        yield f"no row {yet}for {ago(state.quiet_s)}{advice}"
        return
    absent = [name for name in state.absent if name not in state.waits_on]
    for yet, of in ((" yet", state.never), ("", set(absent) - set(state.never))):
        names = [name for name in absent if name in of]
        if names:
            yield f"no value{yet} of {_some(names)}"


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(map(name_text, names[:MOST_NAMED])) + (
        f" (and {more} more)" if more > 0 else ""
    )


def _rows(state: BoxState, needed: int) -> str:
    text = f"{state.rows:,} {'row' if state.rows == 1 else 'rows'} read"
    if state.measured is not None:
        return f"{text}; measuring the scale of each channel: {_measured(state, needed)}"
    withheld = f", {state.withheld:,} withheld" if state.withheld else ""
    return f"{text}, {state.learnt:,} learnt{withheld}"


def _measured(state: BoxState, needed: int) -> str:
    """Return how much is measured, and what it waits for."""
    text = f"{min(state.measured or 0, needed):,} of {needed:,} rows"
    if state.waits_on and not state.quiet_s:
        verb = "has" if len(state.waits_on) == 1 else "have"
        return f"{text}, waiting for {_some(state.waits_on)}, which {verb} no value{_yet(state)}"
    return f"{text}, about {ago(state.ready_in_s)} more" if state.ready_in_s > 0 else text


def _yet(state: BoxState) -> str:
    return " yet" if set(state.waits_on) <= set(state.never) else ""


def _score(state: BoxState) -> str:
    """Return the newest score, and what there is to know of its limit."""
    score = state.score
    if score is not None and score.share is not None:
        # 1e-05 says no more to a person than that it is small.
        shown = figure(score.share) if score.share >= LEAST_SHARE else f"below {LEAST_SHARE}"
        share = f"score {shown} of its limit"
        more = f", for {ago(state.armed_in_s)} more" if state.armed_in_s > 0 else ""
        return f"{share} (provisional{more})" if state.provisional else share
    value = "no score yet" if score is None else f"score {figure(score.value)}, no limits yet"
    if state.waits_for:
        return f"{value}: {state.waits_for}"
    when = f"in about {ago(state.armed_in_s)}" if state.armed_in_s > 0 else "too few scores so far"
    return f"{value}: {when}"


def _alarms(state: BoxState, at: float, occasion: Occasion, units: Mapping[str, str]) -> str:
    """Return the open alarm, or that it has ended."""
    if state.open:
        alarm, more = state.open[0], len(state.open) - 1
        kind = "provisional alarm" if alarm.provisional else "ALARM"
        since = _local(alarm.began)
        # Of today the time is enough.
        since = since.removeprefix(_local(at).partition(" ")[0]).lstrip()
        others = f" (and {more} more)" if more else ""
        return f"{kind} since {since}: {_channels(alarm, units)}{others}"
    if occasion == "alarm ended" and state.alarms:
        alarm = max(state.alarms, key=lambda each: each.ended)
        lasted = ago(max(0.0, alarm.ended - alarm.began))
        kind = "provisional alarm" if alarm.provisional else "alarm"
        return f"{kind} over after {lasted}: {', '.join(map(name_text, _named(alarm)))}"
    return "no alarm"


def _channels(alarm: Alarm, units: Mapping[str, str]) -> str:
    deviations = list(_shown(alarm))
    if not deviations:
        return ", ".join(map(name_text, _named(alarm)))
    stuck = "stuck at " if alarm.cause == "stuck" else ""
    return ", ".join(
        f"{name_text(each.channel)} {stuck}{_in_unit(each.value, units.get(each.channel, ''))}"
        f" (expected {_in_unit(each.expected, units.get(each.channel, ''))})"
        for each in deviations
    )


def _named(alarm: Alarm) -> list[str]:
    """Return the channels most to blame; what was over its limit, where none is."""
    return [channel for channel, _ in alarm.top[:MOST_NAMED]] or [alarm.cause]


def _shown(alarm: Alarm) -> Iterator[Deviation]:
    by_name = {each.channel: each for each in alarm.deviations}
    return (by_name[name] for name in _named(alarm) if name in by_name)


def _alarm_fields(alarm: Alarm, units: Mapping[str, str]) -> dict[str, Any]:
    channels = [
        {
            "channel": each.channel,
            "value": each.value,
            "expected": each.expected,
            "unit": units.get(each.channel, ""),
        }
        for each in alarm.deviations
    ]
    fields = {"id": alarm.name, "began": alarm.began, "cause": alarm.cause}
    fields |= {"worst": _short(alarm.worst), "provisional": alarm.provisional}
    return fields | {"top": dict(alarm.top), "channels": channels}


def _in_unit(value: float, unit: str) -> str:
    return f"{figure(value)} {name_text(unit)}".rstrip()


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _local(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
