"""AlarmStatus: the alarms of a node, and how statuses add up on the way to the root."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from math import ulp
from typing import Literal, NamedTuple, get_args

from submerge.errors import UsageError
from submerge.protocol.names import NAME
from submerge.stats.quantile_sketch import varint
from submerge.stats.statistic import STATISTICS, By

State = Literal["learning", "armed", "alarm", "paused", "stale"]
STATES: tuple[State, ...] = get_args(State)
"""States of a client: its limits are not known yet; it detects alarms; one is open; an operator has
paused its learning, and it still detects; its model has expired."""

Cause = Literal[By, "stuck", "silent", "duty", "jump"]
CAUSES: dict[Cause, str] = {
    **{kind: each.cause for kind, each in STATISTICS.items()},
    "stuck": "a channel keeps its value while the others move",
    "silent": "a channel says nothing for longer than ever before",
    "duty": "a channel with two states stays at one for longer than ever before",
    "jump": "a channel is further from where it was than ever before",
}
"""What was over its limit, in words for the person who is woken."""

# Of alarms that stand beside all others: without a score, and without withheld rows.
BESIDE: tuple[Cause, ...] = ("silent", "duty", "jump")

Verdict = Literal["", "accepted", "rejected"]
"""What a person decided: nothing; normal from now on, and learnt; a fault, and never learnt."""

MARKS = {
    "settled": "settled at a new level",
    "provisional": "provisional",
    "repeated": "repeated, told three times",
}
"""What an alarm may be marked with, in words: a field of that name here, on the wire, in JSON."""

Awaited = Literal["report", "model", "mean", "limits"]
"""What a node without limits waits for: rows for its first report, which only its own log can say;
the group's first model; a mean of its own; scores that say what is usual."""

MOST_TOLD = 1000.0
"""Times its limit above which a score is told as over that: a sensor has failed, and more of it is
no information."""


def excess(worst: float) -> str:
    """Return a score over its limit in words for people."""
    return f"{worst:.3g}" if worst < MOST_TOLD - 0.5 else f"over {MOST_TOLD:,.0f}"


def stays_at(value: float, other: float) -> str:
    """Return which of two levels a channel stays at; it is on or off where the lower is nothing."""
    lower, higher = sorted((value, other))
    words = ("off", "on") if abs(lower) <= (higher - lower) / 8 else ("low", "high")
    return words[value == higher]


REMEMBERED = 8  # ended alarms that a client remembers and reports
MOST_ALARMS = 64  # alarms in one report: open ones first
TOP = 3  # channels that an alarm names


def and_more(cause: Cause, top: Mapping[str, float], named: int) -> str:
    """Return in words how many more channels than `named` an alarm of equal shares has, or ""."""
    more = round(1 / max(top.values())) - named if top and cause in BESIDE else 0
    return f" and {more} more" if more > 0 else ""


class Deviation(NamedTuple):
    """How far a channel is from what the other channels say of it, in its unit."""

    channel: str
    value: float
    expected: float

    @property
    def difference(self) -> float:
        return self.value - self.expected


class Looks(NamedTuple):
    """Whether an alarm looks like a failing sensor, or like the process that it measures."""

    like: Literal["sensor", "process"]
    others: int  # channels beside the one most to blame
    left: float  # squared distance of its rows without that one, over what is usual
    twins: bool = False  # the first two of `top` tell each other: either may be the one


class AlarmPart(NamedTuple):
    """An alarm that belongs to an incident."""

    node: str
    number: int
    began: float
    channel: str  # most to blame for it at its onset; "" if none is

    @property
    def name(self) -> str:
        return f"{self.node}-{self.number:x}"


