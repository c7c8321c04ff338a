"""The messages between nodes: up `Join` and `Report`, down the others (docs/protocol.md)."""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from submerge.errors import UsageError
from submerge.pca.factor import Factors
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.names import RandomSource
from submerge.protocol.score_trail import NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import NO_METHOD, Method, Summary
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import Limits

PATIENCE_S = 10.0  # a reply that comes later is dropped
MOST_BODY = 64 << 10  # Bytes of a reply's body. What is longer comes in pages.
MOST_STEP_S = 86_400  # seconds of the longest step
DEEPEST = 16  # names on the way of a question


class Question(NamedTuple):
    node: str  # the child that it is sent to
    group: str  # one of its groups
    pinned: Incarnation  # of the parent that sends it
    number: int  # names it, for its reply; drawn by whom an operator asks
    path: tuple[str, ...]  # of nodes below `node`, the last one replies; empty: `node` does
    # Of aggregators "nodes", "scores"; of any "settings"; of clients "recent", "values".
    topic: str
    about: str = ""  # of one node only; empty: of all
    after: str = ""  # a page begins after this name; empty: from the first
    since_s: int = 0  # of what happens from this time on (Unix); 0 for other topics
    step_s: int = 0

    @property
    def stamp(self) -> Stamp:
        """Of whom it is sent to, and by which incarnation of the parent."""
        return Stamp(self.node, self.group, self.pinned, 0)


class QuestionReply(NamedTuple):
    stamp: Stamp  # of the child that sends it: who replies, or an aggregator that passes it on
    number: int  # the question's
    body: bytes  # JSON; empty if there is none
    problem: str = ""  # why there is none, in one line


class ReplyTaken(NamedTuple):
    stamp: Stamp  # the reply's
    reason: Reason


class QuestionPace:
    """Lets through so many questions at once, and then so many a second."""

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst, self._per_s = burst, per_s
        self._left, self._at = burst, 0.0

    def admits(self, steady: float) -> bool:
        """Return whether one more may pass, and count it."""
        passed = max(0.0, steady - self._at)
        self._left, self._at = min(self._burst, self._left + self._per_s * passed), steady
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


# Sums under an earlier schema cannot take its place: they would be read as rows of the present
# one.


class EarlierSums(NamedTuple):
    fingerprint: str  # of that schema
    summary: Summary
    counts: Counts  # of these readings; they are among the counts of the report, too


def learnt_in(report: Report) -> Iterator[tuple[str, Summary]]:
    """Yield the summaries that a report holds, each with the fingerprint of its schema."""
    if report.summary is not None:
        yield report.fingerprint, report.summary
    if report.earlier is not None:
        yield report.earlier.fingerprint, report.earlier.summary


class DrillReport(NamedTuple):
    stamp: Stamp  # of the child that sends it: the client, or an aggregator that passes it on
    node: str  # the client
    fingerprint: str  # of the schema of its channels
    at: float  # wall time of its end, by the client's clock
    number: int  # of the desired state that asked for it
    # rows at hand, spans that faults were tried on, their length in rows
    rows: int
    spans: int
    within: int
    at_most_per_s: float  # the rate of false alarms that limits were for
    channels: bytes  # 16 bytes a channel (`submerge.drill.drill`)


class DrillTaken(NamedTuple):
    stamp: Stamp  # the report's
    reason: Reason


BELIEVED, HIGHEST = 2**62, 2**63 - 1
"""A model version in use above `BELIEVED` is never believed, however many use it: a root that
received exactly that can still count up to `HIGHEST`. `submerge.aggregator.root` says
which lower ones are believed."""

LATEST = 2**61
"""A later creation time (ms) of an incarnation is not believed: a floor that rises above it must
still fit into a message."""


class Incarnation(NamedTuple):
    """One uninterrupted run of a state, from zero: a client's process, an aggregator's store."""

    created_ms: int  # by a clock that may be wrong: it names, and does not order
    nonce: int

    def __str__(self) -> str:
        return f"{self.created_ms:x}-{self.nonce:016x}"

    @classmethod
    def parse(cls, text: str) -> Incarnation:
        """Return the incarnation that a text names; raises UsageError if the text names none."""
        found = re.fullmatch(r"([0-9a-f]{1,16})-([0-9a-f]{16})", text)
        if not found:
            raise UsageError(f"an incarnation is like 18bcfe56800-00000000000000a1, got {text!r}")
        return cls(int(found[1], 16), int(found[2], 16))

    @classmethod
    def draw(cls, wall_ms: int, floor: int, rng: RandomSource) -> Incarnation:
        """Return a new name, created after `floor` whatever the clock says."""
        # No later than other nodes believe: a parent's wild floor must not spoil what we keep.
        created_ms = min(max(wall_ms, floor + 1, 1), LATEST)
        return cls(created_ms, int(rng.integers(2**63)))


