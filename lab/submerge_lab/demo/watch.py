"""How far single channels deviate by their scores: the data of the picture.

The picture decides nothing: alarms and the limits in score lines are the clients'. In the first
half of the settling time the fleet only learns. In the second half, which is free of faults, the
demo measures the picture's limits: the 99.9 % quantile of the squared prediction error (SPE), and
for each channel that of its residual's size. The residual's square is the channel's part of SPE
(in a kernel group, of the readings), by the shares in score lines. From then on each channel is
shown as a multiple of its own quantile: a channel by a sunny window deviates more every noon than
one in a corner ever does.

References
----------
Westerhuis, Gurden, Smilde, Generalized contribution plots in multivariate statistical
process monitoring, Chemometrics and Intelligent Laboratory Systems 51 (2000): limits
for contributions, not for their sum alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge import Array, Channel, UsageError
from submerge_lab.demo.scores import ScoreTable

QUANTILE = 0.999

LOUD = 2.0
"""Multiple of its limit that a sound channel seldom reaches."""


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """Limits of the picture: of SPE, and of the size of each channel's residual (dim,)."""

    spe: float
    residual: Array

    @classmethod
    def from_scores(cls, scores: list[ScoreTable]) -> PictureLimits:
        """Return the quantiles of the scores."""
        residual = np.concatenate([part.residual[part.known] for part in scores])
        if not len(residual):
            raise UsageError("limits need rows that a model has scored, got none: settle longer")
        spe = float(np.nanquantile(np.concatenate([part.spe for part in scores]), QUANTILE))
        # A channel that was always filled has no residual, hence no limit.
        limit = np.sqrt(np.quantile(residual, QUANTILE, axis=0))
        return cls(spe, np.where(limit > 0, limit, np.inf))


class ChannelWatch:
    """Evaluates scores in the order of their snapshots.

    channels : With names like `mote07.temperature`.
    settle : Snapshots before limits are known.

    limits : None until they are measured.
    muted : (channels,). Which channels belong to motes that are out of service.
    rows, over_spe, over_t2, over_anomaly_score : Rows that were scored; those over the fleet's 99.9
        % limit of SPE and of T2 (Hotelling's T-squared); those of a kernel group with an anomaly
        score above 1.
    """

    def __init__(self, channels: tuple[Channel, ...], *, settle: int) -> None:
        self.settle = settle
        self.limits: PictureLimits | None = None
        self.muted = np.zeros(len(channels), dtype=bool)
        self.rows = self.over_spe = self.over_t2 = self.over_anomaly_score = 0
        motes = [channel.name.split(".")[0] for channel in channels]
        self._mote = np.array([int(mote.removeprefix("mote")) for mote in motes])
        self._seen = 0
        self._settling: list[ScoreTable] = []

    def take_out(self, mote: int) -> None:
        """Note that a mote is out of service from now on."""
        self.muted |= self._mote == mote

    def see(self, scores: ScoreTable) -> Array:
        """Add the next rows' scores; return each channel's multiple of its limit.

        Returns
        -------
        (channels,), the root mean square of these rows; 0 where muted, or while limits
        are not known
        """
        first, self._seen = self._seen, self._seen + len(scores.spe)
        if first < self.settle:
            if first >= self.settle // 2:
                self._settling.append(scores)
            return np.zeros(len(self.muted))
        if self.limits is None:
            self.limits = PictureLimits.from_scores(self._settling)
            self._settling = []
        known = scores.known
        residual = scores.residual[known]
        if not len(residual):
            return np.zeros(len(self.muted))
        multiple = np.where(self.muted, 0.0, np.sqrt(residual) / self.limits.residual)
        self.rows += len(multiple)
        self.over_spe += int(np.count_nonzero(scores.over[known] >= QUANTILE))
        self.over_t2 += int(np.count_nonzero(scores.over_t2[known] >= QUANTILE))
        self.over_anomaly_score += int(np.count_nonzero(scores.anomaly_score[known] > 1))
        return np.asarray(np.sqrt((multiple**2).mean(axis=0)))