INCIDENT = "incident-"
"""What an incident's name begins with, before that of the alarm that was first."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that a person has to look at; times are wall time at the node, seconds."""

    # An incident is one with `parts`: node and number are those of its leader, and `top` has the
    # share of its nodes that blame a channel.

    node: str
    number: int  # when it began, in milliseconds of a clock that may be wrong; unique for a node
    began: float
    peaked: float
    ended: float  # 0 while it is open
    worst: float  # the highest score, divided by its limit; 0 without
    cause: Cause  # which score that was
    top: tuple[tuple[str, float], ...]  # channels to blame, the largest share first; three at most
    version: int  # of the model that raised it
    withheld: int = 0  # readings that were not learnt because of it
    verdict: Verdict = ""
    first: tuple[tuple[str, float], ...] = ()  # `top` by the rows that raised it
    deviations: tuple[Deviation, ...] = ()  # of `top`, in the row with the highest score
    settled: bool = False  # it ended at a new level, and no person had judged it
    provisional: bool = False
    repeated: bool = False  # people were told of it three times; it is not much worse now
    looks: Looks | None = None  # None where it cannot be told
    parts: tuple[AlarmPart, ...] = ()  # of an incident, in the order of their onsets; never sent
    downstream: tuple[str, ...] = ()  # of an incident's node, the next first, where that is known

    @property
    def name(self) -> str:
        """Its name: `pump-3-19aa41f2c30`; of an incident `incident-pump-3-19aa41f2c30`."""
        return f"{INCIDENT if self.parts else ''}{self.leader}"

    @property
    def leader(self) -> str:
        """The name of the alarm that leads an incident; of an alarm its own."""
        return f"{self.node}-{self.number:x}"

    @property
    def is_open(self) -> bool:
        return not self.ended

    @property
    def is_quiet(self) -> bool:
        """Whether it is listed, and sent nowhere."""
        return self.provisional or self.repeated

    @property
    def is_serious(self) -> bool:
        """Whether it is open, and not quiet."""
        return self.is_open and not self.is_quiet

    @property
    def twins(self) -> tuple[str, ...]:
        """The two channels of which either may be to blame; none where one is."""
        return tuple(c for c, _ in self.top[:2]) if self.looks and self.looks.twins else ()

    @property
    def noun(self) -> str:
        """What to call it in a sentence."""
        if self.parts:
            return "incident"
        mark = "repeated " if self.repeated else f"{MARKS['provisional']} " if self.is_quiet else ""
        return f"{mark}alarm"

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal alarms."""
        known = b"".join(
            (
                f"{self.node}\n{self.cause}\n{self.verdict}\n{_shares(self.top)}".encode(),
                *map(varint, (self.number, self.version, self.withheld)),
                struct.pack("<dddd", self.began, self.peaked, self.ended, self.worst),
                b"provisional" if self.provisional else b"",
                b"repeated" if self.repeated else b"",
            )
        )
        if self.looks is not None:
            # Without twins it is as a digest has it that an earlier version kept.
            known += json.dumps(self.looks[: 4 if self.looks.twins else 3]).encode()
        if not (self.first or self.deviations or self.settled):
            return known  # as a digest has it that an earlier version kept
        off = "".join(f"{c}\n{v.hex()}\n{e.hex()}\n" for c, v, e in self.deviations)
        newer = f"first\n{_shares(self.first)}off\n{off}settled\n{self.settled:d}"
        return known + newer.encode()

    @property
    def revision(self) -> bytes:
        """A digest, 16 bytes, of what people must learn at once: when it changes, there is news."""
        # Each reader computes it, the same on every machine. What changes with an open alarm's rows
        # it covers only once the alarm has ended: every row would send a report at once.
        return _revision(self)

    def over(self, at: float, *, settled: bool = False) -> Alarm:
        """Return it ended at a wall time; unchanged if it has ended."""
        if self.ended:
            return self
        return replace(self, ended=max(at, self.began, ulp(0.0)), settled=settled)


def _shares(shares: tuple[tuple[str, float], ...]) -> str:
    return "".join(f"{channel}\n{share.hex()}\n" for channel, share in shares)


# An aggregator computes thousands of them again and again, and few have changed.
@lru_cache(maxsize=1 << 14)
def _revision(alarm: Alarm) -> bytes:
    # 0.0 is added so that equal alarms have equal text: 1 becomes 1.0, and -0.0 becomes 0.0.
    times = [alarm.began + 0.0, alarm.ended + 0.0]
    counted: list[object] = [alarm.node, alarm.number, alarm.version, alarm.verdict, *times]
    if alarm.parts:
        counted.append(len(alarm.parts))
    if alarm.repeated:
        counted.append("repeated")
    if not alarm.is_open:
        top = [(channel, share + 0.0) for channel, share in alarm.top]
        counted += [alarm.peaked + 0.0, alarm.worst + 0.0, alarm.cause, top, alarm.withheld]
        if alarm.first or alarm.deviations or alarm.settled:
            first = [(channel, share + 0.0) for channel, share in alarm.first]
            off = [
                (each.channel, each.value + 0.0, each.expected + 0.0) for each in alarm.deviations
            ]
            counted += [first, off, alarm.settled]
    return blake2b(json.dumps(counted).encode(), digest_size=16).digest()


def parse_alarm_name(name: str) -> tuple[str, int]:
    """Return the node and the number in an alarm's name; UsageError if it is none."""
    found = re.fullmatch(rf"({NAME})-([0-9a-f]{{1,16}})", name)
    if not found:
        raise UsageError(f"an alarm's name is like pump-3-19aa41f2c30, got {name!r}")
    return found[1], int(found[2], 16)


