"""Departures: channels that read further from where they were than ever before."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.stats.duty import Flags, Shown

# A channel's mean follows it within `MEMORY` readings. Of n that are worth n / `ALIKE`, one of all
# channels is above r (1 + log(2 channels `FURTHER`) / log(n / `ALIKE`)) once in `FURTHER` n, if the
# largest normal departure is r: an exponential tail, as in `client.alarms.highest`. What departs is
# in no mean and no record until it is normal: after an hour, or an eighth of all time if that is
# more, up to a day; or once it was told `TOLD` times.

MEMORY, LEAST, ALIKE, FURTHER = 360.0, 180.0, 19.0, 3.0
STEPS = 1.5  # scales that a channel may depart by, whatever it did before
TELLS = 4  # readings of a departure before it is told: alarms by scores go first
TOLD, NORMAL_S, MOST_S, SHARE = 3, 3600.0, 86_400.0, 1 / 8
BACK = 0.75  # share of its bound below which a departure is over
CHUNK = 45  # rows that are compared with one mean


class Departures(NamedTuple):
    """What is normal of each channel, and how far it is from that: arrays (channels,)."""

    mean: Array
    rows: Array  # readings in it, which gaps take away again
    known: Array  # readings so far
    up: Array  # largest normal departure, above the mean and below
    down: Array
    out: Array  # readings of the current departure, negative below; 0 without one
    off: Array  # the newest reading, from the mean
    out_s: Array  # time of all departures that are not normal yet
    far_up: Array  # the largest of these
    far_down: Array
    told: Array  # how many of them were told

    @classmethod
    def none(cls, channels: int) -> Departures:
        """Return the state before the first row."""
        return cls(*[np.zeros(channels)] * 11)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """(channels,) each, above and below; infinite while too little is known."""
        n = len(self.mean)
        ready = (self.rows >= LEAST) & (self.known >= LEAST)
        worth = np.log(np.maximum(self.known / ALIKE, 3.0))
        times = np.where(ready, 1 + math.log(2 * n * FURTHER) / worth, math.inf)
        return times * np.maximum(self.up, STEPS), times * np.maximum(self.down, STEPS)

    @property
    def far(self) -> Flags:
        """Which channels are away for long enough to be told, (channels,)."""
        return np.asarray(np.abs(self.out) >= TELLS)

    def shown(self, j: int) -> Shown:
        """Return how far a channel is, over its bound, and where it was."""
        mean, off, bounds = float(self.mean[j]), float(self.off[j]), self.bounds
        bound = float(bounds[0 if off > 0 else 1][j])
        return Shown(0.0, abs(off) / bound, mean + off, mean)

    def normal(self, channels: Flags) -> Departures:
        """Return it where departures of these channels are normal from now on."""
        if not channels.any():
            return self
        up = np.where(channels, np.maximum(self.up, self.far_up), self.up)
        down = np.where(channels, np.maximum(self.down, self.far_down), self.down)
        none = (np.where(channels, 0.0, each) for each in (self.out, self.off, *self[7:]))
        return Departures(*self[:3], up, down, *none)

    def after(self, rows: Array, each_s: float) -> Departures:
        """Return it after scaled rows (n, channels), NaN for gaps, of so many seconds each."""
        now = self
        for first in range(0, len(rows), CHUNK):
            part = np.clip(rows[first : first + CHUNK], -1e12, 1e12)
            up, down = now.bounds
            off = np.nan_to_num(part - now.mean)
            if now.out.any() or ((off > up) | (-off > down)).any():
                for row in part:
                    now = now._after_row(row, each_s)
            else:
                now = now._calm(part)
        return now

    def _after_row(self, row: Array, each_s: float) -> Departures:
        here, sign = ~np.isnan(row), np.sign(self.out)
        off = np.where(here, row - self.mean, self.off)
        (up, down), to = self.bounds, np.sign(off)
        bound = np.where(to > 0, up, down) * np.where(to == sign, BACK, 1.0)
        bound = np.maximum(bound, np.where(to > 0, self.up, self.down))
        side = np.where(here, np.where(np.abs(off) > bound, to, 0.0), sign)
        ends = (sign != 0) & (side != sign)
        now = self._replace(
            out=np.where(side == sign, self.out, 0.0) + side * here,
            off=np.where(side != 0, off, 0.0),
            out_s=self.out_s + each_s * (side != 0),
            far_up=np.where(side > 0, np.maximum(self.far_up, off), self.far_up),
            far_down=np.where(side < 0, np.maximum(self.far_down, -off), self.far_down),
            told=self.told + (ends & self.far),
        )
        enough_s = np.clip(SHARE * self.known * each_s, NORMAL_S, MOST_S)
        now = now.normal((now.out_s >= enough_s) | (now.told >= TOLD))
        return now._calm(np.where(now.out == 0, row, np.nan)[None], here & (now.out != 0))

    def _calm(self, part: Array, away: Flags | None = None) -> Departures:
        """Return it after rows without departures; those `away` are no gaps."""
        here = ~np.isnan(part)
        n, gaps = here.sum(axis=0), (~here).sum(axis=0)
        first = part[here.argmax(axis=0), np.arange(part.shape[1])]
        mean = np.where((self.rows == 0) & (n > 0), first, self.mean)
        off = np.where(here, part - mean, 0.0)
        rows = np.minimum(self.rows + n, MEMORY)
        reach = 2 * np.maximum(np.maximum(self.up, self.down), 1.0)  # one odd reading moves little
        return self._replace(
            mean=mean + np.clip(off, -reach, reach).sum(axis=0) / np.maximum(rows, 1),
            rows=np.maximum(rows - (gaps if away is None else gaps * ~away), 0.0),
            known=self.known + n,
            up=np.maximum(self.up, off.max(axis=0)),
            down=np.maximum(self.down, -off.min(axis=0)),
        )
