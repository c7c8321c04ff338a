"""Alarm statuses and desired states as protobuf, and back, checked.

A cause, a verdict or a state of a later version does not cost the report: that there is an alarm
matters more than why. An unknown cause is read as SPE, an unknown verdict as none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from submerge import PeerError
from submerge.protocol.alarm_status import (
    CAUSES,
    MARKS,
    MOST_ALARMS,
    TOP,
    Alarm,
    AlarmStatus,
    Awaited,
    Cause,
    Deviation,
    Looks,
    TypicalAlarms,
    Verdict,
    Waiting,
)
from submerge.protocol.desired_state import (
    MOST_CERTIFICATE,
    MOST_MISSED,
    MOST_VERDICTS,
    DesiredState,
    Missed,
)
from submerge.protocol.messages import HIGHEST
from submerge.protocol.names import LAST_SECOND
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire.fields import (
    MOST,
    PLAIN,
    Part,
    capped,
    choice,
    form,
    number,
    several,
    size,
    within,
)
from submerge_proto.wire.parts import MOST_CLIENTS, NAME, READINGS, text

CHANNEL_LETTERS, CHANNEL_BYTES = 40, 100
"""Of a channel's name in an alarm; three of them and the rest of an alarm are 481 bytes."""

MOST_BYTES = 484
"""Of an alarm: one with longer names of channels leaves out its onset, and then its deviations."""

LARGEST_VALUE = 1e100  # largest value of a channel, either way: differences of two are finite
LONGEST_S = float(MOST)  # the longest sum of times: seconds up to the largest number


LONGEST_SILENCE_S = 2**40  # the longest silence of a node, seconds


def _shares(shares: Iterable[tuple[str, float]]) -> list[pb.Alarm.Share]:
    """Return the first channels to blame, as messages."""
    return [
        pb.Alarm.Share(channel=channel(each), share=min(max(share, 0.0), 1.0))
        for each, share in islice(shares, TOP)
    ]


def _deviations(value: Alarm) -> list[pb.Alarm.Deviation]:
    """Return deviations as messages; a channel at its place in `top` is not named again."""
    top = [each for each, _ in value.top]
    return [
        pb.Alarm.Deviation(
            channel="" if [each.channel] == top[i : i + 1] else channel(each.channel),
            value=_bounded(each.value),
            expected=_bounded(each.expected),
        )
        for i, each in enumerate(value.deviations[:TOP])
    ]


def _deviations_of(message: pb.Alarm) -> tuple[Deviation, ...]:
    found = []
    for i, each in enumerate(message.deviations):
        of = each.channel or (message.top[i].channel if i < len(message.top) else "")
        for value in (each.value, each.expected):
            within("the size of a channel's value", abs(value), LARGEST_VALUE)
        found.append(Deviation(channel(of), each.value, each.expected))
    return tuple(found)


def _bounded(value: float) -> float:
    return min(max(value, -LARGEST_VALUE), LARGEST_VALUE)


def channel(value: str) -> str:
    """Return a channel's name, cut to the room in an alarm."""
    value = text(value, CHANNEL_LETTERS)
    return value.encode()[:CHANNEL_BYTES].decode(errors="ignore")


_CAUSE: Part[Cause] = choice(
    "cause",
    {cause: pb.Alarm.Cause.Value(f"CAUSE_{cause.upper()}") for cause in CAUSES},
    unknown="spe",
)

_VERDICT: Part[Verdict] = choice(
    "verdict",
    {
        "": pb.Alarm.VERDICT_UNSPECIFIED,
        "accepted": pb.Alarm.VERDICT_ACCEPTED,
        "rejected": pb.Alarm.VERDICT_REJECTED,
    },
    unknown="",
)


def _shown(value: float) -> float:
    """Return the nearest time that can be shown as a date: a clock may be wrong."""
    return min(max(value, 0.0), float(LAST_SECOND))


def _time(field: str, least: float = 0.0) -> Part[float]:
    """Return how a time is a field; 0 is none, and any other is at least `least`."""
    return Part(
        lambda value: max(_shown(value), least) if value else 0.0,
        lambda sent: within(field, sent, LAST_SECOND),
        field,
    )


