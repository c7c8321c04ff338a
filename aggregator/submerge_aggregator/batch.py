"""What goes into a batch of the commit worker, what comes out, and how messages become either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from submerge import SubmergeError
from submerge.aggregator.alarms.below import ReportedAlarm
from submerge.aggregator.alarms.incidents import NO_RATES, AlarmRates
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.plan import GroupPlan
from submerge.aggregator.self_check import UNSENT
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Consult, Event, Note, Now, Replied
from submerge.protocol.messages import (
    Answer,
    DrillTaken,
    Join,
    Joined,
    Message,
    Model,
    Reason,
    ReplyTaken,
    Report,
    Stamp,
)
from submerge.protocol.permission import Permission
from submerge_aggregator.audit import Record
from submerge_aggregator.downlink import Inbound, Refusal
from submerge_aggregator.history.file import ModelHeard, TrailHeard
from submerge_client.uplink import Heard
from submerge_proto.wire import codec
from submerge_proto.wire.codec import Kind


def objection(message: Model | Report, *, coarse: bool) -> str | None:
    """Return why receivers could not read a message, by a coding and back; None if they can."""
    try:
        codec.decode(codec.kind_of(message), codec.encode(message, coarse=coarse))
    except (SubmergeError, ValueError, TypeError, ArithmeticError) as error:
        # Protobuf raises ValueError and TypeError for numbers that do not fit a field.
        return f"{type(error).__name__}: {error}"
    return None


def checked(plans: Mapping[str, GroupPlan], *, coarse: bool) -> dict[str, GroupPlan]:
    reads = partial(objection, coarse=coarse)
    return {name: replace(plan, objection=reads) for name, plan in plans.items()}


class Asked(NamedTuple):
    """A question to the machine, from an operator or from the program."""

    event: Event | None
    # Called with the machine, after `event`, if there is one.
    question: Callable[[AggregatorNode, Now], Any]
    # Called on the event loop with what that returned, or with the error.
    reply: Callable[[Any], None]


Item = Inbound | Heard | Asked


class Down(NamedTuple):
    """To a child; `inbound` is the message that it answers, None if it answers none."""

    inbound: Inbound | None
    to: str
    group: str
    kind: Kind
    data: bytes


class Refuse(NamedTuple):
    inbound: Inbound
    why: str
    kind: Refusal = "foreign"


class Up(NamedTuple):
    group: str
    kind: Kind
    data: bytes


class All(NamedTuple):
    """To every child of a group; "" for all groups."""

    group: str
    data: bytes


class AlarmsChanged(NamedTuple):
    """To people: the alarms that all below report now, of one group."""

    group: str
    alarms: tuple[Alarm, ...]
    whole: bool  # no open alarm was left out for lack of room
    believed: tuple[ReportedAlarm, ...] = ()  # the same alarms, and by which child they came
    rates: AlarmRates = NO_RATES


class Reply(NamedTuple):
    asked: Asked
    value: Any


Out = Down | Refuse | Up | All | AlarmsChanged | Reply | Replied | Consult | TrailHeard | ModelHeard


@dataclass(slots=True)
class Tallies:
    reports: int = 0
    joins: int = 0
    commits: int = 0
    failed_writes: int = 0
    bugs: int = 0
    model_rejected: int = 0


def answer_to(inbound: Inbound, message: Joined | Answer | DrillTaken | ReplyTaken) -> Down:
    stamp = message.stamp
    data, kind = codec.encode(message), codec.kind_of(message)
    return Down(inbound, stamp.node, stamp.group, kind, data)


def group_of(message: Message) -> str:
    """Return the group that a message down is for; "" for a hello, which is for all."""
    group = getattr(message, "group", None)
    if isinstance(group, str):
        return group
    stamp = getattr(message, "stamp", None)
    return stamp.group if isinstance(stamp, Stamp) else ""


def reason_of(message: Message | None, answer: Joined | Answer) -> str | None:
    """Return the reason under which a child's message counts as refused; None if it was taken."""
    if answer.reason is not Reason.ACK:
        return answer.reason.name.lower()
    # A final may be older than the row: it then only says that no more reports will come.
    if isinstance(answer, Answer) and isinstance(message, Report) and not message.final:
        return "overtaken" if answer.stamp.seq < answer.newest else None
    return None


def refusal_of(kind: Kind, refusal: codec.MessageRefused, node: AggregatorNode) -> Joined | Answer:
    pinned = node.incarnation if node.settled else None
    if kind == "join":
        lines = (str(refusal),)
        fence, reason = refusal.fence, refusal.reason
        return Joined(refusal.stamp, reason, fence, pinned, node.top, 0, b"", lines)
    return Answer(refusal.stamp, refusal.reason, refusal.fence, pinned, node.top)


AGAIN_S = 3600.0  # the same node from the same address is recorded again after so long
MOST_KNOWN = 65_536  # joins that are remembered; of more, the oldest is forgotten

NOTED = {
    "node quarantined": "quarantine",
    "quarantine is full": "quarantine",
    "new store": "store",
    "order from above": "ban",
    **dict.fromkeys(UNSENT.values(), "model"),
}
"""Notes of the machine that are recorded, and as which event."""


class BatchEntries:
    def __init__(self, record: Record, steady: Callable[[], float]) -> None:
        self._record, self._steady = record, steady
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._known: dict[tuple[str, ...], float] = {}

    def add_join(self, join: Message, answer: Joined, inbound: Inbound | None) -> None:
        if answer.reason is not Reason.ACK or inbound is None or not isinstance(join, Join):
            return
        stamp, address = join.stamp, inbound.peer
        host = address.rpartition(":")[0]  # each connection has another port
        known = stamp.node, stamp.group, str(stamp.incarnation), host
        now = self._steady()
        if self._known.get(known, -AGAIN_S) + AGAIN_S > now:
            return
        self._known.pop(known, None)
        self._known[known] = now
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        facts: dict[str, Any] = {
            "node": stamp.node,
            "group": stamp.group,
            # An aggregator shows a fence; a certificate may say more, below.
            "kind": "aggregator" if join.fence else "client",
            "incarnation": str(stamp.incarnation),
            "address": address or ("broker" if inbound.shared else "unknown"),
        }
        if join.share_points:
            # Readings of this node may come up as they are.
            facts["share_points"] = join.share_points
        identity = inbound.identity
        permission = Permission.of(identity.uris)  # admitted, so it can be read
        if permission is not None:
            facts |= {"role": permission.role, "groups": permission.groups}
        if identity.serial is not None:
            facts["serial"] = f"{identity.serial:040X}"
        self._waiting.append(("join", facts))

    def add_note(self, note: Note) -> None:
        event = NOTED.get(note.what)
        if event is not None:
            self._waiting.append((event, {"what": note.what, **note.facts}))

    def commit(self) -> None:
        """Record all of it: it is on disk."""
        waiting, self._waiting = self._waiting, []
        for event, facts in waiting:
            self._record(event, **facts)

    def drop(self) -> None:
        """Forget all of it: it has not happened."""
        self._waiting.clear()
        self._known.clear()
