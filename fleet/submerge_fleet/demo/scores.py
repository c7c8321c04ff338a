"""Score lines as numbers, back in the order of the snapshots that they are about.

Each client scores its own rows at its own pace. `InOrder` puts them together again: a
snapshot is handed on when all before it are scored, or known never to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from submerge import Array


class ScoreLine(msgspec.Struct, frozen=True):
    """A line that a client writes for a row, as far as it matters here.

    Attributes
    ----------
    row : int
        Of the client's rows since its process began.
    spe, t2 : float
    model : int
        Its version.
    top : dict of str to float
        Channels to blame, with their shares, the largest first.
    filled : dict of str to float
        What gaps were taken for, in the channel's unit.
    linear, odd : float or None
        In a kernel group: SPE of the readings; and the larger of both kinds of SPE, from 0 at the
        middle of recent rows to 1 at their limit, once there are limits.
    withheld : bool
        The row is not learnt.
    over, over_t2 : float
        The highest share of recent rows that SPE, and T2, is above by the fleet's own limits.
    """

    row: int
    spe: float
    t2: float
    model: int
    top: dict[str, float] = {}
    filled: dict[str, float] = {}
    linear: float | None = None
    anomaly_score: float | None = None
    withheld: bool = False
    over: float = 0.0
    over_t2: float = 0.0

    @property
    def of_readings(self) -> float:
        """SPE of the readings, whatever else is learnt of them."""
        return self.spe if self.linear is None else self.linear


read_line = msgspec.json.Decoder(ScoreLine).decode


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """How odd rows were, to the model that had not seen them.

    spe, t2 : (n,); NaN where no model has judged the row. Of the readings is the one; in a
        kernel group the other is of their features.
    residual : (n, channels), SPE dealt out to the channels to blame; each row sums to its spe
    odd : (n,); NaN also where there are no limits, and in a linear group
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
        """Return scores of rows that nobody has judged."""
        spe, t2, anomaly_score = np.full((3, n), np.nan)
        return cls(spe, t2, np.full((n, dim), np.nan), anomaly_score, *np.zeros((2, n)))

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """(n,), which rows were judged."""
        return np.asarray(~np.isnan(self.spe))


class InOrder:
    """Scores by snapshot, handed on without gaps.

    Parameters
    ----------
    names : sequence of str
        The channels, in the schema's order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._waiting: dict[int, ScoreLine | None] = {}
        self._first = 0  # not handed on yet
        self._after = 0  # the last of an unbroken run from there

    @property
    def ready(self) -> int:
        """Snapshots that can be handed on."""
        return self._after - self._first

    def put(self, snapshot: int, line: ScoreLine | None) -> None:
        """Take in what is known of a snapshot; None: it will never be scored."""
        self._waiting[snapshot] = line
        while self._after in self._waiting:
            self._after += 1

    def take(self, n: int) -> ScoreTable:
        """Hand on the next n, at most as many as are ready."""
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
