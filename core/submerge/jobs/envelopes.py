"""JobAsk, JobShare: what goes down in a round, and what comes up, as bytes and back.

An ask has the job, too: an aggregator that has lost its memory goes on from the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from submerge.errors import PeerError
from submerge.jobs import roster
from submerge.jobs.arrays import Arrays, pack, unpack
from submerge.jobs.job import LONGEST_S, MOST_ROUNDS, Job
from submerge.jobs.kind import PhaseDown
from submerge.jobs.roster import MOST_MEMBERS, Place
from submerge.protocol.names import is_name

OPENING, ENDED = "open", "end"
"""Phases of the machine: who takes part; and the job is over. A kind's phases have other names."""

MOST_WHY = 200
"""Letters of a reason, or of a failure."""


@dataclass(frozen=True, slots=True, eq=False)
class JobAsk:
    """What a parent asks in a turn."""

    job: Job
    turn: int  # rises with everything that the root asks; 0 opens the job
    within_s: float  # how long the receiver may take
    # who takes part of those that the receiver is, or has below; None while the job opens
    place: Place | None
    # of the kind's round; `OPENING` and `ENDED` are the machine's, and the latter has the answer
    phase: str
    arrays: Arrays
    attempt: int = 0  # a participant forgets what it knew of another
    round: int = 0  # of the attempt, from 0
    failure: str = ""  # why a job that is over has no answer

    @property
    def down(self) -> PhaseDown:
        return PhaseDown(self.phase, self.arrays)

    def pack(self) -> bytes:
        header = {each.name: getattr(self, each.name) for each in fields(self)}
        arrays = header.pop("arrays")
        # The root alone looks at `least`, and nodes of earlier versions take no 0.
        job = self.job.written() | {"least": max(1, self.job.least)}
        return pack(header | {"job": job, "place": roster.written(self.place)}, arrays)

    @classmethod
    def unpack(cls, body: bytes) -> JobAsk:
        """Return the ask that bytes hold; PeerError if they hold none."""
        header, arrays = unpack(body)
        within_s, phase = header.get("within_s"), header.get("phase")
        if isinstance(within_s, bool) or not isinstance(within_s, int | float):
            raise PeerError("an ask says how long it may take")
        if not 0 < within_s <= LONGEST_S or not isinstance(phase, str) or not is_name(phase):
            raise PeerError("an ask has a phase and a time", kind="range")
        turn, attempt, round_ = (_count(header, name) for name in ("turn", "attempt", "round"))
        place = roster.read(header.get("place"))
        if (phase == OPENING) != (turn == 0):
            raise PeerError("the first turn, and no other, opens a job", kind="range")
        job = Job.read(header.get("job"))
        failure = _why(header.get("failure"))
        return cls(*(job, turn, float(within_s), place, phase, arrays, attempt, round_, failure))


@dataclass(frozen=True, slots=True, eq=False)
class JobShare:
    """What a child contributes to a turn, for itself or for all below it."""

    place: Place | None  # whose contributions it holds; None if it holds none
    # participants, or nodes that were asked, that it does not hold, and why
    left: Mapping[str, str]
    arrays: Arrays  # the kind's contribution; empty while a job opens, and where none is held

    def pack(self) -> bytes:
        left = {name: why[:MOST_WHY] for name, why in self.left.items()}
        return pack({"place": roster.written(self.place), "left": left}, self.arrays)

    @classmethod
    def unpack(cls, body: bytes) -> JobShare:
        """Return the share that bytes hold; PeerError if they hold none."""
        header, arrays = unpack(body)
        left = header.get("left")
        if not isinstance(left, dict) or not all(map(is_name, left)):
            raise PeerError("a share names who has left")
        if len(left) > 2 * MOST_MEMBERS:
            raise PeerError("a share names too many nodes", kind="oversize")
        place = roster.read(header.get("place"))
        return cls(place, {name: _why(why) for name, why in left.items()}, arrays)


def _count(header: Mapping[str, Any], name: str) -> int:
    value = header.get(name)
    if type(value) is not int or not 0 <= value <= MOST_ROUNDS * 1000:
        raise PeerError(f"{name} of an ask is a count", kind="range")
    return value


def _why(value: Any) -> str:
    if not isinstance(value, str):
        raise PeerError("a reason is text")
    return "".join(each if each.isprintable() else "?" for each in value[:MOST_WHY])
