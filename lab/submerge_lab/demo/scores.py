"""Score lines as numbers, in the order of their snapshots.

Each client scores its rows at its own pace. `InOrder` returns a snapshot's score once all
snapshots before it are scored, or known never to be.

`ChannelWatch`: how far single channels deviate by their scores, the data of the picture.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from submerge import Array, Channel, UsageError


class ScoreLine(msgspec.Struct, frozen=True):
    """A client's score line, with the fields that the demo uses.

    spe, t2 : Squared prediction error (SPE) and Hotelling's T-squared (T2).
    top : Channels to blame, with their shares, the largest first.
    linear, anomaly_score : In a kernel group: SPE of the readings; and the larger of both kinds of
        SPE, from 0 at the median of recent rows to 1 at their limit, once there are limits.
    over, over_t2 : The highest share of recent rows that SPE, and T2, is above by the fleet's
        limits.
    """

    row: int
    spe: float
    t2: float
    model: int
    top: dict[str, float] = {}
    linear: float | None = None
    anomaly_score: float | None = None
    over: float = 0.0
    over_t2: float = 0.0

    @property
    def of_readings(self) -> float:
        """SPE of the readings, in a kernel group too."""
        return self.spe if self.linear is None else self.linear


read_line = msgspec.json.Decoder(ScoreLine).decode


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Scores of rows by a model that had not learnt them.

    spe, t2 : (n,); NaN where no model has scored the row. `spe` is of the readings; in a kernel
        group `t2` is of the features.
    residual : (n, channels), SPE by channel to blame; each row sums to its spe
    anomaly_score : (n,); NaN also where there are no limits, and in a linear group
    over, over_t2 : (n,), as in `ScoreLine`
    """

    spe: Array
    t2: Array
    residual: Array
    anomaly_score: Array
    over: Array
    over_t2: Array

    @classmethod
    def unknown(cls, n: int, dim: int) -> ScoreTable:
        """Return the scores of n rows that no model has scored."""
        spe, t2, anomaly_score = np.full((3, n), np.nan)
        return cls(spe, t2, np.full((n, dim), np.nan), anomaly_score, *np.zeros((2, n)))

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """(n,), which rows are scored."""
        return np.asarray(~np.isnan(self.spe))


class InOrder:
    """Scores by snapshot, returned in order; `names` are the schema's channels."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._waiting: dict[int, ScoreLine | None] = {}
        self._first = 0  # the first that was not taken
        self._after = 0  # the end of the unbroken run from there

    @property
    def ready(self) -> int:
        """Number of snapshots that can be taken."""
        return self._after - self._first

    def put(self, snapshot: int, line: ScoreLine | None) -> None:
        """Note a snapshot's score line; None: it will never be scored."""
        self._waiting[snapshot] = line
        while self._after in self._waiting:
            self._after += 1

    def take(self, n: int) -> ScoreTable:
        """Return the next n, at most as many as are ready."""
        n = min(n, self.ready)
        scores = ScoreTable.unknown(n, len(self._places))
        for i in range(n):
            line = self._waiting.pop(self._first + i)
            if line is not None:
                scores.spe[i], scores.t2[i] = line.of_readings, line.t2
                scores.over[i], scores.over_t2[i] = line.over, line.over_t2
                scores.residual[i] = line.of_readings * self._shares(line.top)
                if line.anomaly_score is not None:
                    scores.anomaly_score[i] = line.anomaly_score
        self._first += n
        return scores

    def _shares(self, top: Mapping[str, float]) -> Array:
        shares = np.zeros(len(self._places))
        places = [self._places[name] for name in top]
        shares[places] = list(top.values())
        return shares


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
        """Add rows' scores; return (channels,), the root mean square of multiples of the limits."""
        # It is 0 where muted, or while limits are not known.
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
