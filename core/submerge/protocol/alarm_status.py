"""Vigil: what nodes say of their alarms, and how it adds up on the way to the root.

An alarm is told as a state, like all else: open, or over and remembered for a while. Whoever
missed its start hears of it with the next report, and nobody hears of it twice: its name says
which it is.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import ulp
from typing import Literal, get_args

from submerge.errors import UsageError
from submerge.protocol.names import NAME
from submerge.stats.quantile_sketch import varint

State = Literal["learning", "armed", "alarm", "paused", "stale"]
STATES: tuple[State, ...] = get_args(State)
"""Of a client: it does not know yet what to alarm at; it watches; something is wrong; it watches,
and learns nothing, for an operator said so; the model that it watches with has expired."""

Cause = Literal["spe", "t2", "linear", "channel", "stuck"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""What was over its limit: how far rows were off the model, or within it; the same of readings,
where these are of features; a single channel, by what is usual for it; or it says the same for too
long."""

Verdict = Literal["", "accepted", "rejected"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What a person made of it: nothing; it is normal now, and learnt; it is a fault, and never is."""

REMEMBERED = 8
"""Alarms that are over and that a client still tells of."""

MOST_ALARMS = 64
"""In one report: of more, those that are open go first, and the newest of them."""

TOP = 3
"""Channels that are named."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that a person would get up for.

    Attributes
    ----------
    node : str
    number : int
        When it began, in milliseconds of a clock that may lie: of one node no two are alike.
    began, peaked, ended : float
        Wall time at the node, seconds; `ended` is 0 while it is open.
    worst : float
        The highest score, over its limit.
    cause : Cause
        Which score that was.
    top : tuple of (channel, share)
        To blame, the guiltiest first; three at most.
    version : int
        Of the model that raised it.
    withheld : int
        Readings that were not learnt for it.
    verdict : Verdict
    """

    node: str
    number: int
    began: float
    peaked: float
    ended: float
    worst: float
    cause: Cause
    top: tuple[tuple[str, float], ...]
    version: int
    withheld: int = 0
    verdict: Verdict = ""

    @property
    def name(self) -> str:
        """What it is called: `pump-3-19aa41f2c30`."""
        return f"{self.node}-{self.number:x}"

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return not self.ended

    @property
    def packed(self) -> bytes:
        """The bytes that two equal ones share."""
        top = "".join(f"{channel}\n{share.hex()}\n" for channel, share in self.top)
        return b"".join(
            (
                f"{self.node}\n{self.cause}\n{self.verdict}\n{top}".encode(),
                *map(varint, (self.number, self.version, self.withheld)),
                struct.pack("<dddd", self.began, self.peaked, self.ended, self.worst),
            )
        )

    @property
    def revision(self) -> bytes:
        """A digest, 16 bytes, of what people have to hear at once: where it changes, there is news.

        Each reader computes it, the same on every machine; no message carries it. Counted are
        `node`, `number`, `began`, `ended`, `version` and `verdict`, which change when something
        happens. `peaked`, `worst`, `cause`, `top` and `withheld` are counted once the alarm is
        over, because they are final then. While it is open they move with its rows: every row
        would send a report at once, and every reader would look again.
        """
        return _revision(self)

    def over(self, at: float) -> Alarm:
        """Return it as it is once it is over."""
        return self if self.ended else replace(self, ended=max(at, self.began, ulp(0.0)))


# An aggregator is asked for thousands of them, again and again, and few have changed.
@lru_cache(maxsize=1 << 14)
def _revision(alarm: Alarm) -> bytes:
    # Equal alarms have equal text: with 0.0 added, 1 is 1.0 and -0.0 is 0.0.
    times = [alarm.began + 0.0, alarm.ended + 0.0]
    counted: list[object] = [alarm.node, alarm.number, alarm.version, alarm.verdict, *times]
    if not alarm.is_open:
        top = [(channel, share + 0.0) for channel, share in alarm.top]
        counted += [alarm.peaked + 0.0, alarm.worst + 0.0, alarm.cause, top, alarm.withheld]
    return blake2b(json.dumps(counted).encode(), digest_size=16).digest()


def parted(name: str) -> tuple[str, int]:
    """Return the node and the number that an alarm's name has.

    Raises
    ------
    UsageError
        If it is none.
    """
    found = re.fullmatch(rf"({NAME})-([0-9a-f]{{1,16}})", name)
    if not found:
        raise UsageError(f"an alarm is called like pump-3-19aa41f2c30, got {name!r}")
    return found[1], int(found[2], 16)


@dataclass(frozen=True, slots=True)
class AlarmStatus:
    """How a client watches, or all below an aggregator do.

    Attributes
    ----------
    states : tuple of int
        Nodes in each of `STATES`.
    alarms : tuple of Alarm
        Open ones, and those that were over last.
    open : int
        Alarms that are open; more than are told, if there are very many.
    watched_s : float
        Time that was watched with limits, of all nodes together.
    allowed : float
        False alarms that were promised for that time, at most.
    raised, confirmed : int
        Alarms that were raised in it; those that a person has called faults.
    armed_in_s : float
        Until a limit is known, as it looks; 0 where it is, -1 where nobody can say.
    wish : int
        Number of the newest wish that has come here from above.
    """

    states: tuple[int, ...]
    alarms: tuple[Alarm, ...] = ()
    open: int = 0
    watched_s: float = 0.0
    allowed: float = 0.0
    raised: int = 0
    confirmed: int = 0
    armed_in_s: float = 0.0
    desired: int = 0

    @classmethod
    def at(cls, state: State) -> tuple[int, ...]:
        """Return `states` of one client."""
        return tuple(int(each == state) for each in STATES)

    @property
    def state(self) -> State:
        """Of a client, which it is in."""
        return STATES[max(range(len(STATES)), key=lambda i: self.states[i])]

    @property
    def packed(self) -> bytes:
        """The bytes that two equal ones share."""
        times = struct.pack("<ddd", self.watched_s, self.allowed, self.armed_in_s)
        counts = (*self.states, self.open, self.raised, self.confirmed, self.desired)
        return b"".join((*map(varint, counts), times, *(each.packed for each in self.alarms)))


def reportable(alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
    """Return the alarms to tell of: open ones, then those that were over last, 64 at most."""
    order = sorted(
        alarms,
        key=lambda each: (
            *(not each.is_open, -max(each.began, each.ended)),
            *(each.node, each.number),
        ),
    )
    return tuple(order[:MOST_ALARMS])


def pooled(parts: Iterable[AlarmStatus], *, desired: int = 0) -> AlarmStatus:
    """Return what several nodes say as what one does."""
    parts = list(parts)
    states = [sum(counts) for counts in zip(*(part.states for part in parts), strict=True)]
    waits = [part.armed_in_s for part in parts if part.armed_in_s > 0]
    unknown = any(part.armed_in_s < 0 for part in parts)
    return AlarmStatus(
        tuple(states) or (0,) * len(STATES),
        reportable(alarm for part in parts for alarm in part.alarms),
        sum(part.open for part in parts),
        sum(part.watched_s for part in parts),
        sum(part.allowed for part in parts),
        sum(part.raised for part in parts),
        sum(part.confirmed for part in parts),
        max(waits) if waits else (-1.0 if unknown else 0.0),
        desired,
    )
