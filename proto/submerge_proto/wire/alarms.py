"""Alarm statuses and desired states as protobuf, and back, checked.

A cause, a verdict or a state of a later version does not cost the report: that there is an alarm
matters more than why. An unknown cause is read as SPE (squared prediction error), which only says
that readings are anomalous; an unknown verdict is read as none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

from submerge import PeerError
from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    TOP,
    Alarm,
    AlarmStatus,
    Awaited,
    Cause,
    Deviation,
    TypicalAlarms,
    Verdict,
    Waiting,
)
from submerge.protocol.desired_state import MOST_AT_ONCE, MOST_VERDICTS, DesiredState
from submerge.protocol.messages import HIGHEST
from submerge.protocol.names import LAST_SECOND
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire.parts import (
    MOST,
    MOST_CLIENTS,
    MOST_READINGS,
    WORST,
    name,
    number,
    text,
    within,
)

CHANNEL_LETTERS, CHANNEL_BYTES = 40, 100
"""Of a channel's name in an alarm; three of them and the rest of an alarm are 481 bytes."""

MOST_BYTES = 484
"""Of an alarm: one with longer names of channels leaves out its onset, and then its deviations."""

LARGEST_VALUE = 1e100
"""Largest value of a channel, either way: differences of two are finite."""

LONGEST_S = float(MOST)
"""The longest sum of times: seconds up to the largest number."""


LONGEST_SILENCE_S = 2**40
"""The longest silence of a node, seconds."""


def alarm(value: Alarm) -> pb.Alarm:
    """Return an alarm as a message; its times are cut to those that can be shown as dates."""
    message = pb.Alarm(
        node=value.node,
        number=min(value.number, MOST),
        began_s=_shown(value.began),
        peaked_s=_shown(value.peaked),
        ended_s=0.0 if value.is_open else max(_shown(value.ended), math.ulp(0.0)),
        worst=min(value.worst, WORST),
        cause=_CAUSES[value.cause],
        top=_shares(value.top),
        model_version=min(value.version, HIGHEST),
        withheld=min(value.withheld, MOST_READINGS),
        verdict=_VERDICTS[value.verdict],
        first=_shares(value.first),
        deviations=_deviations(value),
        settled=value.settled,
        provisional=value.provisional,
    )
    # Names of channels may be long: what an alarm said before goes first.
    for field in ("first", "deviations"):
        if message.ByteSize() > MOST_BYTES:
            message.ClearField(field)
    return message


def alarm_of(message: pb.Alarm) -> Alarm:
    """Return the alarm that a message holds."""
    most = max(len(message.top), len(message.first), len(message.deviations))
    if most > TOP:
        raise PeerError(f"an alarm names at most {TOP} channels, got {most}", kind="oversize")
    return Alarm(
        name(message.node),
        number("an alarm's number", message.number),
        _time("began_s", message.began_s),
        _time("peaked_s", message.peaked_s),
        _time("ended_s", message.ended_s),
        within("worst", message.worst),
        _CAUSE_OF.get(message.cause, "spe"),
        _shares_of(message.top),
        number("model_version", message.model_version, HIGHEST),
        number("readings", message.withheld, MOST_READINGS),
        _VERDICT_OF.get(message.verdict, ""),
        _shares_of(message.first),
        _deviations_of(message),
        message.settled,
        message.provisional,
    )


def _shares(shares: Iterable[tuple[str, float]]) -> list[pb.Alarm.Share]:
    """Return the first channels to blame, as messages."""
    return [
        pb.Alarm.Share(channel=channel(each), share=min(max(share, 0.0), 1.0))
        for each, share in islice(shares, TOP)
    ]


def _shares_of(messages: Any) -> tuple[tuple[str, float], ...]:
    return tuple((channel(each.channel), within("a share", each.share, 1.0)) for each in messages)


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


def alarms_of(messages: Any, most: int) -> tuple[Alarm, ...]:
    """Return the alarms that messages hold, at most `most`."""
    if len(messages) > most:
        raise PeerError(f"expected at most {most} alarms, got {len(messages)}", kind="oversize")
    return tuple(map(alarm_of, messages))


def channel(value: str) -> str:
    """Return a channel's name, cut to the room in an alarm."""
    value = text(value, CHANNEL_LETTERS)
    return value.encode()[:CHANNEL_BYTES].decode(errors="ignore")


def alarm_status(value: AlarmStatus) -> pb.AlarmStatus:
    """Return an alarm status as a message; its sums are cut to what the parent accepts."""
    counts = zip(_STATE_FIELDS, value.states, strict=True)
    return pb.AlarmStatus(
        states=pb.AlarmStatus.States(**{field: min(n, MOST_CLIENTS) for field, n in counts}),
        alarms=map(alarm, value.alarms[:MOST_ALARMS]),
        open=min(value.open, MOST_CLIENTS),
        watched_s=min(value.watched_s, LONGEST_S),
        allowed=min(value.allowed, LONGEST_S),
        raised=min(value.raised, MOST),
        confirmed=min(value.confirmed, MOST),
        armed_in_s=min(value.armed_in_s, LONGEST_S),
        desired=min(value.desired, MOST),
        silent_s=_silences(value),
        typical=_typical(value.typical) if any(value.typical) else None,
        provisional_rows=min(value.provisional_rows, LONGEST_S),
        waiting=_waiting(value.waiting),
    )


