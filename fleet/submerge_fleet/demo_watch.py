"""Singling out bad motes from scores that were made before learning.

The rule, whole:

1. In the first half of the settling time the fleet only learns. In the second half,
   which must be free of faults, limits are *measured*: for SPE and T2 their 99.9 %
   quantile, for each channel the 99.9 % quantile of its residual's size (its square is
   what the channel contributes to SPE). A channel by a sunny window is allowed more
   than one in a corner; a share of SPE alone would blame that window every noon.
2. From then on a row names one channel: the one whose residual is the largest
   multiple of its own limit, if that is more than `MARGIN`.
3. A mote is singled out when a channel of it was named in an hour and a half's worth
   of the last six hours' rows. An operator would then take it out of service, and so
   does the demo: from there on its readings are gaps. Were it only muted here, it would
   go on to be learnt, and to make its neighbors look odd: in rooms 0..3 that raised 11
   false alarms where there is one now.

In a kernel group the residual is the SPE of the readings themselves, dealt out by the shares that
its lines tell: a mote that goes bad is a channel that strays, and readings show that better than
features do (benchmarks/kernel_spe.md). What features say of weather that they have not met yet is
loud: judged by `odd` the rule raised 6 to 9 false alarms in each of rooms 0..3. By the readings
`submerge demo --kernel --seed N --json` for N = 0..7 has 43 of 48 faults found, all by a right
quantity; no false alarm.

What it does not do: it never says that a mote is well again. Until a mote is singled out,
what it says is learnt. A fault may so take a direction of the model and grow quiet: a slow
or small one before the rule has seen enough of it, and a light sensor stuck at night before
morning. Such are missed. What the lost direction used to explain, a lamp or the sun, then
looks odd on sound motes: those are the false alarms. `submerge demo --seed N --json` for
N = 0..7: 46 of 48 faults found, all by a right quantity; 1 false alarm. A fleet of processes
does not do the same twice: one or two more are no surprise, and a machine that is too busy
to feed it has more.

References
----------
Westerhuis, Gurden, Smilde, Generalized contribution plots in multivariate statistical
process monitoring, Chemometrics and Intelligent Laboratory Systems 51 (2000): limits
for contributions, not for their sum alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge import Array, Channel, UsageError
from submerge_fleet.demo_scores import Scores
from submerge_fleet.room import SNAPSHOT_S

QUANTILE = 0.999
MARGIN = 2.0
WINDOW = round(6 * 3600 / SNAPSHOT_S)
ENOUGH = round(1.5 * 3600 / SNAPSHOT_S)


@dataclass(frozen=True, slots=True)
class Alarm:
    """A mote that was singled out: by which channel, and at which snapshot."""

    mote: int
    quantity: str
    snapshot: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What is normal at most: SPE, T2, and the size of each channel's residual (dim,)."""

    spe: float
    t2: float
    residual: Array

    @classmethod
    def measured(cls, scores: list[Scores]) -> Limits:
        """Take the quantiles of the scores that there are."""
        residual = np.concatenate([part.residual[part.known] for part in scores])
        if not len(residual):
            raise UsageError("limits need rows that a model has scored, got none: settle longer")
        spe, t2 = (
            float(
                np.nanquantile(np.concatenate([getattr(part, name) for part in scores]), QUANTILE)
            )
            for name in ("spe", "t2")
        )
        # A channel that only ever was filled has no residual, hence no limit to pass.
        limit = np.sqrt(np.quantile(residual, QUANTILE, axis=0))
        return cls(spe, t2, np.where(limit > 0, limit, np.inf))


class Watch:
    """The rule above, over scores in the order of their snapshots.

    Parameters
    ----------
    channels : tuple of Channel
        Named `mote07.temperature`.
    settle : int
        Snapshots before it judges.

    Attributes
    ----------
    limits : Limits or None
        None until they are measured.
    alarms : list of Alarm
    muted : (channels,)
        Which channels belong to motes that were singled out.
    rows, over_spe, over_t2, over_odd : int
        Rows judged; those whose SPE, and whose T2, was over its limit; those that a kernel group
        finds odd. A row that nobody has scored is not judged.
    """

    def __init__(self, channels: tuple[Channel, ...], *, settle: int) -> None:
        self.settle = settle
        self.limits: Limits | None = None
        self.alarms: list[Alarm] = []
        self.muted = np.zeros(len(channels), dtype=bool)
        self.rows = self.over_spe = self.over_t2 = self.over_odd = 0
        names = [channel.name.split(".") for channel in channels]
        self._mote = np.array([int(mote.removeprefix("mote")) for mote, _ in names])
        self._quantity = [quantity for _, quantity in names]
        self._seen = 0
        self._settling: list[Scores] = []
        self._named: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def see(self, scores: Scores) -> Array:
        """Take in the next rows' scores; return what multiple of its limit each channel was.

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
            self.limits = Limits.measured(self._settling)
            self._settling = []
        known = scores.known
        residual = scores.residual[known]
        if not len(residual):
            return np.zeros(len(self.muted))
        multiple = np.where(self.muted, 0.0, np.sqrt(residual) / self.limits.residual)
        self.rows += len(multiple)
        self.over_spe += int(np.count_nonzero(scores.spe[known] > self.limits.spe))
        self.over_t2 += int(np.count_nonzero(scores.t2[known] > self.limits.t2))
        self.over_odd += int(np.count_nonzero(scores.odd[known] > 1))
        worst = multiple.argmax(axis=1)
        loud = multiple[np.arange(len(worst)), worst] > MARGIN
        self._named = np.append(self._named, np.where(loud, worst, -1))[-WINDOW:]
        self._single_out()
        return np.asarray(np.sqrt((multiple**2).mean(axis=0)))

    def _single_out(self) -> None:
        """Raise an alarm for each mote that was named often enough."""
        named = self._named[self._named >= 0]
        often = np.bincount(named, minlength=len(self.muted))
        for channel in np.argsort(-often, kind="stable"):
            if often[channel] < ENOUGH:
                return
            if not self.muted[channel]:
                mote = int(self._mote[channel])
                self.alarms.append(Alarm(mote, self._quantity[channel], self._seen))
                self.muted |= self._mote == mote
