"""An alarm as JSON, in one shape for all who read it (docs/alarm-messages.md); and as text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import (
    CAUSES,
    MARKS,
    Alarm,
    AlarmPart,
    Deviation,
    and_more,
    excess,
    parse_alarm_name,
    stays_at,
)
from submerge.protocol.names import LAST_SECOND


def facts(alarm: Alarm, group: str) -> dict[str, Any]:
    return {
        "id": alarm.name,
        "node": alarm.node,
        "group": group,
        "began": alarm.began,
        "peaked": alarm.peaked,
        "ended": alarm.ended or None,
        "worst": rounded(alarm.worst),
        "cause": alarm.cause,
        "top": {channel: rounded(share) for channel, share in alarm.top},
        "first": {channel: rounded(share) for channel, share in alarm.first},
        "deviations": {each.channel: deviation_facts(each) for each in alarm.deviations},
        "model": alarm.version,
        "withheld": alarm.withheld,
        "verdict": alarm.verdict,
        **{mark: getattr(alarm, mark) for mark in MARKS},
        **({"looks": alarm.looks.like, "evidence": looks_text(alarm)} if alarm.looks else {}),
        **({"twins": list(alarm.twins)} if alarm.twins else {}),
        **(incident_facts(alarm) if alarm.parts else {}),
    }


def incident_facts(incident: Alarm) -> dict[str, Any]:
    """Return its parts, with their seconds `after` the first, and what they have in common."""
    parts = [
        {
            "id": part.name,
            "node": part.node,
            "began": part.began,
            "after": rounded(part.began - incident.began),
            "channel": part.channel,
        }
        for part in incident.parts
    ]
    return {"parts": parts, "words": incident_text(incident)}


def deviation_facts(deviation: Deviation) -> dict[str, float]:
    """Return how far a channel is off, as JSON has it."""
    return {
        "value": float(f"{deviation.value:.6g}"),
        "expected": float(f"{deviation.expected:.6g}"),
        "difference": rounded(deviation.difference),
    }


def alarm_of(facts: Mapping[str, Any]) -> Alarm:
    return Alarm(
        facts["node"],
        parse_alarm_name(facts["id"])[1],
        facts["began"],
        facts["peaked"],
        facts["ended"] or 0.0,
        facts["worst"],
        facts["cause"],
        tuple(facts["top"].items()),
        facts["model"],
        facts["withheld"],
        facts["verdict"],
        # Lines of earlier versions do not have these.
        tuple(facts.get("first", {}).items()),
        tuple(
            Deviation(channel, each["value"], each["expected"])
            for channel, each in facts.get("deviations", {}).items()
        ),
        **{mark: facts.get(mark, False) for mark in MARKS},
        parts=tuple(
            AlarmPart(each["node"], parse_alarm_name(each["id"])[1], each["began"], each["channel"])
            for each in facts.get("parts", ())
        ),
    )


def event_facts(event: AlarmEvent, group: str) -> dict[str, Any]:
    # A start that is delivered late is of an alarm that may be over by now.
    alarm = event.alarm if event.kind == "end" else replace(event.alarm, ended=0.0)
    at = alarm.ended if event.kind == "end" else alarm.began
    return {"event": event.kind, "at": stamp(at), **facts(alarm, group)}


def headline(event: AlarmEvent) -> str:
    noun = event.alarm.noun
    if event.alarm.parts:
        whose = f"{_nodes(event.alarm)} nodes, {event.alarm.node} first"
        return f"{whose}: {f'an {noun}' if event.kind == 'start' else f'the {noun} is over'}"
    return f"{event.alarm.node}: {noun if event.kind == 'start' else f'the {noun} is over'}"


def sentence(event: AlarmEvent) -> str:
    """Return the text of a message: cause, channels to blame, times and name."""
    alarm, over = event.alarm, event.kind == "end"
    what = CAUSES[alarm.cause]
    if alarm.worst:
        limit = "its longest run" if alarm.cause == "duty" else "the limit"
        what += f": {excess(alarm.worst)} times {limit}"
    whose = ", ".join(f"{channel} {share:.0%}" for channel, share in alarm.top)
    whose += and_more(alarm.cause, dict(alarm.top), len(alarm.top))
    lines = [f"{what[0].upper()}{what[1:]}." + (f" Most of it: {whose}." if whose else "")]
    if alarm.looks is not None:
        lines.append(f"Looks like a {alarm.looks.like}: {looks_text(alarm)}.")
    if alarm.parts:
        lines = [f"{incident_text(alarm)}."]
    if alarm.deviations:
        lines.append(f"{'; '.join(deviation_text(d, alarm.cause) for d in alarm.deviations)}.")
    ended = f", over {stamp(alarm.ended)}" if over else ""
    ended += f": {MARKS['settled']}, without a verdict" if over and alarm.settled else ""
    lines.append(f"Began {stamp(alarm.began)}{ended}. {alarm.name}")
    return "\n".join(lines)


def looks_text(alarm: Alarm) -> str:
    """Return the evidence that it is a sensor, or the process; "" if it cannot be told."""
    if alarm.looks is None:
        return ""
    _, others, left, _ = alarm.looks
    channel, _ = next(iter(alarm.top), ("one channel", 0.0))
    if alarm.twins:
        channel, others = f"{' or '.join(alarm.twins)} (each is told by the other)", others - 1
    if alarm.looks.like == "process":
        return (
            f"many channels moved together; without {channel} rows are still {left:.2g} times as"
            " far from normal as usual"
        )
    if not left:
        return f"{channel} alone of {alarm.looks.others + 1} channels"
    return f"{channel} alone; the other {others} channels keep their relations"


def incident_text(alarm: Alarm) -> str:
    """Return who was first, by how much, and what the nodes of an incident have in common."""
    nodes, first = _nodes(alarm), alarm.parts[0]
    second = next(each for each in alarm.parts if each.node != first.node)
    lead = second.began - first.began
    by = f", {lead:,.0f} s before {second.node}" if lead >= 0.5 else f", and {second.node} with it"
    text = f"{first.node} first{by}; {nodes - 1} followed"
    if alarm.downstream:
        reached = {part.node for part in alarm.parts}
        ahead = [node for node in alarm.downstream if node not in reached]
        leads = f"{len(alarm.downstream) - len(ahead)} of them downstream of {alarm.node}"
        text = f"{text}, {leads}" + (f"; expected next: {', '.join(ahead[:NEXT])}" if ahead else "")
    channel, share = next(iter(alarm.top), ("", 0.0))
    if share < COMMON:
        return f"{text}. No channel is common: {alarm.node} leads"
    return f"{text}. {channel} on {round(share * nodes)} of {nodes}: a common cause"


NEXT = 3  # nodes downstream that are named before they have an alarm

COMMON = 0.5
"""Least share of an incident's nodes that blame one channel for it to be common."""


def _nodes(alarm: Alarm) -> int:
    return len({each.node for each in alarm.parts})


def deviation_text(deviation: Deviation, cause: str) -> str:
    """Return how far a channel is off, in words, or at which of two levels it stays."""
    value, expected, difference = deviation_facts(deviation).values()
    if cause == "duty":
        return f"{deviation.channel} {stays_at(value, expected)} at {value:g}, else {expected:g}"
    word = "was" if cause == "jump" else "expected"
    return f"{deviation.channel} {value:g}, {word} {expected:g} ({difference:+g})"


def stamp(seconds: float) -> str:
    """Return Unix seconds as UTC in ISO 8601, to the millisecond."""
    # Later times have no date: the clock is wrong.
    whole, ms = divmod(int(min(max(seconds, 0.0), LAST_SECOND) * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{ms:03d}Z"


def rounded(value: float) -> float:
    """Return a figure rounded to four significant digits."""
    return float(f"{value:.4g}")
