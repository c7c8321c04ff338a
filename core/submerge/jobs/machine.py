"""The events of a job's roles, and their effects, for drivers as in `protocol.machine`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from submerge.jobs.job import Job, JobOutcome
from submerge.protocol.machine import Keep, Note, Start, Tick
from submerge.protocol.messages import Stamp

PARCEL = 16
"""Bytes of a payload's name: a hash of the job, the turn and the content."""


class JobPiece(NamedTuple):
    """One piece of a payload."""

    stamp: Stamp  # the child that it is from, or for; the *sender's* incarnation; seq is the turn
    job: str  # the job's id
    up: bool  # from the child; otherwise for it
    parcel: bytes  # the payload's name
    weight: int  # clients whose contributions a share holds; 0 in an ask
    # which piece, from 0, of how many
    number: int
    total: int
    data: bytes  # its bytes


class JobPieceTaken(NamedTuple):
    """Which pieces of a payload have arrived."""

    stamp: Stamp  # the child's name; the incarnation of *who took it*; seq is the turn
    job: str
    up: bool  # of the pieces that were taken
    parcel: bytes
    have: bytes  # a bit a piece, the lowest first
    over: bool = False  # the receiver wants no more of this job: it is over, or it takes no part


JobMessage = JobPiece | JobPieceTaken


class JobTimes(NamedTuple):
    """When a role sends again."""

    patience_s: float = 5.0  # how long an acknowledgement may take
    cap_s: float = 15.0  # the longest time between two tries


class ChildrenKnown(NamedTuple):
    """Who is below now: all of them are asked when a job opens."""

    names: frozenset[str]
    # those whose certificate, or configuration, says that they are no aggregators
    clients: frozenset[str] = frozenset()
    group: str = ""  # whose jobs they are asked in; empty: in those of all groups


class KnownChildren:
    """Who is below a parent, by group, as it was said last."""

    def __init__(self) -> None:
        self._by_group: dict[str, ChildrenKnown] = {}

    def learn(self, known: ChildrenKnown) -> None:
        self._by_group[known.group] = known

    def of(self, group: str) -> ChildrenKnown:
        of_all = self._by_group.get("", ChildrenKnown(frozenset()))
        return self._by_group.get(group, of_all)


class JobHeard(NamedTuple):
    """A message of a job arrived."""

    message: JobMessage
    sender: str  # name of the node that sent it, as its certificate says
    from_parent: bool  # it is the one that this node reports to: no other may open a job here


class OpenJob(NamedTuple):
    """An operator asks for a job, at the root."""

    job: Job


class CancelJob(NamedTuple):
    """An operator ends a job."""

    id: str


JobEvent = Start | Tick | ChildrenKnown | JobHeard | OpenJob | CancelJob


class SendJob(NamedTuple):
    """Send to a child or to the parent; it may be lost."""

    to: str
    message: JobMessage


class JobProgress(NamedTuple):
    """A round has begun, for people."""

    job: str
    phase: str  # what the round is for; "open" while participants are asked
    # from 1; 0 while the job opens
    round: int
    attempt: int
    members: int  # participants


@dataclass(frozen=True, slots=True, eq=False)
class JobEnded:
    """A job is over; said twice, the first counts. Below the root: the answer or the failure."""

    outcome: JobOutcome


JobEffect = SendJob | Keep | Note | JobProgress | JobEnded
