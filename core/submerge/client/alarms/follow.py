"""follow(): the rows of a block go into the log of alarms, from one beginning or end to the next.

An alarm may begin and end within one block, and so may several. Each is blamed on channels by the
rows that raised it, also those of the block before, and then by its rows that are over a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarms.blame import Evidence
from submerge.client.alarms.log import AlarmLog
from submerge.judge.decision import Mask
from submerge.stats.block_maxima import By

BLAME_ROWS = 16
"""The last rows of an alarm in a block, for which channels to blame are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Exceedance:
    """The scores of rows over the limits of the moment.

    over : (n,) of bool. Rows at which an alarm begins, if none is open.
    high : (n,) of bool. Rows at which an open alarm stays open.
    ratio : (of - 1 + n,). The largest of each row's scores, divided by its limit; also of the rows
        before.
    causes : Which statistic that is.
    times : (n,). Wall time of each row.
    of : Rows that an alarm is raised by.
    """

    over: Mask
    high: Mask
    ratio: Array
    causes: tuple[By, ...]
    times: npt.NDArray[np.float64]
    of: int

    def highest(self, first: int, last: int) -> tuple[int, float]:
        """Return the first of some rows with the largest ratio, and that ratio."""
        row = first + int(self.ratio[self.of - 1 :][first:last].argmax())
        return row, float(self.ratio[row + self.of - 1])

    def above(self, first: int, last: int) -> npt.NDArray[np.intp]:
        """Return the rows that are over a limit, of some; -1 is the last row before the block."""
        before = self.of - 1
        return np.flatnonzero(self.ratio[first + before : last + before] > 1) + first

    def raising(self, row: int) -> npt.NDArray[np.intp]:
        """Return the rows that an alarm is raised by which begins at a row."""
        first = row - self.of + 1
        if self.causes[row] != "smoothed":
            return self.above(first, row + 1)
        # Each of the rows in the mean may be below its limit.
        return np.arange(first, row + 1)


def follow(
    log: AlarmLog,
    seen: Exceedance,
    evidence: Evidence | None,
    *,
    version: int,
    each_s: float,
    counted: bool,
    provisional: bool = False,
) -> tuple[AlarmLog, Mask, Mask]:
    """Take rows into the log: from one beginning or end of an alarm to the next.

    evidence : None where nothing predicts channels: then no channel is to blame.
    version : Of the model that made the scores.
    each_s : The time that a row stands for.
    counted, provisional : As in `AlarmLog.begin`.

    Returns
    -------
    log : AlarmLog
    alarmed, held : (n,) of bool
        Rows of an alarm; those of them that are withheld.
    """
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
            log = log.begin(at, cause, version, counted=counted, provisional=provisional)
            log = _blame(log, evidence, seen.raising(i))
            blamed = i + 1
        ahead = np.flatnonzero(~seen.high[i:])
        end = i + int(ahead[0]) if len(ahead) else n
        if end > i:
            alarmed[i:end] = True
            row, ratio = seen.highest(i, end)
            log = log.worsen(ratio, seen.causes[row], float(seen.times[row]))
            # Rows below the limit again belong to the alarm, and no channel is to blame for them.
            log = _blame(log, evidence, seen.above(blamed, end))
            log = _show(log, evidence, row, ratio)
            log, still = log.hold(end - i, each_s)
            held[i : i + still] = True
        if end < n:
            log = log.end(float(seen.times[end]))
            over[end] = False  # an alarm that ends here does not begin here
        i = end + 1 if end < n else n
    return log, alarmed, held


def _blame(log: AlarmLog, evidence: Evidence | None, rows: npt.NDArray[np.intp]) -> AlarmLog:
    if evidence is None or not len(rows):
        return log
    return log.accuse(evidence.shares(rows[-BLAME_ROWS:]), len(rows))


def _show(log: AlarmLog, evidence: Evidence | None, row: int, ratio: float) -> AlarmLog:
    # Limits fell where an alarm is raised by rows before the block: of those only errors are
    # known, and the block's own may be as they were.
    if evidence is None or ratio <= max(1.0, log.peak.ratio):
        return log
    return log.peaking(evidence.at(row, ratio))
