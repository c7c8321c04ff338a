"""detect(): when scores become an alarm, when it ends, and which rows it withholds from learning.

    detector, decision = detect(detector, block, scores, situation)

An `AlarmDetector` is a value: everything that one node remembers for detection. The rules are in
docs/alarms-explained.md, the reasons in docs/decisions/0017 and 0035. In symbols:

1. The k-of-m statistic of a row is the `after`-th largest of the last `of` scores of one kind. An
   alarm is raised when it is over the limit L of its kind (`limits`). The moving average of
   distances is compared as it is (`RecentScores`).
2. The alarm ends when for `LONGER` times `of` rows no statistic was above c = (L + M) / 2,
   where M is the median of the maxima of the group's blocks: hysteresis.
3. Rows are learnt clipped: one at a distance d from the mean with a score s above `WILD` limits
   counts as if it lay at d sqrt(WILD L / s), for SPE (squared prediction error) and T2 (Hotelling's
   T-squared) grow as the square of d. The first rows of a fault are learnt before it is detected.
4. A restart restores the detector: an open alarm is not raised again.

The k-of-m rule is a run rule of control charts: Western Electric, Statistical Quality Control
Handbook (1956). Clipping is Huber's: Annals of Mathematical Statistics 35 (1964).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarms.blocks import InAlarm, is_believed
from submerge.client.alarms.detector import (
    NOT_CLOSE,
    AlarmDetector,
    Closeness,
    RecentScores,
    SilentChannels,
    Situation,
    row_statistics,
    rows_needed,
)
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import AlarmLog, Evidence, devices_of, last_errors
from submerge.judge.decision import Decision, Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from submerge.stats.departures import TELLS, Departures
from submerge.stats.duty import DutyCycles
from submerge.stats.smoothing import newest_scores
from submerge.stats.statistic import STATISTICS, By, averaged

LONGER = 4
"""An alarm ends after so many times `of` rows below the halfway point."""

WILD = 4.0
"""Largest score of a row that is learnt, over its limit: twice as far off as a row at the limit."""


def detect(
    detector: AlarmDetector,
    block: Block,
    scores: RowScores,
    situation: Situation,
    whole: tuple[Block, RowScores] | None = None,
) -> tuple[AlarmDetector, Decision]:
    """Take in the scores of a block, made before its rows were learnt; say what is an alarm.

    whole : The block with channels that are set aside. These may be stuck; of none is it usual.
    """
    n = len(block)
    if not situation.ready:
        # Scores about a mean that is not known yet mean nothing.
        detector = _freeze(replace(detector, recent=RecentScores(), errors=(), closeness=NOT_CLOSE))
        decision = Decision.learn(n)
        return detector, decision.withholding(True) if situation.paused else decision
    detector = detector.with_own_limits(situation.now.wall)
    detector, decision = watch(detector, block, scores, situation)
    if scores.expected is not None:
        normal = ~decision.alarmed
        if block.beyond is not None:
            normal &= ~block.beyond
        if not situation.settled or situation.paused:
            normal = np.zeros(n, dtype=bool)
        passed_s = block.time.seen_s(n)
        channels = detector.channels.after(block, scores, normal, passed_s, decision.factors, whole)
        block, scores = whole or (block, scores)
        detector = _find_stuck(replace(detector, channels=channels), block, scores, situation)
    return _freeze(detector), decision.withholding(situation.paused)


def watch(
    detector: AlarmDetector, block: Block, scores: RowScores, situation: Situation
) -> tuple[AlarmDetector, Decision]:
    """Compare the scores of a block with limits alone: a part of `detect`."""
    limit = partial(detector.limit, settled=situation.settled)
    even = detector.recent.watched(scores.even, limit)
    if not situation.settled:
        even.pop("channel", None)
    detector, alarmed, held = _watch(detector, even, block, scores, situation)
    factors = _clip(detector, _own(even, scores), alarmed, settled=situation.settled)
    return detector, Decision(alarmed, held, factors)


def hear(
    detector: AlarmDetector, rows: Array, passed_s: float, wall: float, version: int
) -> AlarmDetector:
    """Take rows as they come, (n, channels), NaN for gaps: what channels do, each for itself."""
    (n, channels), log = rows.shape, detector.log
    silent = detector.silences or SilentChannels.none(channels)
    silences = silent.after(np.isnan(rows), passed_s / n)
    duty, often = detector.duty or DutyCycles.none(channels), detector.often
    if detector.scaling is not None:
        rows = (rows - detector.scaling.offset[:channels]) / detector.scaling.scale[:channels]
    cycles = duty.after(rows, passed_s / n, often)
    fell_silent, stays = silences.long & ~silent.long, cycles.too_long(often)
    came_to_stay = stays & ~duty.too_long(often)
    before = detector.departures or Departures.none(channels)
    departures = before.after(rows, passed_s / n)
    # Of the rows before alarms by scores are known: those of this block go first.
    jumped, each_s = before.far & departures.far, passed_s / n
    for j in np.flatnonzero(jumped).tolist():
        since = wall - (abs(float(departures.out[j])) + TELLS) * each_s
        jumped[j] = not log.names(log.channels[j], since)
    begins = fell_silent | came_to_stay | jumped
    if any(alarm.is_open for alarm in log.beside) or begins.any():
        log = log.hear("silent", silences.lasting > 0, fell_silent, wall, version)
        together = cycles.together(came_to_stay)
        log = log.hear("duty", stays | together, together, wall, version)
        early = not detector.limits.promised
        away = np.abs(departures.out)
        for since in sorted({0.0, *away[jumped].tolist()}):  # what began together is one alarm
            began = jumped & (away == since)
            log = log.hear("jump", away > 0, began, wall, version, early=early)
        log = log.showing("duty", cycles.shown, wall, detector.scaling)
        log = log.showing("jump", departures.shown, wall, detector.scaling)
    return replace(detector, log=log, silences=silences, duty=cycles, departures=departures)


def _watch(
    detector: AlarmDetector,
    even: Mapping[By, Array],
    block: Block,
    scores: RowScores,
    situation: Situation,
) -> tuple[AlarmDetector, Mask, Mask]:
    """Compare statistics with their limits; return the rows of alarms, and those withheld."""
    settings, kinds, n = detector.settings, tuple(even), len(block)
    of, passed_s = settings.of, block.time.seen_s(n)
    most = [detector.limit(kind, settled=situation.settled) for kind in kinds]
    limits = detector.limits
    # Limits of files never rise, so an alarm by them has as long as one by promised limits.
    early = limits.provisional_s if detector.counts_rows else 0.0
    log, was_open = detector.log, detector.log.open is not None
    if not was_open or log.provisional_s == math.inf:
        # The patience with an alarm is that of its beginning.
        log = replace(log, provisional_s=early or math.inf)
    # After a restart, an open alarm needs that many rows before it can end.
    unknown = math.inf if was_open else 0.0
    span = detector.recent.span(even, (LONGER + 1) * of - 2, unknown)
    recent = span[:, -(n + of - 1) :]
    raised, close = _statistics(detector, kinds, recent, most, situation.now)
    alarmed = held = over = np.zeros(n, dtype=bool)
    if raised is not None:
        over = np.asarray((raised > np.array(most)[:, None]).any(axis=0))
    judged_by, predicted = detector.judged_by, scores.expected is not None
    if was_open or over.any():
        high = _high(detector, kinds, most, span, predicted=predicted)
        judged_by = dict(zip(kinds, most, strict=True))
        seen = _exceedance(recent, kinds, most, over, high, situation.now, settings)
        evidence = Evidence.of(detector.errors, block, scores, detector.scaling)
        log, alarmed, held = follow(
            *(log, seen, evidence, limits), version=situation.version, each_s=passed_s / n
        )
    alarm = InAlarm.of(
        _uncounted(detector, alarmed, held, _own(even, scores), raised, most),
        was_open=was_open,
        believed=is_believed(log, limits, detector.hours.allowed),
    )
    sizes = scores.even.get("distance", next(iter(even.values())))
    hours, highest = detector.counted(even, raised, sizes, alarm, situation, passed_s)
    # A quiet alarm counts as high as its limit: one that is too low grows alarm by alarm.
    causes = log.quiet_causes(detector.log) if detector.counts_rows else ()
    highest = highest.at_least({by: most for by, most in limits.known.items() if by in causes})
    detector = replace(
        detector,
        log=log,
        hours=hours,
        highest=highest,
        judged_by=judged_by,
        recent=RecentScores(kinds, span[:, n:]),
        errors=last_errors(detector.errors, scores.errors, of - 1) if predicted else (),
        closeness=close,
    )
    return detector, alarmed, held


def _own(even: Mapping[By, Array], scores: RowScores) -> dict[By, Array]:
    """Return the rows' own scores of kinds: rows after them have them in their averages."""
    return {kind: scores.even[STATISTICS[kind].of] for kind in even}


