"""What a machine is told, and what it asks for.

    effects = node.step(event, now)

The same state and the same event give the same effects. Effects are performed in order:
an acknowledgement follows the `Keep` that it rests on, and where a `Keep` fails, none
after it is performed and the machine is thrown away and started again from what was kept.
`Start` is the first event that a machine is told, and comes once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from submerge._linalg import Array
from submerge.judge.decision import Decision
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.messages import Answer, Incarnation, Joined, Message
from submerge.schema import Schema

Key = tuple[str, ...]
"""Names a record in a node's store."""

Records = Mapping[Key, Any]


class Now(NamedTuple):
    """Two clocks: waiting is measured on the one, and the other is only ever written down.

    steady : seconds, never set back; from any start
    wall : Unix seconds; may lie by years
    synced : whether somebody vouches for `wall`
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
    """The process begins; `kept` is what its store holds."""

    kept: Records


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Rows (n, channels) from the sensors, in their units; NaN is a gap."""

    rows: Array


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """A message came in; `shared`: by a way that other aggregators listen on, too."""

    message: Message
    shared: bool = False


class Tick(NamedTuple):
    """Time has passed."""


class Linked(NamedTuple):
    """The way to the parent is open again: do not wait out the back-off, and join again."""


class Flush(NamedTuple):
    """Report and keep what there is, now: the process is about to end, or someone asks."""


class Forget(NamedTuple):
    """An operator takes a node out, as if it had never been; `ban` keeps it out."""

    group: str
    node: str
    ban: bool = False


class Drop(NamedTuple):
    """An operator takes out one incarnation: a dead aggregator's last row.

    None takes out what closed ones have left; with `old`, all that is of a schema before.
    """

    group: str
    node: str
    incarnation: Incarnation | None
    old: bool = False


class SetDesired(NamedTuple):
    """An operator wants a node to learn or not; or has judged one of its alarms.

    paused : it is to learn nothing; None: as before
    verdict : (number, accept) of an alarm; None: none
    """

    group: str
    node: str
    paused: bool | None = None
    verdict: tuple[int, bool] | None = None


class SetQuarantine(NamedTuple):
    """An operator takes a node's rows out of the model, and keeps them; `apart` False: back in.

    Back in means that it is no longer banned either.
    """

    group: str
    node: str
    quarantined: bool = True


Event = (
    Start | Reading | Received | Tick | Linked | Flush | Forget | Drop | SetQuarantine | SetDesired
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

    anew : the store is another one from here on: delete all that it held first
    """

    records: Mapping[Key, Any | None]
    anew: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Rows judged before they were learnt, by the model of that version.

    block : which rows, and why not the others
    scores : how far each is from the model, and by which channels
    decision : which belong to an alarm, and which are not learnt
    expired : that model is older than its root meant it to get
    r2 : (channels,), the share of each channel's variance that the others tell, as measured here;
        NaN where that is not known yet; None where nothing was filled
    """

    block: Block
    scores: RowScores
    decision: Decision
    version: int
    expired: bool
    r2: Array | None = None


class Alarmed(NamedTuple):
    """An alarm began or is over, or a person has judged one: all that the node tells of.

    Told again at the start of a process, so that whoever missed it hears of it.
    """

    alarms: tuple[Alarm, ...]


class Note(NamedTuple):
    """Something for the log: what, and its facts as fields."""

    what: str
    facts: dict[str, Any]


def refused(what: str, answer: Joined | Answer) -> Note:
    """A join or a report was refused, and only a person may be able to mend that."""
    facts: dict[str, Any] = {"reason": answer.reason.name, "meaning": answer.reason.value}
    if isinstance(answer, Joined):
        facts["lines"] = answer.lines
    return Note(f"{what} refused", facts)


def settled(schema: Schema) -> Note:
    """The fleet has settled what a schema left open: a person may want to know on what."""
    gamma = schema.features.spec().get("gamma")
    facts: dict[str, Any] = {"scaled": schema.scaling is not None}
    if isinstance(gamma, str):
        facts["gamma"] = float(f"{float.fromhex(gamma):.6g}")
    return Note("schema settled", facts)


Effect = Send | Publish | Keep | Scored | Alarmed | Note
