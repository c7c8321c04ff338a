"""A client of the demo's fleet: it fills, scores, learns, and reports.

Rules of this file:

1. A block is scored against the newest model *before* it is learnt.
2. A report is a whole state, as it arrives: float32 columns, the rest in full.
3. The model that comes down is scored with and filled with, and never learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import SAPCA, Array, Schema, Subspace, contributions, hotelling, spe
from submerge.missing import fill


def wire_bytes(subspace: Subspace) -> int:
    """Return what a report of it weighs: 4 d k + 8 (d + k) + 256 (the wire's formula)."""
    return 4 * subspace.dim * subspace.rank + 8 * (subspace.dim + subspace.rank) + 256


def on_the_wire(subspace: Subspace) -> Subspace:
    """Return what arrives at the other end: float32 columns, the rest in full."""
    return replace(subspace, basis=subspace.basis.astype(np.float32))


@dataclass(frozen=True, slots=True)
class Scores:
    """How odd rows were, to the model that had not seen them.

    spe, t2 : (n,); NaN before there was a model
    residual : (n, dim), squared, by channel; each row sums to its spe
    """

    spe: Array
    t2: Array
    residual: Array

    @classmethod
    def unknown(cls, n: int, dim: int) -> Scores:
        """Return scores for rows that no model could judge yet."""
        return cls(np.full(n, np.nan), np.full(n, np.nan), np.full((n, dim), np.nan))


class Worst(NamedTuple):
    """The oddest row of a block: its SPE, the top channel, and that channel's share."""

    spe: float
    channel: int
    share: float


class Client:
    """One base station: it learns, fills, scores, and reports when it has grown.

    Attributes
    ----------
    model : Subspace or None
        The root's newest, as it came, at the rank that is scored with.
    filled, reports, bytes_up : int
        Values that were missing; reports sent; what they weighed.
    worst : Worst or None
        The oddest row of the newest block; None before the first model.
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        *,
        rank: int,
        oversample: int,
        first_report: int,
        report_every: int,
    ) -> None:
        self.name = name
        self.engine = SAPCA(rank, oversample=oversample, schema=schema)
        self.model: Subspace | None = None
        self.filled = self.reports = self.bytes_up = 0
        self.worst: Worst | None = None
        self._dim = schema.dim
        self._rank = rank
        self._first_report, self._report_every = first_report, report_every
        self._reported = 0

    @property
    def rows(self) -> int:
        """Rows learnt."""
        return self.engine.n_samples_seen

    @property
    def buffer_bytes(self) -> int:
        """What its buffers hold: the engine's rows and mean, and the model."""
        dim, engine = self._dim, self.engine
        exact = engine.algorithm.startswith("exact")
        kept = dim if exact else engine.rule.start + engine.oversample
        model = 0 if self.model is None else self.model.basis.nbytes + self.model.mean.nbytes
        return 8 * dim * (kept + engine.block_size + 1) + model

    @property
    def subspace(self) -> Subspace:
        """All that it has learnt."""
        return self.engine.subspace

    def hear(self, rows: Array, muted: npt.NDArray[np.bool_]) -> tuple[Array, Scores]:
        """Score a block (n, dim), then learn it; `muted` channels are not scored.

        Returns
        -------
        filled : (n, dim)
            What was learnt: the rows without their gaps.
        scores : Scores
        """
        normal = self.engine.subspace if self.model is None else self.model
        filled, count = fill(rows, normal)
        self.filled += count
        if self.model is None:
            scores = Scores.unknown(*rows.shape)
        else:
            # A mute channel reads as missing, so it cannot tilt what the others are
            # compared with.
            judged = fill(np.where(muted, np.nan, rows), self.model)[0] if muted.any() else filled
            total = spe(judged, self.model)
            shares = contributions(judged, self.model)
            scores = Scores(total, hotelling(judged, self.model), shares * total[:, None])
            row = int(total.argmax())
            channel = int(shares[row].argmax())
            self.worst = Worst(float(total[row]), channel, float(shares[row, channel]))
        self.engine.partial_fit(filled)
        return filled, scores

    def report(self) -> Subspace | None:
        """Return its state, as it arrives, if it is time: it has doubled, or grown enough."""
        doubled = max(self._reported, self._first_report)
        if self.rows - self._reported < min(doubled, self._report_every):
            return None
        return self.last_report()

    def last_report(self) -> Subspace:
        """Return its state, as it arrives, in any case."""
        self._reported = self.rows
        self.reports += 1
        self.bytes_up += wire_bytes(self.subspace)
        return on_the_wire(self.subspace)

    def take(self, model: Subspace) -> None:
        """Keep a newer model."""
        self.model = model.truncated(self._rank)