def _uncounted(
    detector: AlarmDetector,
    alarmed: Mask,
    held: Mask,
    own: Mapping[By, Array],
    raised: Array | None,
    most: list[float],
) -> Mask:
    """Return which of the rows in alarm do not count as normal, (n,)."""
    limits, settings = detector.limits, detector.settings
    if not (detector.counts_rows and limits.provisional_s) or detector.log.serious is not None:
        return alarmed
    # Rows that are no longer withheld count, for limits may be too low; of a client none that is so
    # far off that it is clipped.
    if not settings.max_withheld_s:
        return held
    wild = WILD * np.array(most)[:, None]
    far = (np.array(list(own.values())) > wild).any(axis=0)
    if raised is not None:
        far |= (raised > wild).any(axis=0)
    return held | (alarmed & far)


def _statistics(
    detector: AlarmDetector, kinds: tuple[By, ...], recent: Array, most: list[float], now: Now
) -> tuple[Array | None, Closeness]:
    """Return the statistics (kinds, n), None if none counts, and how close they came to limits."""
    of, after = detector.settings.of, detector.settings.after
    n, close = recent.shape[1] - of + 1, detector.closeness.at(now.wall)
    least = [
        min(limit, detector.least_news(kind, n)) for kind, limit in zip(kinds, most, strict=True)
    ]
    lowest = [[min(pair)] for pair in zip(least, close.bounds(most), strict=True)]
    # So many scores have to be high for the statistic to be: mostly they are not, and that is all.
    if not ((recent > lowest).sum(axis=1) >= rows_needed(kinds, after)).any():
        return None, close.after(most, None)
    found = row_statistics(kinds, recent, of, after)
    is_news = bool((found > np.array(least)[:, None]).any())
    return found if is_news else None, close.after(most, found)