ANOTHER = "the parent's store is another one"
BEHIND = "the parent holds later reports than this node has sent"
"""Why an incarnation or a store ends."""


class Pin(NamedTuple):
    """The one parent that an incarnation belongs to; `top`: that parent has none itself."""

    parent: str
    incarnation: Incarnation
    top: bool


def binds(old: Pin | None, new: Pin) -> bool:
    """Return whether what is pinned to `old` may report to `new`."""
    # To one parent incarnation for ever, but from a root that is gone to the root in its place. Two
    # roots are never merged, so both may count the same readings.
    return old is None or old.incarnation == new.incarnation or (old.top and new.top)


class Stamp(NamedTuple):
    """The sender, its incarnation, and the number of the message in it (`seq` only rises)."""

    node: str
    group: str
    incarnation: Incarnation
    seq: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Readings of one incarnation, or of all below it; they add up over rows."""

    learnt: int = 0  # counted in a summary
    withheld: int = 0  # seen and not learnt: a gap, or a number too large
    lost: int = 0  # known to be lost, by earlier incarnations that could not deliver them
    # measured for the fleet's schema, and counted by another incarnation of the node since
    moved: int = 0

    @property
    def generated(self) -> int:
        """All known readings that are counted here."""
        return self.learnt + self.withheld + self.lost

    def __add__(self, other: Counts) -> Counts:
        learnt, withheld = self.learnt + other.learnt, self.withheld + other.withheld
        return Counts(learnt, withheld, self.lost + other.lost, self.moved + other.moved)

    def without(self, part: Counts) -> Counts:
        """Return the rest beside a part of them; never below 0."""
        learnt, withheld = self.learnt - part.learnt, self.withheld - part.withheld
        lost, moved = self.lost - part.lost, self.moved - part.moved
        return Counts(*(max(0, rest) for rest in (learnt, withheld, lost, moved)))


class ScoreSketches(NamedTuple):
    """Sketches of recent scores, by models that had not seen the readings."""

    spe: QuantileSketch  # squared prediction errors
    t2: QuantileSketch  # Hotelling's T-squared
    # in a kernel group, SPE of the readings; `spe` and `t2` are of their features
    linear: QuantileSketch | None = None
    maxima: BlockMaxima | None = None  # block maxima; alarm limits follow from them
    # distances by the factors of the model; None while it has none
    distance: QuantileSketch | None = None


class Census(NamedTuple):
    """Clients below an aggregator, and how long they have been silent."""

    nodes: int
    # clients by silence; bin i holds those of [2^i, 2^(i+1)) seconds, the first from 0
    ages: tuple[int, ...]


class Told(NamedTuple):
    """What models with noise have told: a root whose store is lost or old hears of it again."""

    releases: int = 0
    # of one row, when all that was begun has ended: zero-concentrated
    committed: float = 0.0


def most_told(*said: Told | None) -> Told | None:
    """Return the most of what nodes say; None where nothing was told."""
    known = [each for each in said if each is not None]
    return Told(*map(max, zip(*known, strict=True))) if known else None


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Everything that an incarnation has seen."""

    stamp: Stamp
    final: bool  # the process that gathered it has ended
    pinned: Incarnation  # of the parent that it is for; no other parent may count it
    fence: bytes  # an aggregator's right to report for its store, 16 bytes; else empty
    fingerprint: str
    summary: Summary | None  # None while scaling or gamma is not known
    moments: Moments | None  # of the channels, until then
    counts: Counts
    as_of: float  # wall time that it describes, in seconds
    synced: bool  # whether that clock is synchronized
    version: int  # of the newest model in use, here or below
    lifetime: int  # readings that this node has seen since it was set up, as it remembers
    census: Census | None = None
    scores: ScoreSketches | None = None
    software: str = ""  # what sent it, for people; empty until it is decoded
    certified_until: float = 0.0  # wall time at which its sender's certificate expires, or 0
    alarm_status: AlarmStatus | None = None
    trail: ScoreTrail = NO_TRAIL  # for people: two reports with one seq may have different ones
    earlier: EarlierSums | None = None  # of an aggregator, while a scale is measured
    method: Method = NO_METHOD  # of a client, for people: what has made its summary
    told: Told | None = None  # by models, as far as this node and those below know
    left: int = 0  # of an aggregator, where models carry noise: how often rows have left its sums

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return () if self.alarm_status is None else self.alarm_status.alarms


