"""AlarmStatus: the alarms of a node, and how statuses add up on the way to the root.

An alarm is reported as a state: open, or ended and remembered for a while. A reader that missed its
start learns of it from the next report. Its name identifies it, so that no reader counts it twice.
"""

from __future__ import annotations

import json
import re
import struct
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
"""States of a client: its limits are not known yet; it detects alarms; one is open; an operator has
paused its learning, and it still detects; its model has expired."""

Cause = Literal["spe", "t2", "linear", "channel", "stuck"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""What was over its limit: SPE (squared prediction error: how far rows are off the subspace); T2
(Hotelling's T-squared: how far out within it); in a kernel group the SPE of the readings; the error
of a single channel, over its typical error; or a channel repeats one value for too long."""

Verdict = Literal["", "accepted", "rejected"]
"""What a person decided: nothing; normal from now on, and learnt; a fault, and never learnt."""

REMEMBERED = 8
"""Ended alarms that a client remembers and reports."""

MOST_ALARMS = 64
"""Alarms in one report: open ones first; see `alarm_places`."""

TOP = 3
"""Channels that an alarm names."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that a person has to look at.

    Attributes
    ----------
    node : str
    number : int
        When it began, in milliseconds of a clock that may be wrong; unique for a node.
    began, peaked, ended : float
        Wall time at the node, seconds; `ended` is 0 while it is open.
    worst : float
        The highest score, divided by its limit.
    cause : Cause
        Which score that was.
    top : tuple of (channel, share)
        Channels to blame, the largest share first; three at most.
    version : int
        Version of the model that raised it.
    withheld : int
        Readings that were not learnt because of it.
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
        """Its name: `pump-3-19aa41f2c30`."""
        return f"{self.node}-{self.number:x}"

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return not self.ended

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal alarms."""
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
        """A digest, 16 bytes, of what people must learn at once: when it changes, there is news.

        Each reader computes it, the same on every machine; no message carries it. It covers
        `node`, `number`, `began`, `ended`, `version` and `verdict`, which change when something
        happens. It covers `peaked`, `worst`, `cause`, `top` and `withheld` once the alarm has
        ended, because they are final then. While it is open they change with its rows: every row
        would send a report at once, and every reader would look again.
        """
        return _revision(self)

    def over(self, at: float) -> Alarm:
        """Return it ended at a wall time; unchanged if it has ended."""
        return self if self.ended else replace(self, ended=max(at, self.began, ulp(0.0)))


# An aggregator computes thousands of them again and again, and few have changed.
@lru_cache(maxsize=1 << 14)
def _revision(alarm: Alarm) -> bytes:
    # 0.0 is added so that equal alarms have equal text: 1 becomes 1.0, and -0.0 becomes 0.0.
    times = [alarm.began + 0.0, alarm.ended + 0.0]
    counted: list[object] = [alarm.node, alarm.number, alarm.version, alarm.verdict, *times]
    if not alarm.is_open:
        top = [(channel, share + 0.0) for channel, share in alarm.top]
        counted += [alarm.peaked + 0.0, alarm.worst + 0.0, alarm.cause, top, alarm.withheld]
    return blake2b(json.dumps(counted).encode(), digest_size=16).digest()


def parse_alarm_name(name: str) -> tuple[str, int]:
    """Return the node and the number in an alarm's name.

    Raises
    ------
    UsageError
        If it is no name of an alarm.
    """
    found = re.fullmatch(rf"({NAME})-([0-9a-f]{{1,16}})", name)
    if not found:
        raise UsageError(f"an alarm's name is like pump-3-19aa41f2c30, got {name!r}")
    return found[1], int(found[2], 16)


@dataclass(frozen=True, slots=True)
class AlarmStatus:
    """The alarm status of a client, or of all clients below an aggregator.

    Attributes
    ----------
    states : tuple of int
        Nodes in each of `STATES`.
    alarms : tuple of Alarm
        Open ones, and those that ended last.
    open : int
        Number of open alarms; more than `alarms` lists, if there are very many.
    watched_s : float
        Time that was monitored with limits, summed over nodes.
    allowed : float
        The most false alarms that the settings allow in that time.
    raised, confirmed : int
        Alarms that were raised in it; those that a person confirmed as faults.
    armed_in_s : float
        Estimated time until a limit is known; 0 once it is known, -1 without an estimate.
    desired : int
        Number of the newest desired state that has arrived from above.
    silent : tuple of (node, seconds)
        Nodes of `alarms` of which nothing was heard for more than three report intervals, and for
        how long. The node may have moved: another child that reports of it is believed then.
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
    silent: tuple[tuple[str, int], ...] = ()

    @classmethod
    def at(cls, state: State) -> tuple[int, ...]:
        """Return `states` of one client."""
        return tuple(int(each == state) for each in STATES)

    @property
    def state(self) -> State:
        """The state of a client."""
        return STATES[max(range(len(STATES)), key=lambda i: self.states[i])]

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal statuses."""
        times = struct.pack("<ddd", self.watched_s, self.allowed, self.armed_in_s)
        counts = (*self.states, self.open, self.raised, self.confirmed, self.desired)
        silent = (f"{node}\n".encode() + varint(seconds) for node, seconds in self.silent)
        return b"".join(
            (*map(varint, counts), times, *(each.packed for each in self.alarms), *silent)
        )