MOST_WIDENED = 1.5  # largest factor on alarm limits


class TypicalAlarms(NamedTuple):
    """Alarms from which a group's limits may widen, of an aggregator's nodes."""

    promised: float = 0.0  # false alarms that the settings allow, of nodes that are no outliers
    unconfirmed: int = 0  # by no person, of these; of each node not many more than promised
    nodes: int = 0  # with such an alarm


NO_ALARMS = TypicalAlarms()


class Waiting(NamedTuple):
    """What a node without limits waits for."""

    what: Awaited
    # rows that there are, and that are needed; 0 where that is not known
    rows: int = 0
    of: int = 0

    @property
    def words(self) -> str:
        """It in words, for people: `waiting for a mean of its own: 4 of 10 rows`."""
        what = {
            "report": "a first report",
            "model": "the group's first model",
            "mean": "a mean of its own",
            "limits": "enough scores",
        }[self.what]
        return f"waiting for {what}" + (f": {self.rows:,} of {self.of:,} rows" if self.of else "")

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal ones."""
        return self.what.encode() + varint(self.rows) + varint(self.of)


@dataclass(frozen=True, slots=True)
class AlarmStatus:
    """The alarm status of a client, or of all clients below an aggregator."""

    states: tuple[int, ...]  # nodes in each of `STATES`
    alarms: tuple[Alarm, ...] = ()  # open ones, and those that ended last
    open: int = 0  # how many are open, also if not listed
    watched_s: float = 0.0  # monitored with limits, summed over nodes
    allowed: float = 0.0  # the most false alarms that the settings allow in that time
    raised: int = 0  # alarms in that time
    confirmed: int = 0  # of these, as faults, by a person
    armed_in_s: float = 0.0  # estimated, until a limit is known; -1 without an estimate
    desired: int = 0  # number of the newest desired state that has arrived from above
    silent: tuple[tuple[str, int], ...] = ()  # nodes unheard for three report intervals, how long
    typical: TypicalAlarms = NO_ALARMS  # empty from a client: its parent works it out
    provisional_rows: float = 0.0  # per false alarm by provisional limits, where the most; or 0
    waiting: Waiting | None = None  # what a node without limits waits for

    @classmethod
    def at(cls, state: State) -> tuple[int, ...]:
        """Return `states` of one client."""
        return tuple(int(each == state) for each in STATES)

    @property
    def state(self) -> State:
        return STATES[max(range(len(STATES)), key=lambda i: self.states[i])]

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal statuses."""
        times = struct.pack("<ddd", self.watched_s, self.allowed, self.armed_in_s)
        counts = (*self.states, self.open, self.raised, self.confirmed, self.desired)
        silent = (f"{node}\n".encode() + varint(seconds) for node, seconds in self.silent)
        first = (*map(varint, counts), times, *(each.packed for each in self.alarms), *silent)
        # A digest that was kept by an earlier version has none of these.
        newer = struct.pack("<dQQ", *self.typical) if any(self.typical) else b""
        newer += struct.pack("<d", self.provisional_rows) if self.provisional_rows else b""
        newer += b"" if self.waiting is None else b"waiting" + self.waiting.packed
        return b"".join((*first, newer))


