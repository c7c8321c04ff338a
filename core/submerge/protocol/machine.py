"""The events of a machine, and its effects.

    effects = node.step(event, now)

The same state and event give the same effects. A driver performs them in order: an acknowledgement
follows the `Keep` that it rests on. If a `Keep` fails, the driver performs no effect after it,
discards the machine and starts another from the kept records. `Start` is the first event, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from submerge._linalg import Array
from submerge.features import Landmarks
from submerge.judge.decision import Decision, Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.desired_state import Missed
from submerge.protocol.history import History
from submerge.protocol.messages import Answer, Incarnation, Joined, Message, Question
from submerge.schema import Schema

Key = tuple[str, ...]  # names a record in a node's store

Records = Mapping[Key, Any]


class Now(NamedTuple):
    """Two clocks: waits are measured on the steady one; the wall clock is only written down.

    steady : seconds from any start, never set back
    wall : Unix seconds; may be wrong by years
    synced : whether `wall` is synchronized
    """

    steady: float
    wall: float
    synced: bool = True

    @property
    def wall_ms(self) -> int:
        """Wall time in whole milliseconds."""
        return int(self.wall * 1000)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The process begins; `kept` are the records of its store."""

    kept: Records


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Rows (n, channels) from the sensors, in their units; NaN is a gap.

    held : (n, k) of bool, or None
        True where one of the k leading numbers is repeated because no new one has come.
    """

    rows: Array
    held: Mask | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """A message arrived; `shared`: other aggregators receive on the same way."""

    message: Message
    shared: bool = False


class Tick(NamedTuple):
    """Time has passed."""


class Linked(NamedTuple):
    """The way to the parent is open again: the machine joins at once, without its back-off."""


class Flush(NamedTuple):
    """Report and keep everything now: the process is about to end, or a person asks for it."""


class Forget(NamedTuple):
    """An operator removes a node and all its readings; `ban` does what `SetBan` does as well."""

    group: str
    node: str
    ban: bool = False


class Drop(NamedTuple):
    """An operator removes one incarnation: a dead aggregator's last row."""

    group: str
    node: str
    incarnation: Incarnation | None  # None: the sealed row of closed ones
    old: bool = False  # all rows of earlier schemas


class SetDesired(NamedTuple):
    """An operator pauses a node, judges an alarm or a time, has it drill, or certifies it."""

    group: str
    node: str
    paused: bool | None = None  # whether learning is paused; None: as before
    verdict: tuple[int, bool] | None = None  # (number, accept) of an alarm
    drill: bool = False
    missed: Missed | None = None  # a fault of it that raised no alarm
    certificate: bytes = b""  # a new one, PEM


class SetBan(NamedTuple):
    """An operator refuses a node, in all groups, here and at all aggregators below."""

    node: str
    banned: bool = True  # False takes it back; rows of the node stay as they are


class SetQuarantine(NamedTuple):
    """An operator keeps a node's rows out of the model; `quarantined` False takes them in again.

    A node that is taken in again is no longer banned either.
    """

    group: str
    node: str
    quarantined: bool = True


class PushHistory(NamedTuple):
    """An operator gives a root what was learnt elsewhere."""

    group: str
    history: History
    anyway: bool = False  # also what may be rows of a node that reports


class ForgetHistory(NamedTuple):
    """An operator takes a history back, by its name: the model is as if it had never been there."""

    group: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class SettleLandmarks:
    """The fleet has chosen landmarks (m, channels) among rows of the schema of a fingerprint."""

    group: str
    fingerprint: str
    points: Array


class Ask(NamedTuple):
    """An operator asks a node below; `Replied` follows, or nothing where a reply is lost."""

    question: Question


class Answered(NamedTuple):
    """What this node says when it was consulted: JSON, or why there is none."""

    question: Question
    body: bytes
    problem: str = ""


Event = (
    Start
    | Reading
    | Received
    | Tick
    | Linked
    | Flush
    | Forget
    | Drop
    | SetQuarantine
    | SetDesired
    | SetBan
    | PushHistory
    | ForgetHistory
    | SettleLandmarks
    | Ask
    | Answered
)


class Send(NamedTuple):
    """Send to one node."""

    to: str
    message: Message


class Publish(NamedTuple):
    """Send to every child."""

    message: Message


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """Write records in one transaction; None deletes. On disk before the next effect.

    new_store : another store begins: delete all earlier records first
    """

    records: Mapping[Key, Any | None]
    new_store: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scores of rows before they were learnt, by the model of that version.

    block : the scored rows, and why others have no score
    scores : how far each row is from the model, and by which channels
    decision : which rows belong to an alarm, and which are not learnt
    expired : whether the model is past its expiry
    r2 : (channels,), the share of each channel's variance that the others predict, as measured
        here; NaN while it is not known; None if no gap was filled
    """

    block: Block
    scores: RowScores
    decision: Decision
    version: int
    expired: bool
    r2: Array | None = None


class Alarmed(NamedTuple):
    """An alarm began, ended, or got a verdict; it holds all alarms that the node remembers.

    It is repeated at the start of a process, for readers that missed it.
    """

    alarms: tuple[Alarm, ...]


class Consult(NamedTuple):
    """The parent asks this node, a client or an aggregator: the driver answers with `Answered`."""

    question: Question


class Replied(NamedTuple):
    """The reply to a question that was asked here: JSON, or why there is none."""

    number: int
    body: bytes
    problem: str


Level = Literal["debug", "info", "warning", "error"]


class NewCertificate(NamedTuple):
    """A new certificate for this node has come, PEM, which nobody has checked."""

    certificate: bytes


class Note(NamedTuple):
    """A line for the log: the text, and its facts as fields.

    level : warning: a person should look into it; error: the fleet gets no new model until one does
    """

    what: str
    facts: dict[str, Any]
    level: Level = "info"


def refusal_note(what: str, answer: Joined | Answer) -> Note:
    """Return the note that the parent refused a join or a report; a person may have to act."""
    facts: dict[str, Any] = {"reason": answer.reason.name, "meaning": answer.reason.value}
    if isinstance(answer, Joined):
        facts["lines"] = answer.lines
    return Note(f"{what} refused", facts, "warning")


def settled_note(schema: Schema) -> Note:
    """Return the note that the fleet has settled what the schema left open, with the values."""
    gamma = schema.features.spec().get("gamma")
    facts: dict[str, Any] = {"scaled": schema.scaling is not None}
    if isinstance(gamma, str):
        facts["gamma"] = float(f"{float.fromhex(gamma):.6g}")
    if isinstance(schema.features, Landmarks):
        facts["landmarks"] = len(schema.features.points)  # readings that all members can read
    return Note("schema settled", facts)


Effect = Send | Publish | Keep | Scored | Alarmed | Consult | Replied | NewCertificate | Note