class Reason(enum.Enum):
    ACK = "accepted, and committed"
    UNAVAILABLE = "not now: try again"
    WRONG_PARENT = "pinned to another incarnation of the parent"
    STALE = "this incarnation is closed"
    SHRUNK = "fewer readings than before, in the same incarnation"
    EQUIVOCATION = "two reports with one number"
    FENCED = "another process reports for this store: join again"
    LINEAGE = "the store is a copy, or older than what its parent holds"
    SCHEMA = "another schema"
    INVALID = "numbers, or a number of directions, that no summary of the group has"
    BANNED = "an operator has banned this node"
    VERSION = "another version of the protocol"
    DENIED = "its certificate, or the aggregator's configuration, does not allow it"


class Left(NamedTuple):
    """A fence of an earlier process of a store, and the last seq that it reached."""

    fence: bytes
    seq: int


class Join(NamedTuple):
    """A child asks to join; it reports nothing before the answer."""

    stamp: Stamp  # its seq is the newest that the child has given out
    fence: bytes
    past_fences: tuple[Left, ...]
    schema: bytes  # canonical text of the configured schema; empty: the child takes the parent's
    # readings that a client's incarnation has learnt before it had any parent; 0 after that
    early: int = 0
    # readings that may leave it as they are in 24 hours, by its own configuration
    share_points: int = 0


class Joined(NamedTuple):
    stamp: Stamp  # the child's, echoed; its seq is the newest that the parent holds, 0 for none
    reason: Reason
    fence: bytes
    pinned: Incarnation | None  # the parent's incarnation; None where it cannot say (UNAVAILABLE)
    top: bool
    floor: int
    schema: bytes
    lines: tuple[str, ...] = ()  # differences of a refused schema, one a line
    # the parent takes whole scatters; one of an earlier version does not
    whole_scatter: bool = False


class Answer(NamedTuple):
    stamp: Stamp  # the report's
    reason: Reason
    fence: bytes = b""  # the report's; by it two processes of one store recognise their answers
    # of the parent that answers
    pinned: Incarnation | None = None
    top: bool = False
    newest: int = 0  # the newest seq that it holds
    # the root's incarnation, and the newest seq of this row that it surely holds
    root: Incarnation | None = None
    durable: int = 0
    floor: int = 0  # incarnations must be created later than this (ms)
    # of the child and of nodes below it, those that it has not received
    desired_states: tuple[DesiredState, ...] = ()


class Hello(NamedTuple):
    """A parent announces itself; a new `boot` number means: join again."""

    node: str
    incarnation: Incarnation
    top: bool
    boot: int


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What is normal in the fleet: the root's merge, on its way down.

    staleness : (p50, p99, max). Seconds since clients were last heard, rounded up to powers of two.
    created, expires : Wall time at the root, seconds. An expired model still scores, and is marked
        as expired.
    factors : Empty until more than half of the nodes report energies of channels.
    rank : Directions of the summary that SPE and T2 are of; 0 leaves it to each node's
        configuration.
    widened : Factor on alarm limits, 1 or more.
    block_s : Length of blocks from now on, seconds; 0 is an hour. `maxima` may be of another
        length.
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
    factors: tuple[Factors, ...] = ()
    rank: int = 0
    widened: float = 1.0
    block_s: float = 0.0
    epsilon: float = 0.0  # that the group's models have spent so far; 0 without noise
    told: Told | None = None

    @property
    def scoring_summary(self) -> Summary:
        """The summary to score with; raises UsageError if the model has none."""
        if self.summary is None:
            raise UsageError(f"version {self.version} of {self.group} has learnt nothing")
        return self.summary

    @property
    def coverage(self) -> float:
        """Share of the known readings that the model counts."""
        return self.counts.learnt / self.counts.generated if self.counts.generated else 0.0


Message = (
    Join
    | Joined
    | Report
    | Answer
    | Hello
    | Model
    | DrillReport
    | DrillTaken
    | Question
    | QuestionReply
    | ReplyTaken
)

FromBelow = Join | Report | DrillReport | QuestionReply  # what a child sends; each has one answer


def successor(measured: Incarnation, family: str) -> Incarnation:
    """Return the name that follows from the incarnation that measured and the settled schema."""
    # All copies of its readings have this one name, and a parent counts a name once. Rows of one
    # family are read as of one another; those of another never stand in for each other.
    text = f"{measured} {family}".encode()
    nonce = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return Incarnation(measured.created_ms, nonce >> 1)