# Children compete for places, and so do the nodes below one child.

MOST_OF_NODE = 1 + REMEMBERED
"""Alarms that one node lists: one by its scores and silent channels are open, others ended."""


def most_urgent_first(alarm: Alarm) -> tuple[bool, float, str, int]:
    """Return a key: open alarms come first, then the newest."""
    return (not alarm.is_open, -max(alarm.began, alarm.ended), alarm.node, alarm.number)


def places(chains: Iterable[Iterable[Alarm]]) -> list[tuple[int, Alarm]]:
    """Return all alarms of the children's chains in the order of their places, with its index.

    Open alarms first. Within each kind they come in rounds: a chain puts the first alarm of each of
    its nodes before the second of any. So of m places each of c chains gets m // c at least.
    """
    ranked: list[tuple[bool, int, tuple[bool, float, str, int], int, Alarm]] = []
    for index, chain in enumerate(chains):
        for is_open in (True, False):
            kind = sorted(
                (alarm for alarm in chain if alarm.is_open == is_open), key=most_urgent_first
            )
            for turn, alarm in enumerate(_by_turns(kind)):
                ranked.append((not is_open, turn, most_urgent_first(alarm), index, alarm))
    ranked.sort(key=lambda each: each[:4])
    return [(index, alarm) for *_, index, alarm in ranked]


def chosen(chains: Iterable[Iterable[Alarm]], most: int) -> tuple[Alarm, ...]:
    """Return `most` alarms of these chains, chosen fairly; open ones first, then the newest."""
    chains = [tuple(chain) for chain in chains]
    kept = [alarm for chain in chains for alarm in chain]
    if len(kept) > most:
        kept = [alarm for _, alarm in islice(places(chains), most)]
    return tuple(sorted(kept, key=most_urgent_first))


def pooled(parts: Iterable[AlarmStatus], *, desired: int = 0) -> AlarmStatus:
    """Return the statuses of several children as one; without `silent`, which is not a sum."""
    parts = list(parts)
    states = [sum(counts) for counts in zip(*(part.states for part in parts), strict=True)]
    waits = [part.armed_in_s for part in parts if part.armed_in_s > 0]
    unknown = any(part.armed_in_s < 0 for part in parts)
    provisional = [part.provisional_rows for part in parts if part.provisional_rows > 0]
    return AlarmStatus(
        tuple(states) or (0,) * len(STATES),
        chosen((part.alarms for part in parts), MOST_ALARMS),
        sum(part.open for part in parts),
        sum(part.watched_s for part in parts),
        sum(part.allowed for part in parts),
        sum(part.raised for part in parts),
        sum(part.confirmed for part in parts),
        max(waits) if waits else (-1.0 if unknown else 0.0),
        desired,
        typical=TypicalAlarms(*map(sum, zip(*(part.typical for part in parts), strict=True))),
        provisional_rows=min(provisional, default=0.0),
    )


def most_of_each_node(alarms: Iterable[Alarm]) -> tuple[list[Alarm], list[Alarm]]:
    """Return the alarms that their nodes can have, each once (ended ones count), and the others."""
    of_nodes: dict[str, dict[int, Alarm]] = {}
    for alarm in alarms:
        of_node = of_nodes.setdefault(alarm.node, {})
        held = of_node.get(alarm.number)
        if held is None or (held.is_open and not alarm.is_open):
            of_node[alarm.number] = alarm
    kept, excess = list[Alarm](), list[Alarm]()
    for of_node in of_nodes.values():
        several = list(of_node.values())
        if len(several) > MOST_OF_NODE:
            several.sort(key=most_urgent_first)
        kept += several[:MOST_OF_NODE]
        excess += several[MOST_OF_NODE:]
    return kept, excess


def _by_turns(alarms: list[Alarm]) -> list[Alarm]:
    """Return the first alarm of each node, then the second of each; newest first in each turn."""
    turns: dict[str, int] = {}
    keyed = []
    for alarm in alarms:
        turn = turns[alarm.node] = turns.get(alarm.node, -1) + 1
        keyed.append((turn, alarm))
    return [alarm for _, alarm in sorted(keyed, key=lambda each: each[0])]
