"""detect(): when scores become an alarm, when it ends, and which rows it withholds from learning.

    detector, decision = detect(detector, block, scores, situation)

An `AlarmDetector` is a value: everything that one node remembers for detection. Nothing changes
it; the same detector, block and scores give the same decision.

1. The k-of-m statistic of a row is the `after`-th largest of the last `of` scores of one kind. An
   alarm is raised when it is over the limit L of its kind (`alarm_limits`).
2. The alarm ends when for `LONGER` times `of` rows no k-of-m statistic was above c = (L + M) / 2,
   where M is the median of the maxima of the group's hours. This hysteresis keeps an alarm from
   flickering, and from staying open where normal hours come close to the limit.
3. Its rows are withheld from learning, so that a fault does not become normal. After
   `max_withheld_s` they are learnt, clipped to the distance of normal rows, unless a person rejects
   the alarm (a fault, never learnt) or accepts it (normal from now on: the alarm ends). From that
   moment on its limits do not change.
4. Other rows are learnt, clipped: a row at a distance d from the mean with a score s above `WILD`
   limits counts as if it lay at d sqrt(WILD L / s), for SPE (squared prediction error) and T2
   (Hotelling's T-squared) grow as the square of d. The first rows of a fault are learnt before it
   can be detected.
5. A channel that is stuck is an alarm, whatever the scores are.
6. A restart restores the detector: an open alarm is not raised again.

References
----------
The k-of-m rule is a run rule of control charts: Western Electric, Statistical Quality Control
Handbook (1956). Clipping to a multiple of the limit is Huber's: Robust estimation of a location
parameter, Annals of Mathematical Statistics 35 (1964). Why it is this rule, and these limits:
docs/decisions/0017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from submerge._linalg import Array
from submerge.client.alarm_log import Exceedance, follow
from submerge.client.detector import AlarmDetector, RecentScores, Situation
from submerge.judge.decision import Decision, Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.protocol.machine import Now
from submerge.stats.block_maxima import By, statistics

LONGER = 4
"""An alarm ends after so many times `of` rows below the halfway point."""

WILD = 4.0
"""Largest score of a row that is learnt, over its limit: twice as far off as a row at the limit."""

BLAME_ROWS = 16
"""The last rows of a block, for which channels to blame are computed."""


def detect(
    detector: AlarmDetector, block: Block, scores: RowScores, situation: Situation
) -> tuple[AlarmDetector, Decision]:
    """Take in the scores of a block, made before its rows were learnt, oldest first.

    Parameters
    ----------
    detector : AlarmDetector
    block : Block
    scores : RowScores
    situation : Situation

    Returns
    -------
    AlarmDetector
        After the block.
    Decision
        Which rows belong to an alarm, which are not learnt, and how the others are.
    """
    n = len(block)
    if not situation.ready:
        # Scores about a mean that is not known yet mean nothing.
        detector = _freeze(replace(detector, recent=RecentScores()))
        decision = Decision.learn(n)
        return detector, decision.withholding_all() if situation.paused else decision
    even = dict(scores.even)
    if not situation.settled:
        even.pop("channel", None)
    predicted = scores.expected is not None
    detector, alarmed, held, above = _watch(detector, even, block, situation, stuck=predicted)
    if predicted:
        if above.any():
            shares = scores.blame(np.flatnonzero(above)[-BLAME_ROWS:]).mean(axis=0)
            log = detector.log.accuse(shares, int(np.count_nonzero(above)))
            detector = replace(detector, log=log)
        normal = ~alarmed
        if not situation.settled or situation.paused:
            normal = np.zeros(n, dtype=bool)
        channels = detector.channels.after(block, scores, normal, block.time.seen_s(n))
        detector = _find_stuck(replace(detector, channels=channels), situation)
    factors = _clip(detector, even, alarmed, settled=situation.settled)
    if situation.paused:
        held = np.ones(n, dtype=bool)
    return _freeze(detector), Decision(alarmed, held, factors)


def _watch(
    detector: AlarmDetector,
    even: Mapping[By, Array],
    block: Block,
    situation: Situation,
    *,
    stuck: bool,
) -> tuple[AlarmDetector, Mask, Mask, Mask]:
    """Compare statistics with their limits; return rows of alarms, those withheld, those over one.

    stuck : whether a stuck channel keeps an alarm open
    """
    settings, kinds, n = detector.settings, tuple(even), len(block)
    of, after, passed_s = settings.of, settings.after, block.time.seen_s(n)
    most = [detector.limit(kind, settled=situation.settled) for kind in kinds]
    span = _span(detector, even)
    recent = span[:, -(n + of - 1) :]
    # `after` scores have to be high for the statistic to be: mostly they are not, and that is all.
    least = [
        [min(limit, detector.hours.least_news(kind, n, settings))]
        for kind, limit in zip(kinds, most, strict=True)
    ]
    raised: Array | None = None
    if ((recent > least).sum(axis=1) >= after).any():
        raised = statistics(recent, of, after)
    alarmed = held = above = over = np.zeros(n, dtype=bool)
    if raised is not None:
        over = np.asarray((raised > np.array(most)[:, None]).any(axis=0))
    was_open, log, limits = detector.log.open is not None, detector.log, detector.limits
    judged_by = detector.judged_by
    if was_open or over.any():
        calm = np.array(
            [limit * limits.calm(kind) for kind, limit in zip(kinds, most, strict=True)]
        )
        high = np.asarray((statistics(span, of, after) > calm[:, None]).any(axis=0))
        high = _recently(high, LONGER * of)
        # Without limits, as when a root begins again, it is not known whether the alarm ends.
        unknown = was_open and not (limits.known or log.frozen or log.alarms[0].cause == "stuck")
        high |= unknown or (was_open and stuck and bool(detector.stuck))
        judged_by = dict(zip(kinds, most, strict=True))
        seen = _exceedance(span[:, -n:], kinds, most, over, high, situation.now, settings.period_s)
        log, alarmed, held = follow(
            log, seen, version=situation.version, each_s=passed_s / n, counted=bool(limits.known)
        )
        # Rows below the limit again belong to the alarm, and no channel is to blame for them.
        above = alarmed & (seen.ratio > 1)
        if raised is not None:
            # The first row of an alarm counts: rule 4 of `block_maxima`.
            raised[:, alarmed & np.concatenate(([was_open], alarmed[:-1]))] = -1.0
    counted = raised if situation.settled else None
    hours = detector.hours.after(kinds, counted, n, passed_s, limits, settings)
    detector = replace(
        detector, log=log, hours=hours, judged_by=judged_by, recent=RecentScores(kinds, span[:, n:])
    )
    return detector, alarmed, held, above


def _span(detector: AlarmDetector, even: Mapping[By, Array]) -> Array:
    """Return scores (kinds, n) with those of earlier rows before them."""
    kinds, (known, before) = tuple(even), detector.recent
    if known != kinds:
        # After a restart, an open alarm needs that many rows before it can end.
        nothing = math.inf if detector.log.open is not None else 0.0
        new = np.full((len(kinds), (LONGER + 1) * detector.settings.of - 2), nothing)
        for kind in set(kinds) & set(known):
            new[kinds.index(kind)] = before[known.index(kind)]
        before = new
    return np.concatenate((before, list(even.values())), axis=1)


def _exceedance(
    scores: Array,
    kinds: tuple[By, ...],
    most: list[float],
    over: Mask,
    high: Mask,
    now: Now,
    period_s: float,
) -> Exceedance:
    """Return scores (kinds, n) divided by their limits, with the time of each row."""
    n = scores.shape[1]
    limits = np.array([limit if limit > 0 else math.inf for limit in most])
    ratios = scores / limits[:, None]
    causes = tuple(kinds[i] for i in ratios.argmax(axis=0).tolist())
    times = now.wall - np.arange(n - 1, -1, -1) * period_s
    return Exceedance(over, high, ratios.max(axis=0), causes, times)


def _recently(high: Mask, span: int) -> Mask:
    """Return whether any of the last `span` rows was high, for all but the first span - 1."""
    rows = np.arange(len(high))
    last = np.maximum.accumulate(np.where(high, rows, -span))
    return np.asarray(rows - last < span)[span - 1 :]


def _find_stuck(detector: AlarmDetector, situation: Situation) -> AlarmDetector:
    """Raise an alarm if a channel has become stuck; a channel that moved is no longer excused."""
    log = detector.log
    log = replace(log, excused=log.excused & frozenset(detector.channels.stuck_detector.stuck))
    detector = replace(detector, log=log)
    stuck = detector.stuck
    if not stuck or log.open is not None:
        return detector
    counted = bool(detector.limits.known)
    log = log.begin(situation.now.wall, "stuck", situation.version, counted=counted)
    shares = np.zeros(len(log.channels))
    shares[list(stuck)] = 1 / len(stuck)
    return replace(detector, log=log.accuse(shares, 1))


def _clip(
    detector: AlarmDetector, even: Mapping[By, Array], alarmed: Mask, *, settled: bool
) -> Array | None:
    """Return factors of the rows' distances to the mean, (n,); None if none is clipped.

    Rows of an alarm that are learnt are clipped to the median hour, others to `WILD` limits.
    """
    limits, spared = detector.limits, detector.hours.spared
    known = [kind for kind in even if limits.ordinary.get(kind, 0.0) > 0]
    if not known:
        return None
    scores = np.array([even[kind] for kind in known])
    most = np.array([[WILD * limits.limit(kind, spared, settled=settled)] for kind in known])
    if alarmed.any():
        most = np.where(alarmed, np.array([[limits.ordinary[kind]] for kind in known]), most)
    ratios = (scores / most).max(axis=0)
    return np.asarray(1 / np.sqrt(np.maximum(1.0, ratios))) if ratios.max() > 1 else None


def _freeze(detector: AlarmDetector) -> AlarmDetector:
    """Freeze the limits of the open alarm once its rows are learnt, for learning would end it."""
    log = detector.log
    if log.open is None or log.withholds or log.frozen:
        return detector
    spared = detector.hours.spared
    frozen = {
        kind: detector.limits.limit(kind, spared, settled=True) for kind in detector.limits.known
    }
    return replace(detector, log=replace(log, frozen=frozen))
