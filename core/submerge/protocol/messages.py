"""What nodes tell one another.

Up: `Join`, then `Report`s. Down: `Joined`, an `Answer` to each report, `Hello`, `Model`.
A report says everything that one incarnation has seen; it replaces the one before it and
is never added to it. Rules: docs/protocol.md.
"""

from __future__ import annotations

import enum
import hashlib
import re
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge.errors import UsageError
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.summaries import Summaries, Summary
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import QuantileSketch, packed, varint
from submerge.stats.score_limits import Limits

BELIEVED, HIGHEST = 2**62, 2**63 - 1
"""A model version in use above the one is a lie: no clock counts so many milliseconds. A root
that was told just that still has as many to go, up to the other."""


LATEST = 2**61
"""A life created later (ms) is a lie: a floor rises above it, and both are still to be told."""


class Incarnation(NamedTuple):
    """One life of a state, from zero: a client's process, an aggregator's store.

    created_ms is by a clock that may lie: it names, it does not order.
    """

    created_ms: int
    nonce: int

    def __str__(self) -> str:
        return f"{self.created_ms:x}-{self.nonce:016x}"

    @classmethod
    def parse(cls, text: str) -> Incarnation:
        """Return the name that a text is.

        Raises
        ------
        UsageError
            If it is none.
        """
        found = re.fullmatch(r"([0-9a-f]{1,16})-([0-9a-f]{16})", text)
        if not found:
            raise UsageError(f"an incarnation is like 18bcfe56800-00000000000000a1, got {text!r}")
        return cls(int(found[1], 16), int(found[2], 16))

    @classmethod
    def drawn(cls, wall_ms: int, floor: int, rng: np.random.Generator) -> Incarnation:
        """Return a new name, created after `floor` whatever the clock says."""
        # No further than anybody believes: a parent's wild floor must not spoil what we keep.
        created_ms = min(max(wall_ms, floor + 1, 1), LATEST)
        return cls(created_ms, int(rng.integers(2**63)))


ANOTHER, BEHIND = "the parent is another", "the parent knows more of it"
"""Why a life or a store ends: its parent's store is not the one that it belongs to; the parent
holds what it does not know that it said."""


class Pin(NamedTuple):
    """The one parent that an incarnation belongs to; `top`: that parent has none itself."""

    parent: str
    incarnation: Incarnation
    top: bool


def binds(old: Pin | None, new: Pin) -> bool:
    """Return whether what is pinned to `old` may speak to `new`.

    An incarnation belongs to one parent incarnation for ever, with one exception: from a
    root that is gone to the root in its place. No two roots are ever merged, so what the
    one has counted the other may count as well.
    """
    return old is None or old.incarnation == new.incarnation or (old.top and new.top)


class Stamp(NamedTuple):
    """Who speaks, in which life, and how far that life has come (`seq` only rises)."""

    node: str
    group: str
    incarnation: Incarnation
    seq: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Readings of one incarnation, or of all below it; they add up over rows.

    learnt : counted in a summary
    withheld : seen and not learnt: a gap, or a number too large
    lost : known to be lost for good, by lives before it that could not deliver them
    """

    learnt: int = 0
    withheld: int = 0
    lost: int = 0

    @property
    def generated(self) -> int:
        """All that are known of."""
        return self.learnt + self.withheld + self.lost

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.learnt + other.learnt, self.withheld + other.withheld, self.lost + other.lost
        )


class ScoreSketches(NamedTuple):
    """How odd readings were to the model that had not seen them: sketches of recent ones.

    linear : SPE of the readings themselves, where `spe` and `t2` are of their features
    peaks : what they came to, hour by hour: what alarms are judged by
    """

    spe: QuantileSketch
    t2: QuantileSketch
    linear: QuantileSketch | None = None
    maxima: BlockMaxima | None = None


class Census(NamedTuple):
    """Clients below an aggregator, and how long they have been silent.

    ages : clients by silence; bin i holds those of [2^i, 2^(i+1)) seconds, the first from 0
    """

    nodes: int
    ages: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Everything that an incarnation has seen.

    Attributes
    ----------
    final : bool
        No more will come: the process that gathered it is gone.
    pinned : Incarnation
        Of the parent that it is for; another parent must not count it.
    fence : bytes
        An aggregator's right to speak for its store, 16 bytes; empty from a client.
    summary : Summary or None
        None while scaling or gamma is not known; then `moments` say how large channels are.
    as_of, synced : float, bool
        Wall time that it speaks of, in seconds, and whether that clock is to be trusted.
    version : int
        Of the newest model in use, here or below.
    lifetime : int
        Readings that this node ever saw, restarts included, as far as it remembers.
    software : str
        What sent it, for people; empty before it has travelled.
    certified_until : float
        Wall time at which its sender's certificate ends, for people; 0 without one.
    vigil : Vigil or None
        How it watches, and its alarms; of an aggregator, of all below.
    """

    stamp: Stamp
    final: bool
    pinned: Incarnation
    fence: bytes
    fingerprint: str
    summary: Summary | None
    moments: Moments | None
    counts: Counts
    as_of: float
    synced: bool
    version: int
    lifetime: int
    census: Census | None = None
    scores: ScoreSketches | None = None
    software: str = ""
    certified_until: float = 0.0
    alarm_status: AlarmStatus | None = None

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All that it says of alarms."""
        return () if self.alarm_status is None else self.alarm_status.alarms


class Reason(enum.Enum):
    """Why a message was taken, or was not."""

    ACK = "taken, and committed"
    UNAVAILABLE = "not now: try again"
    WRONG_PARENT = "pinned to another incarnation of the parent"
    STALE = "this incarnation is closed"
    SHRUNK = "fewer readings than before, in the same incarnation"
    EQUIVOCATION = "two reports with one number"
    FENCED = "another process speaks for this store: join again"
    LINEAGE = "the store is a copy, or older than what its parent knows"
    SCHEMA = "another schema"
    INVALID = "numbers, or so many directions, that no summary of the group has"
    BANNED = "an operator has shut this node out"
    VERSION = "another version of the protocol"


class Left(NamedTuple):
    """A fence that a store's processes have left behind, and the seq that it had come to."""

    fence: bytes
    seq: int