def alarm_status_of(message: pb.AlarmStatus) -> AlarmStatus:
    """Return the alarm status that a message holds."""
    counts = (getattr(message.states, field) for field in _STATE_FIELDS)
    wait = message.armed_in_s
    return AlarmStatus(
        tuple(number("nodes", each, MOST_CLIENTS) for each in counts),
        alarms_of(message.alarms, MOST_ALARMS),
        number("open alarms", message.open, MOST_CLIENTS),
        within("watched_s", message.watched_s, LONGEST_S),
        within("allowed", message.allowed, LONGEST_S),
        number("alarms", message.raised),
        number("alarms", message.confirmed),
        wait if wait == -1.0 else within("armed_in_s", wait, LONGEST_S),
        number("a desired state", message.desired),
        _silent_nodes(message),
        _typical_of(message.typical),
        within("provisional_rows", message.provisional_rows, LONGEST_S),
        _waiting_of(message),
    )


def _typical(value: TypicalAlarms) -> pb.AlarmStatus.Typical:
    return pb.AlarmStatus.Typical(
        promised=min(value.promised, LONGEST_S),
        unconfirmed=min(value.unconfirmed, MOST),
        nodes=min(value.nodes, MOST_CLIENTS),
    )


def _typical_of(message: pb.AlarmStatus.Typical) -> TypicalAlarms:
    return TypicalAlarms(
        within("promised", message.promised, LONGEST_S),
        number("alarms", message.unconfirmed),
        number("nodes", message.nodes, MOST_CLIENTS),
    )


def _waiting(value: Waiting | None) -> pb.AlarmStatus.Waiting | None:
    if value is None:
        return None
    rows, of = min(value.rows, MOST), min(value.of, MOST)
    return pb.AlarmStatus.Waiting(what=_AWAITED[value.what], rows=rows, of=of)


def _waiting_of(message: pb.AlarmStatus) -> Waiting | None:
    waiting = message.waiting
    what = _AWAITED_OF.get(waiting.what)
    if what is None:
        return None
    return Waiting(what, number("rows", waiting.rows), number("rows", waiting.of))


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


def desired(value: DesiredState) -> pb.DesiredState:
    """Return a desired state as a message."""
    verdicts = (
        pb.DesiredState.Verdict(alarm=min(number, MOST), accept=accept)
        for number, accept in value.verdicts[-MOST_VERDICTS:]
    )
    message = pb.DesiredState(
        node=value.node,
        number=min(value.number, MOST),
        verdicts=verdicts,
        drill=min(value.drill, MOST),
        forget=min(value.forget, MOST),
    )
    if value.paused is not None:
        message.paused = value.paused
    if value.banned is not None:
        message.banned = value.banned
    if value.quarantined is not None:
        message.quarantined = value.quarantined
    return message


def desired_of(message: pb.DesiredState) -> DesiredState:
    """Return the desired state that a message holds."""
    if len(message.verdicts) > MOST_VERDICTS:
        raise PeerError(
            f"a desired state has at most {MOST_VERDICTS} verdicts, got {len(message.verdicts)}",
            kind="oversize",
        )
    verdicts = tuple((number("an alarm", each.alarm), each.accept) for each in message.verdicts)
    paused = message.paused if message.HasField("paused") else None
    banned = message.banned if message.HasField("banned") else None
    quarantined = message.quarantined if message.HasField("quarantined") else None
    return DesiredState(
        name(message.node),
        number("a desired state", message.number),
        paused,
        verdicts,
        banned,
        number("a drill", message.drill),
        quarantined,
        number("an order", message.forget),
    )


def desired_states(values: Iterable[DesiredState]) -> list[pb.DesiredState]:
    """Return desired states as messages."""
    return list(map(desired, values))


def desired_states_of(messages: Any, most: int = MOST_AT_ONCE) -> tuple[DesiredState, ...]:
    """Return the desired states that messages hold, at most `most`."""
    if len(messages) > most:
        raise PeerError(
            f"expected at most {most} desired states, got {len(messages)}", kind="oversize"
        )
    return tuple(map(desired_of, messages))


def _time(what: str, value: float) -> float:
    """Return a time that can be shown as a date."""
    return within(what, value, LAST_SECOND)


def _shown(value: float) -> float:
    """Return the nearest time that can be shown as a date: a clock may be wrong."""
    return min(max(value, 0.0), float(LAST_SECOND))


_STATE_FIELDS = ("learning", "armed", "alarm", "paused", "stale")
"""The message's field for each of `STATES`, in the order of these."""

_CAUSES: dict[Cause, pb.Alarm.Cause] = {
    "spe": pb.Alarm.CAUSE_SPE,
    "t2": pb.Alarm.CAUSE_T2,
    "linear": pb.Alarm.CAUSE_LINEAR,
    "channel": pb.Alarm.CAUSE_CHANNEL,
    "stuck": pb.Alarm.CAUSE_STUCK,
    "distance": pb.Alarm.CAUSE_DISTANCE,
    "smoothed": pb.Alarm.CAUSE_SMOOTHED,
}
_CAUSE_OF: dict[int, Cause] = {number: cause for cause, number in _CAUSES.items()}

_AWAITED: dict[Awaited, pb.AlarmStatus.Waiting.What] = {
    "report": pb.AlarmStatus.Waiting.WHAT_REPORT,
    "model": pb.AlarmStatus.Waiting.WHAT_MODEL,
    "mean": pb.AlarmStatus.Waiting.WHAT_MEAN,
}
_AWAITED_OF: dict[int, Awaited] = {number: what for what, number in _AWAITED.items()}

_VERDICTS: dict[Verdict, pb.Alarm.Verdict] = {
    "": pb.Alarm.VERDICT_UNSPECIFIED,
    "accepted": pb.Alarm.VERDICT_ACCEPTED,
    "rejected": pb.Alarm.VERDICT_REJECTED,
}
_VERDICT_OF: dict[int, Verdict] = {number: verdict for verdict, number in _VERDICTS.items()}