_SHARES = Part(
    _shares,
    lambda sent: tuple(
        (channel(each.channel), within("a share", each.share, 1.0)) for each in sent
    ),
)

_LIKE: dict[str, int] = {
    "sensor": pb.Alarm.Looks.LIKE_SENSOR,
    "process": pb.Alarm.Looks.LIKE_PROCESS,
}

_LOOKS = form(
    pb.Alarm.Looks,
    Looks,
    like=choice(
        "look",
        _LIKE,
    ),
    others=capped("channels"),
    left=size("left"),
    twins=PLAIN,
)

_LOOKS_OR_NONE: Part[Any] = Part(
    _LOOKS.made, lambda sent: _LOOKS.read(sent) if sent.like in _LIKE.values() else None
)

_ALARM = form(
    pb.Alarm,
    Alarm,
    node=NAME,
    number=capped("an alarm's number"),
    began=_time("began_s"),
    peaked=_time("peaked_s"),
    ended=_time("ended_s", math.ulp(0.0)),
    worst=size("worst"),
    cause=_CAUSE,
    top=_SHARES,
    version=capped("model_version", HIGHEST).at("model_version"),
    withheld=READINGS,
    verdict=_VERDICT,
    first=_SHARES,
    looks=_LOOKS_OR_NONE.maybe,
    **dict.fromkeys(MARKS, PLAIN),
)


def _alarm(value: Alarm) -> pb.Alarm:
    message: pb.Alarm = _ALARM.made(value)
    message.deviations.extend(_deviations(value))
    # Names of channels may be long: what an alarm said before goes first.
    for field in ("looks", "first", "deviations"):
        if message.ByteSize() > MOST_BYTES:
            message.ClearField(field)
    return message


def _alarm_of(message: pb.Alarm) -> Alarm:
    most = max(len(message.top), len(message.first), len(message.deviations))
    if most > TOP:
        raise PeerError(f"an alarm names at most {TOP} channels, got {most}", kind="oversize")
    return replace(_ALARM.read(message), deviations=_deviations_of(message))


ALARM = Part(_alarm, _alarm_of)  # an alarm; its times are cut to those that can be shown as dates


def _silences(value: AlarmStatus) -> list[int]:
    """Return for each alarm how long its node was silent; nothing if none was."""
    silent = dict(value.silent)
    silences = [min(silent.get(each.node, 0), LONGEST_SILENCE_S) for each in value.alarms]
    return silences[:MOST_ALARMS] if any(silences) else []


def _silent_nodes(message: pb.AlarmStatus) -> tuple[tuple[str, int], ...]:
    """Return the nodes that were silent, by name, and for how long."""
    if len(message.silent_s) not in (0, len(message.alarms)):
        raise PeerError(
            f"expected a silence for each of {len(message.alarms)} alarms,"
            f" got {len(message.silent_s)}",
            kind="shape",
        )
    silent: dict[str, int] = {}
    for each, seconds in zip(message.alarms, message.silent_s, strict=False):
        if number("silent_s", seconds, LONGEST_SILENCE_S):
            silent[each.node] = max(seconds, silent.get(each.node, 0))
    return tuple(sorted(silent.items()))


_STATE_FIELDS = ("learning", "armed", "alarm", "paused", "stale")
"""The message's field for each of `STATES`, in the order of these."""

_NODES = capped("nodes", MOST_CLIENTS)


def _states(value: Sequence[int]) -> pb.AlarmStatus.States:
    counts = zip(_STATE_FIELDS, value, strict=True)
    return pb.AlarmStatus.States(**{field: _NODES.made(n) for field, n in counts})


_TYPICAL = form(
    pb.AlarmStatus.Typical,
    TypicalAlarms,
    promised=size("promised", LONGEST_S),
    unconfirmed=capped("alarms"),
    nodes=_NODES,
)

_AWAITED: dict[Awaited, int] = {
    "report": pb.AlarmStatus.Waiting.WHAT_REPORT,
    "model": pb.AlarmStatus.Waiting.WHAT_MODEL,
    "mean": pb.AlarmStatus.Waiting.WHAT_MEAN,
    "limits": pb.AlarmStatus.Waiting.WHAT_LIMITS,
}