class Join(NamedTuple):
    """A child asks to speak; nothing is reported before it is answered.

    seq : the newest that the child has given out
    schema : canonical text of what the child is configured for; empty: whatever there is
    """

    stamp: Stamp
    fence: bytes
    past_fences: tuple[Left, ...]
    schema: bytes


class Joined(NamedTuple):
    """The answer to a join.

    stamp : the child's, echoed; its seq is the newest that the parent holds, 0 for none
    pinned : the parent's incarnation; None where it cannot say (UNAVAILABLE)
    lines : a refused schema's differences, one a line
    """

    stamp: Stamp
    reason: Reason
    fence: bytes
    pinned: Incarnation | None
    top: bool
    floor: int
    schema: bytes
    lines: tuple[str, ...] = ()


class Answer(NamedTuple):
    """What became of a report.

    stamp : the report's
    pinned, top : of the parent that answers
    newest : the seq that it holds now
    fence : the report's; two processes of one store can tell their answers apart
    root, durable : the root's incarnation, and the seq of this row that it holds for certain
    floor : incarnations must be created later than this (ms)
    wishes : what an operator wants of the child, or of nodes below it, and it has not heard of
    """

    stamp: Stamp
    reason: Reason
    fence: bytes = b""
    pinned: Incarnation | None = None
    top: bool = False
    newest: int = 0
    root: Incarnation | None = None
    durable: int = 0
    floor: int = 0
    desired_states: tuple[DesiredState, ...] = ()


class Hello(NamedTuple):
    """A parent says that it is there; a new `boot` means: join again."""

    node: str
    incarnation: Incarnation
    top: bool
    boot: int


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What the fleet considers normal: the root's merge, on its way down.

    Attributes
    ----------
    staleness : (p50, p99, max)
        Seconds since clients were heard, rounded up to powers of two.
    created, expires : float
        Wall time at the root, seconds. An expired model still scores, and says so.
    peaks : Peaks or None
        Of the whole group: what its nodes' limits follow from.
    """

    group: str
    version: int
    schema: bytes
    fingerprint: str
    summary: Summary | None
    limits: Limits | None
    counts: Counts
    nodes: int
    staleness: tuple[float, float, float]
    created: float
    expires: float
    maxima: BlockMaxima | None = None

    @property
    def scoring_summary(self) -> Summary:
        """The summary of a model that is scored with: it has one."""
        if self.summary is None:
            raise UsageError(f"version {self.version} of {self.group} has learnt nothing")
        return self.summary

    @property
    def coverage(self) -> float:
        """Share of the readings known of that it counts."""
        return self.counts.learnt / self.counts.generated if self.counts.generated else 0.0


Message = Join | Joined | Report | Answer | Hello | Model


def payload(report: Report, summaries: Summaries) -> bytes:
    """Return what a report says, as bytes: all but `final`, `pinned` and `fence`.

    Compact, so that its length is an honest size; the wire itself is protobuf.
    """
    stamp, counts = report.stamp, report.counts
    parts = [
        f"{stamp.node}\n{stamp.group}\n".encode(),
        struct.pack("<QQQ", *stamp.incarnation, stamp.seq),
        bytes.fromhex(report.fingerprint),
        *map(
            varint,
            (counts.learnt, counts.withheld, counts.lost, report.version, report.lifetime),
        ),
        struct.pack("<d?", report.as_of, report.synced),
    ]
    if report.summary is not None:
        parts.append(summaries.packed(report.summary))
    if report.moments is not None:
        parts.append(report.moments.packed)
    if report.census is not None:
        parts.extend(map(varint, (report.census.nodes, *report.census.ages)))
    return b"".join(parts) + scores_bytes(report)


def scores_bytes(report: Report) -> bytes:
    """Return the part of a payload that its scores take, and what they lead to."""
    reported, parts = report.scores, list[bytes]()
    if reported is not None:
        sketches = (reported.spe, reported.t2, reported.linear)
        parts += [packed(sketch) for sketch in sketches if sketch is not None]
        if reported.maxima is not None:
            parts.append(reported.maxima.packed)
    if report.alarm_status is not None:
        parts.append(report.alarm_status.packed)
    return b"".join(parts)


def size(report: Report, summaries: Summaries) -> int:
    """Return what a report weighs on its way, in bytes."""
    # pinned, fence, and what says whether it is final.
    return len(payload(report, summaries)) + 16 + len(report.fence) + 1


def digest(report: Report, summaries: Summaries) -> bytes:
    """Return 16 bytes that two reports share only if they say the same."""
    return hashlib.blake2b(payload(report, summaries), digest_size=16).digest()
