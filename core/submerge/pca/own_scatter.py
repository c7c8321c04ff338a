"""OwnScatter: how the rows of one node vary, with the fleet's as a prior (docs/decisions/0067).

    A = (1 - w) C + w F + PHI diag(F),    w = kappa / (kappa + n)

is what a node of n rows scores by, C its own covariance and F the fleet's: a conjugate prior, with
the kappa that makes the rows that come next most likely (Gelman and others 2013, section 3.6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array
from submerge.pca.factor import Factors, floored
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter

KAPPAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 1e5)
"""Rows that the fleet's scatter may be worth."""

USUAL = 7  # which of these it is before rows have said; another has to be likelier by a nat a step
PHI = 0.02  # noise of a channel at a node, over its variance in the fleet: what is less is no news
WIDEST = 96  # most dimensions in which a node keeps a scatter of its own: 147 kB

SOON = 100.0
"""Rows of which an eighth is waited for before a node scores by them, beside those that it has."""

FADES = 0.9
"""What is left of the evidence when an eighth more rows are known: it is of a node of that age."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnScatter:
    """How the rows of one node vary about its own mean."""

    sums: Array  # products of deviations (dim, dim)
    weight: float
    recent: Array  # of rows that it does not score by yet
    rows: float = 0.0
    # Log likelihoods of rows by each kappa, those of long ago faded.
    evidence: tuple[float, ...] = (0.0,) * len(KAPPAS)

    @classmethod
    def none(cls, dim: int) -> OwnScatter:
        """Return that of no rows."""
        return cls(np.zeros((dim, dim)), 0.0, np.zeros((dim, dim)))

    def after(self, deviations: Array, kept: float) -> OwnScatter:
        """Return it with more deviations (n, dim), earlier ones `kept` times as much."""
        recent, rows = kept * self.recent + deviations.T @ deviations, kept * self.rows
        sums, weight = kept * self.sums, kept * self.weight
        return OwnScatter(sums, weight, recent, rows + len(deviations), self.evidence)

    def with_newer(self, since: OwnScatter) -> OwnScatter:
        """Return it with newer rows, beside which it counts as so many: a machine has changed."""
        share = min(1.0, since.rows / max(self.weight, 1.0))
        recent, rows = self.recent + since.recent, self.rows + since.rows
        return replace(
            self, sums=share * self.sums, weight=share * self.weight, recent=recent, rows=rows
        )

    @property
    def kept(self) -> OwnScatter:
        """What the next process has to know: it does not miss the newest few rows."""
        return replace(self, recent=np.zeros_like(self.sums), rows=0.0)

    @property
    def waits(self) -> bool:
        """Whether too few rows have come to score by them."""
        return self.rows < (SOON + self.weight) / 8

    @property
    def kappa(self) -> float:
        """How many rows the fleet's scatter is worth."""
        steps = np.abs(np.arange(len(KAPPAS)) - USUAL)
        return KAPPAS[int(np.argmax(np.array(self.evidence) - steps))]

    @property
    def share(self) -> float:
        """How much it is the fleet's scatter that the node scores by, 0 to 1."""
        return self.kappa / (self.kappa + self.weight)

    @property
    def unlike(self) -> float:
        """How much more likely a row is than by the fleet alone, nats; 0 for a machine like it."""
        return (max(self.evidence) - self.evidence[-1]) / max(self.weight, 1.0)

    def taken_in(self, fleet: Array) -> OwnScatter:
        """Return it with all rows to score by, which say what a fleet's covariance is worth."""
        found = FADES * np.array(self.evidence) + self.likelihoods(fleet, self.recent, self.rows)
        sums, weight = self.sums + self.recent, self.weight + self.rows
        return OwnScatter(sums, weight, np.zeros_like(sums), 0.0, tuple(found.tolist()))

    def likelihoods(self, fleet: Array, scatter: Array, rows: float) -> Array:
        """Return the log likelihood of `rows` with a scatter, by each kappa: (kappas,)."""
        found = np.zeros(len(KAPPAS))
        for i, kappa in enumerate(KAPPAS):
            both, noise = self.mixed(fleet, kappa)
            roots = np.sqrt(np.diag(both) + noise)
            by = (both + np.diag(noise)) / np.outer(roots, roots)
            distances = np.trace(np.linalg.solve(by, scatter / np.outer(roots, roots)))
            logs = np.linalg.slogdet(by)[1] + 2 * np.log(roots).sum()
            found[i] = -(rows * logs + distances) / 2
        return found

    def mixed(self, fleet: Array, kappa: float) -> tuple[Array, Array]:
        """Return the mean of both covariances (dim, dim), and the noise (dim,) beside it."""
        share = kappa / (kappa + self.weight)
        both = (1 - share) * self.sums / max(self.weight, 1.0) + share * fleet
        # A channel may vary here by far more than in the fleet.
        return both, floored(PHI * np.diag(fleet), np.diag(both))


def covariance_of(factors: Factors, summary: Subspace | WholeScatter) -> Array:
    """Return the covariance (dim, dim) of a fleet by its factors."""
    loadings = factors.loadings_of(summary.parts[0])
    return np.asarray(loadings @ loadings.T + np.diag(factors.noise))


def of_node(
    factors: tuple[Factors, ...], summary: Subspace | WholeScatter, own: OwnScatter | None
) -> tuple[Factors, ...]:
    """Return the factors that a node scores with; those of a kernel group stay. O(dim^3)."""
    if own is None or not own.weight > 0 or len(factors) != 1:
        return factors
    fleet = covariance_of(factors[0], summary)
    both, noise = own.mixed(fleet, own.kappa)
    roots = np.sqrt(np.diag(both))
    values, vectors = np.linalg.eigh(both / np.outer(roots, roots))
    return (Factors(noise, roots[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))),)
