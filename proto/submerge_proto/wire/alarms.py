"""What nodes say of alarms, and what is wanted of them, checked.

A cause, a verdict or a state of a later version does not cost the report: what is wrong is
told first, and why as well as this version can. So a cause that is not known is read as SPE,
which says no more than that readings are odd; a verdict that is not known, as none yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from submerge import PeerError
from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    STATES,
    TOP,
    Alarm,
    AlarmStatus,
    Cause,
    Verdict,
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
"""Of a channel that is named to people; three of them, and the rest of an alarm, are 512 bytes."""

LONGEST_S = float(MOST)
"""Of all times together: as many seconds as there are numbers."""


def alarm(value: Alarm) -> pb.Alarm:
    """Return an alarm; its times as those that people can be shown."""
    top = (
        pb.Alarm.Share(channel=channel(each), share=min(max(share, 0.0), 1.0))
        for each, share in value.top[:TOP]
    )
    return pb.Alarm(
        node=value.node,
        number=min(value.number, MOST),
        began_s=_shown(value.began),
        peaked_s=_shown(value.peaked),
        ended_s=0.0 if value.is_open else max(_shown(value.ended), math.ulp(0.0)),
        worst=min(value.worst, WORST),
        cause=_CAUSES[value.cause],
        top=top,
        model_version=min(value.version, HIGHEST),
        withheld=min(value.withheld, MOST_READINGS),
        verdict=_VERDICTS[value.verdict],
    )


def alarm_of(message: pb.Alarm) -> Alarm:
    """Return an alarm."""
    if len(message.top) > TOP:
        raise PeerError(
            f"an alarm names at most {TOP} channels, got {len(message.top)}", kind="oversize"
        )
    return Alarm(
        name(message.node),
        number("an alarm's number", message.number),
        _time("began_s", message.began_s),
        _time("peaked_s", message.peaked_s),
        _time("ended_s", message.ended_s),
        within("worst", message.worst),
        _CAUSE_OF.get(message.cause, "spe"),
        tuple((channel(each.channel), within("a share", each.share, 1.0)) for each in message.top),
        number("model_version", message.model_version, HIGHEST),
        number("readings", message.withheld, MOST_READINGS),
        _VERDICT_OF.get(message.verdict, ""),
    )


def alarms_of(messages: Any, most: int) -> tuple[Alarm, ...]:
    """Return several alarms."""
    if len(messages) > most:
        raise PeerError(f"expected at most {most} alarms, got {len(messages)}", kind="oversize")
    return tuple(map(alarm_of, messages))


def channel(value: str) -> str:
    """Return a channel's name, as much of it as an alarm has room for."""
    value = text(value, CHANNEL_LETTERS)
    return value.encode()[:CHANNEL_BYTES].decode(errors="ignore")


def alarm_status(value: AlarmStatus) -> pb.AlarmStatus:
    """Return how nodes watch; sums as far as they are believed."""
    states = zip(STATES, value.states, strict=True)
    return pb.AlarmStatus(
        states=pb.AlarmStatus.States(**{state: min(n, MOST_CLIENTS) for state, n in states}),
        alarms=map(alarm, value.alarms[:MOST_ALARMS]),
        open=min(value.open, MOST_CLIENTS),
        watched_s=min(value.watched_s, LONGEST_S),
        allowed=min(value.allowed, LONGEST_S),
        raised=min(value.raised, MOST),
        confirmed=min(value.confirmed, MOST),
        armed_in_s=min(value.armed_in_s, LONGEST_S),
        desired=min(value.desired, MOST),
    )


def alarm_status_of(message: pb.AlarmStatus) -> AlarmStatus:
    """Return how nodes watch."""
    states = (number("nodes", getattr(message.states, each), MOST_CLIENTS) for each in STATES)
    wait = message.armed_in_s
    return AlarmStatus(
        tuple(states),
        alarms_of(message.alarms, MOST_ALARMS),
        number("open alarms", message.open, MOST_CLIENTS),
        within("watched_s", message.watched_s, LONGEST_S),
        within("allowed", message.allowed, LONGEST_S),
        number("alarms", message.raised),
        number("alarms", message.confirmed),
        wait if wait == -1.0 else within("armed_in_s", wait, LONGEST_S),
        number("a wish", message.desired),
    )


def check_own(reported: AlarmStatus, node: str) -> None:
    """Refuse what a client says of others, or of more than it is: a client is one node."""
    for each in reported.alarms:
        if each.node != node:
            raise PeerError(f"a client has alarms of its own, got one of {each.node}", kind="name")
    if sum(reported.states) > 1 or reported.open > len(reported.alarms):
        raise PeerError(
            f"a client is one node with the alarms that it tells, got {sum(reported.states)} nodes"
            f" and {reported.open} open of {len(reported.alarms)} alarms",
            kind="range",
        )


def desired(value: DesiredState) -> pb.DesiredState:
    """Return what is wanted of a node."""
    verdicts = (
        pb.DesiredState.Verdict(alarm=min(number, MOST), accept=accept)
        for number, accept in value.verdicts[-MOST_VERDICTS:]
    )
    message = pb.DesiredState(node=value.node, number=min(value.number, MOST), verdicts=verdicts)
    if value.paused is not None:
        message.paused = value.paused
    return message


def desired_of(message: pb.DesiredState) -> DesiredState:
    """Return what is wanted of a node."""
    if len(message.verdicts) > MOST_VERDICTS:
        raise PeerError(
            f"a wish has at most {MOST_VERDICTS} verdicts, got {len(message.verdicts)}",
            kind="oversize",
        )
    verdicts = tuple((number("an alarm", each.alarm), each.accept) for each in message.verdicts)
    paused = message.paused if message.HasField("paused") else None
    return DesiredState(name(message.node), number("a wish", message.number), paused, verdicts)


def desired_states(values: Iterable[DesiredState]) -> list[pb.DesiredState]:
    """Return what is wanted of several."""
    return list(map(desired, values))


def desired_states_of(messages: Any, most: int = MOST_AT_ONCE) -> tuple[DesiredState, ...]:
    """Return what is wanted of several."""
    if len(messages) > most:
        raise PeerError(f"expected at most {most} wishes, got {len(messages)}", kind="oversize")
    return tuple(map(desired_of, messages))


def _time(what: str, value: float) -> float:
    """Return a time that people can be shown."""
    return within(what, value, LAST_SECOND)


def _shown(value: float) -> float:
    """Return the nearest time that people can be shown: a clock may lie."""
    return min(max(value, 0.0), float(LAST_SECOND))


_CAUSES: dict[Cause, pb.Alarm.Cause] = {
    "spe": pb.Alarm.CAUSE_SPE,
    "t2": pb.Alarm.CAUSE_T2,
    "linear": pb.Alarm.CAUSE_LINEAR,
    "channel": pb.Alarm.CAUSE_CHANNEL,
    "stuck": pb.Alarm.CAUSE_STUCK,
}
_CAUSE_OF: dict[int, Cause] = {number: cause for cause, number in _CAUSES.items()}

_VERDICTS: dict[Verdict, pb.Alarm.Verdict] = {
    "": pb.Alarm.VERDICT_UNSPECIFIED,
    "accepted": pb.Alarm.VERDICT_ACCEPTED,
    "rejected": pb.Alarm.VERDICT_REJECTED,
}
_VERDICT_OF: dict[int, Verdict] = {number: verdict for verdict, number in _VERDICTS.items()}