def _high(
    detector: AlarmDetector,
    kinds: tuple[By, ...],
    most: list[float],
    span: Array,
    *,
    predicted: bool,
) -> Mask:
    """Return at which rows an open alarm stays open, (n,); `span`: scores, earlier ones first."""
    log, limits, settings = detector.log, detector.limits, detector.settings
    calm = np.array(most)
    if log.open is None or log.withholds or log.serious is not None:
        calm *= [limits.calm(kind) for kind in kinds]
    statistics = row_statistics(kinds, span, settings.of, settings.after)
    high = _recently(np.asarray((statistics > calm[:, None]).any(axis=0)), LONGER * settings.of)
    if log.open is None:
        return high
    # Without limits, as when a root begins again, it is not known whether the alarm ends.
    unsure = not (limits.known or log.frozen or log.alarms[0].cause == "stuck")
    return high | (unsure or (predicted and bool(detector.stuck)))


def _exceedance(
    scores: Array,
    kinds: tuple[By, ...],
    most: list[float],
    over: Mask,
    high: Mask,
    now: Now,
    settings: AlarmSettings,
) -> Exceedance:
    """Return scores (kinds, of - 1 + n) divided by their limits, with the time of each row."""
    n = len(over)
    limits = np.array([[limit if limit > 0 else math.inf] for limit in most])
    # Nothing is over an infinite limit, also of rows from before a restart: these are infinite.
    ratios = np.divide(scores, limits, out=np.zeros_like(scores), where=limits < math.inf)
    causes = tuple(kinds[i] for i in ratios[:, -n:].argmax(axis=0).tolist())
    times = np.asarray(now.wall - np.arange(n - 1, -1, -1) * settings.period_s, dtype=np.float64)
    own = ratios.copy()
    for kind in averaged(kinds):
        # A row is in the average of those after it, which are not to blame for it.
        by = kinds.index(kind)
        own[by] = newest_scores(ratios[by])
    return Exceedance(over, high, ratios.max(axis=0), causes, times, settings.of, own.max(axis=0))


def _recently(high: Mask, span: int) -> Mask:
    """Return whether any of the last `span` rows was high, for all but the first span - 1."""
    rows = np.arange(len(high))
    last = np.maximum.accumulate(np.where(high, rows, -span))
    return np.asarray(rows - last < span)[span - 1 :]


def _find_stuck(
    detector: AlarmDetector, block: Block, scores: RowScores, situation: Situation
) -> AlarmDetector:
    """Raise an alarm if a channel has become stuck; a channel that moved is no longer excused."""
    log = detector.log
    if not log.excused and not detector.channels.habits.stuck.any():
        return detector
    log = replace(log, excused=log.excused & frozenset(detector.channels.stuck_detector.stuck))
    detector = replace(detector, log=log)
    stuck = detector.stuck
    if stuck:
        # A trail shows it as just at its limit, for there is no statistic that has one.
        detector = replace(detector, closeness=detector.closeness.at_least(1.0))
    if not stuck or log.serious is not None:
        return detector
    if log.open is not None:
        log = log.end(situation.now.wall)
    log = log.begin(situation.now.wall, "stuck", situation.version, detector.limits)
    shares = np.zeros(len(log.channels))
    shares[list(stuck)] = 1 / len(stuck)
    log = log.accuse(shares, 1)
    log = log.of_sensor() if len(stuck) == 1 else log
    evidence = Evidence.of((), block, scores, detector.scaling)
    if evidence is not None and len(block):
        log = log.peaking(evidence.at(len(block) - 1, 0.0))
    return replace(detector, log=log)


