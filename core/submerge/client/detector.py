"""Sentry: when scores become an alarm, when it is over, and which rows it keeps from learning.

1. An alarm is raised when so many of the last so many scores of one kind are over their limit,
   and is over when for four times as many rows not so many were half-way up to it again, from what
   an ordinary hour comes to.
2. Its rows are withheld from learning: what is alarmed at is not to become normal. After
   `max_withheld_s` they are learnt all the same, as odd as ordinary rows are and no more, unless
   a person rejects it (a fault, never learnt) or accepts it (normal now: the alarm is over).
3. Limits are the group's (`peaks`), at the rate that this node promises. None is believed
   before the group has been watched for `settle_s`.
4. It is restored as it was: an alarm that was raised before a restart is not raised again.

One alarm is open at a time: whatever goes wrong meanwhile is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarm_limits import AlarmLimits, Hours
from submerge.protocol.alarm_status import (
    REMEMBERED,
    TOP,
    Alarm,
    AlarmStatus,
    Cause,
    State,
    Verdict,
)
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import HOUR_S, BlockMaxima, By, levels

LONGER = 4
"""How many times the span that raises an alarm has to be calm for it to be over."""

WILD = 4.0
"""Times a limit, what a row that is learnt may score: twice as far off as what is alarmed at."""

BLAMED = 256
"""Rows over their limit that the blame of an alarm is made of: of more, those before fade."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """What a sentry remembers, for its next process.

    Attributes
    ----------
    alarms : tuple of Alarm
        The open one, and those that were over last.
    held_s : float
        For how long the open one has withheld rows.
    frozen : mapping of kind to float
        Limits of the open one, since rows are learnt in spite of it; else empty.
    blame : (channels,)
        Of the open one, in shares.
    excused : tuple of int
        Channels that were accepted as they are, until they move.
    raised, confirmed : int
        As in `AlarmStatus`.
    hours : Hours
    """

    alarms: tuple[Alarm, ...] = ()
    held_s: float = 0.0
    frozen: Mapping[By, float] = field(default_factory=dict)
    blame: Array = field(default_factory=lambda: np.zeros(0))
    excused: tuple[int, ...] = ()
    raised: int = 0
    confirmed: int = 0
    hours: Hours = field(default_factory=Hours)

    @property
    def under_another_schema(self) -> Watched:
        """What stays where scores mean something else: what is told to people."""
        hours = Hours(watched_s=self.hours.watched_s, allowed=self.hours.allowed)
        alarms = tuple(each.over(each.peaked) for each in self.alarms)
        return Watched(alarms, raised=self.raised, confirmed=self.confirmed, hours=hours)


Rows = npt.NDArray[np.bool_]


class AlarmDetector:
    """Watches the scores of one node.

    Parameters
    ----------
    node : str
    settings : AlarmSettings
    channels : tuple of str
    kept : Watched, optional
        What the process before remembered.

    Attributes
    ----------
    alarms : tuple of Alarm
        The open one first.
    loud : (n,) of bool
        Of the rows that were judged last, those of an alarm, or before it, over their limit.
    """

    def __init__(
        self,
        node: str,
        settings: AlarmSettings,
        channels: tuple[str, ...],
        kept: Watched | None = None,
    ) -> None:
        kept = kept or Watched()
        self.alarms = kept.alarms
        self._node, self._settings, self._channels = node, settings, channels
        self._alarm_limits = AlarmLimits(settings, kept.hours)
        self.loud: Rows = np.zeros(0, dtype=bool)
        self._held_s, self._frozen = kept.held_s, dict(kept.frozen)
        self._blame = np.zeros(len(channels))
        if len(kept.blame) == len(channels):
            self._blame = kept.blame
        self._excused, self._stuck = frozenset(kept.excused), tuple[int, ...]()
        self._raised, self._confirmed = kept.raised, kept.confirmed
        self._most: dict[By, float] = dict(kept.frozen)  # by which the open alarm is judged
        self._before: tuple[tuple[By, ...], Array] = (), np.zeros((0, 0))  # a longer span's scores
        self._at: float | None = None  # steady, of the newest rows

    @property
    def open(self) -> Alarm | None:
        """The alarm that is not over, if there is one."""
        return self.alarms[0] if self.alarms and self.alarms[0].is_open else None

    @property
    def withholds(self) -> bool:
        """Whether there is an alarm whose rows are not learnt."""
        alarm = self.open
        if alarm is None:
            return False
        return alarm.verdict == "rejected" or self._held_s < self._settings.max_withheld_s

    @property
    def limits(self) -> dict[By, float]:
        """What levels may come to; empty while none is believed."""
        return self._alarm_limits.limits

    @property
    def maxima(self) -> BlockMaxima:
        """What levels came to, hour by hour."""
        return self._alarm_limits.maxima

    @property
    def remembered(self) -> Watched:
        """What the next process has to know."""
        return Watched(
            self.alarms,
            self._held_s,
            dict(self._frozen),
            self._blame,
            tuple(sorted(self._excused)),
            self._raised,
            self._confirmed,
            self._alarm_limits.kept,
        )

    def state(self, *, ready: bool, paused: bool, stale: bool) -> State:
        """Return which it is in; an alarm goes before all."""
        if self.open is not None:
            return "alarm"
        if paused:
            return "paused"
        if not self.limits or not ready:
            return "learning"
        return "stale" if stale else "armed"

    def alarm_status(self, state: State, desired: int) -> AlarmStatus:
        """Return what a report says of it."""
        alarm_limits = self._alarm_limits
        return AlarmStatus(
            AlarmStatus.at(state),
            self.alarms,
            int(self.open is not None),
            alarm_limits.watched_s,
            alarm_limits.allowed,
            self._raised,
            self._confirmed,
            0.0 if self.limits else alarm_limits.armed_in_s,
            desired,
        )

    def hear(self, maxima: BlockMaxima | None) -> None:
        """Take the limits from the group's newest peaks."""
        self._alarm_limits.hear(maxima)

    # -- rows ----------------------------------------------------------------------

    def judge(
        self,
        scores: Mapping[By, Array],
        now: Now,
        *,
        ready: bool,
        settled: bool,
        stuck: bool,
        version: int,
    ) -> tuple[Rows, Rows]:
        """Take in the scores of rows, oldest first, made before these were learnt.

        Parameters
        ----------
        scores : mapping of kind to (n,)
            Comparable from row to row: those of rows with filled gaps are corrected for them.
        now : Now
        ready, settled : bool
            Whether the node's own mean is to be believed, for a moment and for a day.
        stuck : bool
            Whether a channel is: an alarm is then not over.
        version : int
            Of the model that made them.

        Returns
        -------
        alarmed, held : (n,) of bool
            Rows of an alarm; those of them that are not to be learnt.
        """
        n = len(next(iter(scores.values())))
        passed_s = self._passed(n, now)
        alarmed = held = self.loud = np.zeros(n, dtype=bool)
        if not ready:
            self._before = (), np.zeros((0, 0))
            return alarmed, held
        of, after = self._settings.of, self._settings.after
        kinds = tuple(scores)
        most = [self._limit(kind, settled=settled) for kind in kinds]
        span = self._span(kinds, scores)
        recent = span[:, -(n + of - 1) :]
        # So many have to be as high for a level to be: mostly they are not, and this is all.
        floors = [
            [min(limit, self._alarm_limits.highest(kind, n))]
            for kind, limit in zip(kinds, most, strict=True)
        ]
        raised: Array | None = None
        if ((recent > floors).sum(axis=1) >= after).any():
            raised = levels(recent, of, after)
        over = alarmed
        if raised is not None:
            over = np.asarray((raised > np.array(most)[:, None]).any(axis=0))
        if self.open is not None or over.any():
            shares = [self._alarm_limits.calm(kind) for kind in kinds]
            calm = (np.array(most) * shares)[:, None]
            high = _lately(np.asarray((levels(span, of, after) > calm).any(axis=0)), LONGER * of)
            was_open = self.open is not None
            # Without limits, as where a root begins anew, nobody can say that it is over.
            unknown = not (self.limits or self._frozen or self.alarms[0].cause == "stuck")
            high |= was_open and (stuck or unknown)
            self._most = dict(zip(kinds, most, strict=True))
            each_s = passed_s / max(n, 1)
            alarmed, held = self._walk(span[:, -n:], kinds, most, over, high, now, version, each_s)
            if raised is not None:
                # The first row of an alarm counts: rule 4 of `peaks`.
                raised[:, alarmed & np.concatenate(([was_open], alarmed[:-1]))] = -1.0
        self._before = kinds, span[:, n:]
        self._alarm_limits.count(kinds, raised, n, passed_s, settled=settled)
        return alarmed, held

    def clipped(self, scores: Mapping[By, Array], alarmed: Rows, *, settled: bool) -> Array | None:
        """Return by what to multiply rows, (n,), as they lie off the mean, before they are learnt.

        Rows of an alarm that withholds them no longer: until they are ordinary. Others: until they
        are `WILD`; the first rows of a fault are learnt before anybody knows what they are. None
        if all may stay as they are.
        """
        alarm_limits = self._alarm_limits
        known = [kind for kind in scores if alarm_limits.ordinary.get(kind, 0.0) > 0]
        if not known:
            return None
        reported = np.array([scores[kind] for kind in known])
        most = np.array([[WILD * alarm_limits.limit(kind, settled=settled)] for kind in known])
        if alarmed.any():
            ordinary = np.array([[alarm_limits.ordinary[kind]] for kind in known])
            most = np.where(alarmed, ordinary, most)
        ratios = (reported / most).max(axis=0)
        return np.asarray(1 / np.sqrt(np.maximum(1.0, ratios))) if ratios.max() > 1 else None

    def _span(self, kinds: tuple[By, ...], scores: Mapping[By, Array]) -> Array:
        """Return scores (kinds, n) with those of a longer span before them."""
        known, before = self._before
        if known != kinds:
            # Of an alarm that was open before a restart it takes rows to say that it is over.
            nothing = math.inf if self.open is not None else 0.0
            new = np.full((len(kinds), (LONGER + 1) * self._settings.of - 2), nothing)
            for kind in set(kinds) & set(known):
                new[kinds.index(kind)] = before[known.index(kind)]
            before = new
        return np.concatenate((before, [scores[kind] for kind in kinds]), axis=1)

    def _passed(self, n: int, now: Now) -> float:
        """How much time the rows stand for."""
        last, self._at = self._at, now.steady
        if self._settings.period_s:
            return n * self._settings.period_s
        # A sensor that was silent for a day did not watch for a day.
        return 0.0 if last is None else min(now.steady - last, HOUR_S)

    def _limit(self, kind: By, *, settled: bool) -> float:
        if self._frozen:
            return self._frozen.get(kind, math.inf)
        return self._alarm_limits.limit(kind, settled=settled)

    def _walk(
        self,
        scores: Array,
        kinds: tuple[By, ...],
        most: list[float],
        over: Rows,
        high: Rows,
        now: Now,
        version: int,
        each_s: float,
    ) -> tuple[Rows, Rows]:
        """Go from one change to the next, and mark what lies in an alarm, and is not learnt."""
        n, i = len(over), 0
        alarmed, held = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        limits = np.array([limit if limit > 0 else math.inf for limit in most])
        ratios = scores / limits[:, None]
        causes, ratio = ratios.argmax(axis=0), ratios.max(axis=0)
        self.loud = ratio > 1
        while i < n:
            if self.open is None:
                ahead = np.flatnonzero(over[i:])
                if not len(ahead):
                    break
                i += int(ahead[0])
                self._raise(self._time(i, n, now), kinds[causes[i]], version)
            ahead = np.flatnonzero(~high[i:])
            end = i + int(ahead[0]) if len(ahead) else n
            if end > i:
                alarmed[i:end] = True
                worst = i + int(ratio[i:end].argmax())
                self._worsen(float(ratio[worst]), kinds[causes[worst]], self._time(worst, n, now))
                still = self._still_held(end - i, each_s)
                held[i : i + still] = True
                self._held_s += each_s * (end - i)
                self._amend(withheld=self.alarms[0].withheld + still)
            if end < n:
                self.end(self._time(end, n, now))
                over[end] = False  # calm is calm
            i = end + 1 if end < n else n
        return alarmed, held

    def _still_held(self, rows: int, each_s: float) -> int:
        """Return how many of so many more rows of the open alarm are withheld."""
        if self.alarms[0].verdict == "rejected":
            return rows
        left_s = self._settings.max_withheld_s - self._held_s
        if left_s <= 0:
            return 0
        return rows if not each_s else min(rows, math.ceil(left_s / each_s))

    def _time(self, row: int, n: int, now: Now) -> float:
        return now.wall - (n - 1 - row) * self._settings.period_s

    # -- alarms --------------------------------------------------------------------

    def _amend(self, **changes: object) -> None:
        self.alarms = (replace(self.alarms[0], **changes), *self.alarms[1:])  # type: ignore[arg-type]

    def _raise(self, at: float, cause: Cause, version: int) -> None:
        numbers = [alarm.number for alarm in self.alarms]
        number = max(int(at * 1000), 1, *(each + 1 for each in numbers[:1]))
        alarm = Alarm(self._node, number, at, at, 0.0, 0.0, cause, (), version)
        self.alarms = (alarm, *self.alarms[:REMEMBERED])
        self._held_s, self._blame = 0.0, np.zeros(len(self._channels))
        # Without limits nothing was promised either.
        self._raised += bool(self.limits)

    def _worsen(self, ratio: float, cause: Cause, at: float) -> None:
        alarm = self.alarms[0]
        if ratio > alarm.worst:
            cause = alarm.cause if alarm.cause == "stuck" else cause
            self._amend(worst=ratio, cause=cause, peaked=at)

    def recall_stuck(self, channels: tuple[int, ...]) -> bool:
        """Go on with what was stuck before a restart; return whether any is not accepted."""
        self._stuck = tuple(each for each in channels if each not in self._excused)
        return bool(self._stuck)

    def find_stuck(self, channels: tuple[int, ...], now: Now, version: int) -> bool:
        """Hear which channels say the same for too long: an alarm, whatever scores say.

        Returns
        -------
        bool, whether any of them has not been accepted as it is
        """
        self._excused &= frozenset(channels)
        if self.recall_stuck(channels) and self.open is None:
            channels = self._stuck
            self._raise(now.wall, "stuck", version)
            shares = np.zeros(len(self._channels))
            shares[list(channels)] = 1 / len(channels)
            self.accuse(shares)
        return bool(self._stuck)

    def end(self, at: float) -> None:
        """The open alarm is over."""
        self.alarms = (self.alarms[0].over(at), *self.alarms[1:])
        self._frozen = {}

    def freeze(self) -> None:
        """Judge the open alarm by the limits of now for as long as it lasts."""
        if not self._frozen:
            self._frozen = {
                kind: self._alarm_limits.limit(kind, settled=True) for kind in self.limits
            }

    def accuse(self, shares: Array, rows: int = 1) -> None:
        """Take in which channels so many loud rows are odd by: (channels,), sums to 1."""
        self._blame = max(0.0, 1 - rows / BLAMED) * self._blame + rows * shares
        whole = float(self._blame.sum())
        if self.open is not None and whole > 0:
            first = np.argsort(-self._blame, kind="stable")[:TOP]
            top = tuple((self._channels[j], float(self._blame[j]) / whole) for j in first.tolist())
            self._amend(top=tuple(each for each in top if each[1] > 0))

    def decide(self, number: int, *, accept: bool, at: float) -> bool:
        """Hear what a person makes of an alarm; return whether that was news."""
        verdict: Verdict = "accepted" if accept else "rejected"
        for i, alarm in enumerate(self.alarms):
            if alarm.number == number and alarm.verdict != verdict:
                self._confirmed += (verdict == "rejected") - (alarm.verdict == "rejected")
                judged = replace(alarm, verdict=verdict)
                self.alarms = (*self.alarms[:i], judged, *self.alarms[i + 1 :])
                if judged.is_open and accept:
                    # Whatever it was raised by: all of it is to be normal now.
                    self._alarm_limits.spare(judged.worst, self._most)
                    self._excused |= frozenset(self._stuck)
                    self.end(at)
                return True
        return False


def _lately(high: Rows, span: int) -> npt.NDArray[np.bool_]:
    """Return whether any of the last `span` was high, for all but the first span - 1."""
    rows = np.arange(len(high))
    last = np.maximum.accumulate(np.where(high, rows, -span))
    return np.asarray(rows - last < span)[span - 1 :]
