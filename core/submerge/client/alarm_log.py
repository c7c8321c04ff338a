"""AlarmLog: the alarms of one node, as a value: how one begins, worsens, withholds and ends.

One alarm is open at a time: everything that goes wrong meanwhile is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.judge.decision import Mask
from submerge.protocol.alarm_status import REMEMBERED, TOP, Alarm, Cause, Verdict
from submerge.stats.block_maxima import By

BLAMED = 256
"""Rows over their limit that the blame of an alarm covers; with more, the earlier ones fade."""


@dataclass(frozen=True, slots=True, eq=False)
class AlarmLog:
    """The alarms of one node.

    Attributes
    ----------
    node : str
    channels : tuple of str
    max_withheld_s : float
        As in `AlarmSettings`.
    alarms : tuple of Alarm
        The open one first, then those that ended last.
    held_s, frozen, blame, raised, confirmed
        As in `DetectorState`.
    excused : frozenset of int
        Likewise.
    """

    node: str
    channels: tuple[str, ...]
    max_withheld_s: float
    alarms: tuple[Alarm, ...] = ()
    held_s: float = 0.0
    frozen: Mapping[By, float] = field(default_factory=dict)
    blame: Array = field(default_factory=lambda: np.zeros(0))
    excused: frozenset[int] = frozenset()
    raised: int = 0
    confirmed: int = 0

    @property
    def open(self) -> Alarm | None:
        """The open alarm, if there is one."""
        return self.alarms[0] if self.alarms and self.alarms[0].is_open else None

    @property
    def withholds(self) -> bool:
        """Whether there is an open alarm whose rows are not learnt."""
        alarm = self.open
        if alarm is None:
            return False
        return alarm.verdict == "rejected" or self.held_s < self.max_withheld_s

    def begin(self, at: float, cause: Cause, version: int, *, counted: bool) -> AlarmLog:
        """Return it with an alarm that began at a wall time.

        counted : whether there are limits: without any, it is not counted as raised
        """
        number = max(int(at * 1000), 1, *(alarm.number + 1 for alarm in self.alarms[:1]))
        alarm = Alarm(self.node, number, at, at, 0.0, 0.0, cause, (), version)
        return replace(
            self,
            alarms=(alarm, *self.alarms[:REMEMBERED]),
            held_s=0.0,
            blame=np.zeros(len(self.channels)),
            raised=self.raised + counted,
        )

    def worsen(self, ratio: float, cause: Cause, at: float) -> AlarmLog:
        """Return it with a row of the open alarm whose score is `ratio` times its limit."""
        alarm = self.alarms[0]
        if ratio <= alarm.worst:
            return self
        cause = alarm.cause if alarm.cause == "stuck" else cause
        return self._amend(worst=ratio, cause=cause, peaked=at)

    def hold(self, rows: int, each_s: float) -> tuple[AlarmLog, int]:
        """Return it after more rows of the open alarm, and how many of them are withheld."""
        alarm, left_s, held = self.alarms[0], self.max_withheld_s - self.held_s, 0
        if alarm.verdict == "rejected":
            held = rows
        elif left_s > 0:
            held = rows if not each_s else min(rows, math.ceil(left_s / each_s))
        log = self._amend(withheld=alarm.withheld + held)
        return replace(log, held_s=self.held_s + each_s * rows), held

    def accuse(self, shares: Array, rows: int) -> AlarmLog:
        """Return it with the channels to blame for more rows of the open alarm.

        shares : (channels,), sums to 1
        """
        blame = max(0.0, 1 - rows / BLAMED) * self.blame + rows * shares
        whole, log = float(blame.sum()), replace(self, blame=blame)
        if self.open is None or whole <= 0:
            return log
        first = np.argsort(-blame, kind="stable")[:TOP]
        top = tuple((self.channels[j], float(blame[j]) / whole) for j in first.tolist())
        return log._amend(top=tuple(each for each in top if each[1] > 0))

    def end(self, at: float) -> AlarmLog:
        """Return it with the open alarm ended."""
        return replace(self, alarms=(self.alarms[0].over(at), *self.alarms[1:]), frozen={})

    def with_verdict(self, number: int, verdict: Verdict) -> AlarmLog:
        """Return it with a verdict on an alarm; the log itself if nothing changes."""
        for i, alarm in enumerate(self.alarms):
            if alarm.number == number and alarm.verdict != verdict:
                confirmed = (verdict == "rejected") - (alarm.verdict == "rejected")
                new = replace(alarm, verdict=verdict)
                return replace(
                    self,
                    alarms=(*self.alarms[:i], new, *self.alarms[i + 1 :]),
                    confirmed=self.confirmed + confirmed,
                )
        return self

    def _amend(self, **changes: object) -> AlarmLog:
        alarm = replace(self.alarms[0], **changes)  # type: ignore[arg-type]
        return replace(self, alarms=(alarm, *self.alarms[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class Exceedance:
    """The scores of rows over the limits of the moment.

    Attributes
    ----------
    over : (n,) of bool
        Rows at which an alarm begins, if none is open.
    high : (n,) of bool
        Rows at which an open alarm stays open.
    ratio : (n,)
        The largest of each row's scores, divided by its limit.
    causes : sequence of kind, (n,)
        Which statistic that is.
    times : (n,)
        Wall time of each row.
    """

    over: Mask
    high: Mask
    ratio: Array
    causes: tuple[By, ...]
    times: npt.NDArray[np.float64]


def follow(
    log: AlarmLog, seen: Exceedance, *, version: int, each_s: float, counted: bool
) -> tuple[AlarmLog, Mask, Mask]:
    """Take rows into the log: from one beginning or end of an alarm to the next.

    Parameters
    ----------
    log : AlarmLog
    seen : Exceedance
    version : int
        Of the model that made the scores.
    each_s : float
        The time that a row stands for.
    counted : bool
        As in `AlarmLog.begin`.

    Returns
    -------
    log : AlarmLog
    alarmed, held : (n,) of bool
        Rows of an alarm; those of them that are withheld.
    """
    n, i, over = len(seen.over), 0, seen.over.copy()
    alarmed, held = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    while i < n:
        if log.open is None:
            ahead = np.flatnonzero(over[i:])
            if not len(ahead):
                break
            i += int(ahead[0])
            log = log.begin(float(seen.times[i]), seen.causes[i], version, counted=counted)
        ahead = np.flatnonzero(~seen.high[i:])
        end = i + int(ahead[0]) if len(ahead) else n
        if end > i:
            alarmed[i:end] = True
            worst = i + int(seen.ratio[i:end].argmax())
            log = log.worsen(float(seen.ratio[worst]), seen.causes[worst], float(seen.times[worst]))
            log, still = log.hold(end - i, each_s)
            held[i : i + still] = True
        if end < n:
            log = log.end(float(seen.times[end]))
            over[end] = False  # an alarm that ends here does not begin here
        i = end + 1 if end < n else n
    return log, alarmed, held
