"""What goes into a turn of the desk, what comes out of it, and how a message becomes either.

Values only: the desk makes them on its thread, and the event loop performs them in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from submerge.aggregator.node import AggregatorNode
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Event, Now
from submerge.protocol.messages import Answer, Joined, Message, Reason, Report, Stamp
from submerge_aggregator.downlink import Inbound, Refusal
from submerge_client.uplink import Heard
from submerge_proto.wire import codec
from submerge_proto.wire.codec import Kind


class Asked(NamedTuple):
    """Something that an operator, or the program, wants of the machine.

    question : called with the machine, after `event`, if there is one
    reply : called on the event loop with what that returned, or with the error
    """

    event: Event | None
    question: Callable[[AggregatorNode, Now], Any]
    reply: Callable[[Any], None]


Item = Inbound | Heard | Asked


class Down(NamedTuple):
    """To a child; `letter` is the one that it answers, None if it answers none."""

    inbound: Inbound | None
    to: str
    group: str
    kind: Kind
    data: bytes


class Refuse(NamedTuple):
    """A letter that is not answered."""

    inbound: Inbound
    why: str
    kind: Refusal = "foreign"


class Up(NamedTuple):
    """To the parent."""

    group: str
    kind: Kind
    data: bytes


class All(NamedTuple):
    """To every child of a group; "" for all groups."""

    group: str
    data: bytes


class AlarmsChanged(NamedTuple):
    """To people: what all below tell of alarms now, of one group.

    whole : no open alarm is left out for there being too many
    """

    group: str
    alarms: tuple[Alarm, ...]
    whole: bool


class Reply(NamedTuple):
    """To an operator."""

    asked: Asked
    value: Any


Out = Down | Refuse | Up | All | AlarmsChanged | Reply


@dataclass(slots=True)
class Tallies:
    """What a desk has counted, for those who watch it."""

    reports: int = 0
    joins: int = 0
    commits: int = 0
    failed_writes: int = 0
    bugs: int = 0


def answered(inbound: Inbound, message: Joined | Answer) -> Down:
    """Return the answer to a letter, ready to go out."""
    stamp = message.stamp
    data, kind = codec.encode(message), codec.kind_of(message)
    return Down(inbound, stamp.node, stamp.group, kind, data)


def group_of(message: Message) -> str:
    """Whom a message down is for: a model's group, a stamp's; a hello is for all."""
    group = getattr(message, "group", None)
    if isinstance(group, str):
        return group
    stamp = getattr(message, "stamp", None)
    return stamp.group if isinstance(stamp, Stamp) else ""


def reason_of(said: Message | None, answer: Joined | Answer) -> str | None:
    """Return why what a child said was not taken, as it is counted; None if it was."""
    if answer.reason is not Reason.ACK:
        return answer.reason.name.lower()
    # A final may be older than the row: then it says no more than that no more will come.
    if isinstance(answer, Answer) and isinstance(said, Report) and not said.final:
        return "overtaken" if answer.stamp.seq < answer.newest else None
    return None


def refusal_of(kind: Kind, refusal: codec.MessageRefused, node: AggregatorNode) -> Joined | Answer:
    """Return the answer that says why a message cannot be taken."""
    pinned = node.incarnation if node.settled else None
    if kind == "join":
        lines = (str(refusal),)
        fence, reason = refusal.fence, refusal.reason
        return Joined(refusal.stamp, reason, fence, pinned, node.top, 0, b"", lines)
    return Answer(refusal.stamp, refusal.reason, refusal.fence, pinned, node.top)