_WAITING = form(
    pb.AlarmStatus.Waiting,
    Waiting,
    what=choice("thing to wait for", _AWAITED),
    rows=capped("rows"),
    of=capped("rows"),
)


def _waiting_of(message: pb.AlarmStatus.Waiting) -> Waiting | None:
    """Return what a node waits for; None for what a later version knows."""
    return _WAITING.read(message) if message.what in _AWAITED.values() else None


_WAITING_OR_NONE: Part[Any] = Part(_WAITING.made, _waiting_of)

_WAIT = size("armed_in_s", LONGEST_S)

_STATUS = form(
    pb.AlarmStatus,
    AlarmStatus,
    states=Part(_states, lambda sent: tuple(_NODES.read(getattr(sent, f)) for f in _STATE_FIELDS)),
    alarms=Part(
        lambda alarms: list(map(_alarm, alarms[:MOST_ALARMS])),
        several(ALARM, "alarms", MOST_ALARMS).read,
    ),
    open=capped("open alarms", MOST_CLIENTS),
    watched_s=size("watched_s", LONGEST_S),
    allowed=size("allowed", LONGEST_S),
    raised=capped("alarms"),
    confirmed=capped("alarms"),
    armed_in_s=Part(_WAIT.made, lambda sent: sent if sent == -1.0 else _WAIT.read(sent)),
    desired=capped("a desired state"),
    typical=Part(lambda value: _TYPICAL.made(value) if any(value) else None, _TYPICAL.read),
    provisional_rows=size("provisional_rows", LONGEST_S),
    waiting=_WAITING_OR_NONE.maybe,
)


def _status(value: AlarmStatus) -> pb.AlarmStatus:
    message: pb.AlarmStatus = _STATUS.made(value)
    message.silent_s.extend(_silences(value))
    return message


ALARM_STATUS = Part(_status, lambda sent: replace(_STATUS.read(sent), silent=_silent_nodes(sent)))
"""An alarm status; its sums are cut to what the parent accepts."""


def check_own(status: AlarmStatus, node: str) -> None:
    """Refuse a client's status that covers other nodes, or of more than one."""
    for each in status.alarms:
        if each.node != node:
            raise PeerError(f"a client has alarms of its own, got one of {each.node}", kind="name")
    if sum(status.states) > 1 or status.open > len(status.alarms):
        raise PeerError(
            f"a client is one node with the alarms that it lists, got {sum(status.states)} nodes"
            f" and {status.open} open of {len(status.alarms)} alarms",
            kind="range",
        )


def _verdicts(value: Sequence[tuple[int, bool]]) -> list[pb.DesiredState.Verdict]:
    latest = value[-MOST_VERDICTS:]
    return [pb.DesiredState.Verdict(alarm=min(n, MOST), accept=accept) for n, accept in latest]


def _verdicts_of(messages: Sequence[pb.DesiredState.Verdict]) -> tuple[tuple[int, bool], ...]:
    if len(messages) > MOST_VERDICTS:
        raise PeerError(
            f"a desired state has at most {MOST_VERDICTS} verdicts, got {len(messages)}",
            kind="oversize",
        )
    return tuple((number("an alarm", each.alarm), each.accept) for each in messages)


_MISSED = form(
    pb.DesiredState.Missed,
    Missed,
    began=_time("began_s"),
    ended=_time("ended_s"),
    channel=Part(channel, channel),
    withdrawn=PLAIN,
)


def _certificate(sent: bytes) -> bytes:
    if len(sent) > MOST_CERTIFICATE:
        raise PeerError(
            f"a certificate has at most {MOST_CERTIFICATE} bytes, got {len(sent)}", kind="oversize"
        )
    return sent


DESIRED_STATE = form(
    pb.DesiredState,
    DesiredState,
    node=NAME,
    number=capped("a desired state"),
    paused=PLAIN.maybe,
    verdicts=Part(_verdicts, _verdicts_of),
    banned=PLAIN.maybe,
    drill=capped("a drill"),
    quarantined=PLAIN.maybe,
    forget=capped("an order"),
    missed=several(_MISSED, "missed faults", MOST_MISSED),
    certificate=Part(bytes, _certificate),
)