def _clip(
    detector: AlarmDetector, even: Mapping[By, Array], alarmed: Mask, *, settled: bool
) -> Array | None:
    """Return factors of the rows' distances to the mean, (n,); None if none is clipped."""
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
    if log.serious is None or log.withholds or log.frozen:
        return detector
    spared = detector.hours.spared
    frozen = {
        kind: detector.limits.limit(kind, spared, settled=True) for kind in detector.limits.known
    }
    return replace(detector, log=replace(log, frozen=frozen))


# An alarm may begin and end within one block, and so may several.


FAR = 0.5
"""Least score of a row to blame, over the highest of those that raised a moving average."""

BLAME_ROWS = 16
"""The last rows of an alarm in a block, for which channels to blame are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Exceedance:
    """The scores of rows over the limits of the moment: (n,), `ratio` and `own` (of - 1 + n,)."""

    over: Mask  # an alarm begins
    high: Mask  # an open one stays open
    ratio: Array  # those of the rows before first
    causes: tuple[By, ...]  # of the largest ratios
    times: npt.NDArray[np.float64]  # the rows' wall times
    of: int
    own: Array  # of the rows' own scores, where `ratio` has their moving average

    def highest(self, first: int, last: int) -> tuple[int, float]:
        """Return the first of some rows with the largest ratio, and that ratio."""
        row = first + int(self.ratio[self.of - 1 :][first:last].argmax())
        return row, float(self.ratio[row + self.of - 1])

    def above(self, first: int, last: int) -> npt.NDArray[np.intp]:
        """Return the rows to blame that are over a limit; -1 is the last row before the block."""
        some = slice(first + self.of - 1, last + self.of - 1)
        return np.flatnonzero((self.ratio[some] > 1) & (self.own[some] > 1)) + first

    def raising(self, row: int) -> npt.NDArray[np.intp]:
        """Return the rows that an alarm is raised by which begins at a row."""
        first = row - self.of + 1
        if not STATISTICS[self.causes[row]].averaged:
            return self.above(first, row + 1)
        # Each of the rows in the mean may be below its limit: those that are far off count.
        own = self.own[first + self.of - 1 : row + self.of]
        return np.flatnonzero(own >= FAR * own.max()) + first


def follow(
    log: AlarmLog,
    seen: Exceedance,
    evidence: Evidence | None,
    limits: AlarmLimits,
    *,
    version: int,
    each_s: float,
) -> tuple[AlarmLog, Mask, Mask]:
    """Take rows into the log; return it, the rows of alarms, and those that are withheld: (n,)."""
    n, i, over = len(seen.over), 0, seen.over.copy()
    alarmed, held = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    while i < n:
        blamed = i
        if log.open is None:
            ahead = np.flatnonzero(over[i:])
            if not len(ahead):
                break
            i += int(ahead[0])
            at, cause = float(seen.times[i]), seen.causes[i]
            log = log.begin(at, cause, version, limits)
            log = _blame(log, evidence, seen.raising(i), limits)
            blamed = i + 1
        ahead = np.flatnonzero(~seen.high[i:])
        end = i + int(ahead[0]) if len(ahead) else n
        if end > i:
            alarmed[i:end] = True
            row, ratio = seen.highest(i, end)
            log = log.worsen(ratio, seen.causes[row], float(seen.times[row]))
            # Rows below the limit again belong to the alarm, and no channel is to blame for them.
            log = _blame(log, evidence, seen.above(blamed, end), limits)
            log = _show(log, evidence, row, ratio)
            log, still = log.hold(end - i, each_s)
            held[i : i + still] = True
        if end < n:
            log = log.end(float(seen.times[end]))
            over[end] = False  # an alarm that ends here does not begin here
        i = end + 1 if end < n else n
    return log, alarmed, held


def _blame(
    log: AlarmLog, evidence: Evidence | None, rows: npt.NDArray[np.intp], limits: AlarmLimits
) -> AlarmLog:
    if evidence is None or not len(rows):
        return log
    rows, n = rows[-BLAME_ROWS:], len(rows)
    log, left = log.accuse(evidence.shares(rows), n), evidence.left(rows, devices_of(log.channels))
    if left is None:
        return log
    return log.remaining(left, limits.ordinary.get("ewma", 0.0), evidence.scores.pairs)


def _show(log: AlarmLog, evidence: Evidence | None, row: int, ratio: float) -> AlarmLog:
    # Limits fell where an alarm is raised by rows before the block: of those only errors are
    # known, and the block's own may be as they were.
    if evidence is None or ratio <= max(1.0, log.peak.ratio):
        return log
    return log.peaking(evidence.at(row, ratio))
