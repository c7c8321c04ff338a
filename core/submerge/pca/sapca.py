"""SAPCA: the streaming engine, which learns a `Subspace` from blocks of rows.

It promises:

1. Memory is O(dim (k + b)), whatever the length of the stream.
2. The result does not depend on how rows were cut into calls, and on the block size
   only through what truncation dropped.
3. Reading changes nothing: rows that wait for a full block are summarised separately.
4. A call with a bad row learns none of its rows.

`block` has the mathematics of a block; `low_rank` and `scatter` are the two memories.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, signs
from submerge.errors import NothingLearnt, ShapeError, UsageError, whole
from submerge.pca.block import Blend, Totals
from submerge.pca.low_rank import LowRank
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.scatter import Scatter
from submerge.pca.score import spe
from submerge.pca.subspace import (
    LARGEST,
    LARGEST_SINGLE,
    Subspace,
    check_same_schema,
    check_values,
    oriented,
)
from submerge.schema import Schema

Exact = Literal["auto", "never"]


class SAPCA:
    """Streaming PCA with adaptive rank.

    Parameters
    ----------
    rank : int or RankRule
        Directions to show: a fixed number, or a rule that changes it (`SapcaRank`,
        the paper's; `EnergyRank`).
    oversample : int
        Spare directions kept beside those shown; k = rank + oversample. They cost
        memory and time in proportion and buy accuracy: on Light 0.5 % above the
        optimum with 5, 6 % with none (benchmarks/accuracy.py).
    forgetting_factor : float in (0, 1]
        Each row multiplies the weight of earlier rows by this.
    center : bool, optional
        Subtract the running mean, exactly; False measures about zero. By default as in the
        schema, and True without one.
    block_size : int, optional
        Rows learnt at once; by default k + 30. More need more memory, fewer more time.
    exact : {"auto", "never"}
        "auto" keeps the whole scatter where that is small, dim <= k + block_size.
    dtype : float64 or float32
        Type of what is stored. Sums of stored rows are float64 in either case.
    schema : Schema, optional
        The meaning of the rows, which `schema.lift` has mapped already. By default
        an anonymous one that depends on their number of columns only.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge import SAPCA
    >>> X = np.random.default_rng(0).standard_normal((500, 30)) @ np.diag(0.8 ** np.arange(30))
    >>> engine = SAPCA(rank=4).partial_fit(X[:300]).partial_fit(X[300:])
    >>> engine.subspace.weight
    500.0
    >>> engine.transform(X).shape
    (500, 4)

    References
    ----------
    Grammenos et al., Federated Principal Component Analysis, arXiv:1907.08059,
    Algorithm 3 (SPCA) and Section 3.2 (SAPCA).
    """

    def __init__(
        self,
        rank: int | RankRule = 10,
        *,
        oversample: int = 5,
        forgetting_factor: float = 1.0,
        center: bool | None = None,
        block_size: int | None = None,
        exact: Exact = "auto",
        dtype: npt.DTypeLike = np.float64,
        schema: Schema | None = None,
    ) -> None:
        if not 0 < forgetting_factor <= 1:
            raise UsageError(f"forgetting_factor must be in (0, 1], got {forgetting_factor}")
        if exact not in ("auto", "never"):
            raise UsageError(f'exact must be "auto" or "never", got {exact!r}')
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise UsageError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
        by_schema = schema is None or schema.center != "none"
        if schema is not None and center not in (None, by_schema):
            raise UsageError(
                f'center={center} contradicts the schema, whose center is "{schema.center}"'
            )
        self.rule = rank if isinstance(rank, RankRule) else FixedRank(rank)
        self.oversample = whole("oversample", oversample, least=0)
        self.forgetting_factor = float(forgetting_factor)
        self.center = by_schema if center is None else bool(center)
        self.exact = exact
        self.dtype = np.dtype(dtype)
        self.block_size = self.rule.start + self.oversample + 30
        if block_size is not None:
            self.block_size = whole("block_size", block_size, least=1)
        self.n_samples_seen = 0
        """Number of rows ever passed, not faded."""
        self.fallbacks = 0
        """Blocks whose rows were too deficient or badly scaled for the fast kernel."""
        self._target = self.rule.start  # the rule's choice
        self._held = 0  # blocks until the rule is called again
        self._waiting = 0  # rows of the unfinished block
        self._seen: Subspace | None = None
        self._memory: LowRank | Scatter | None = None
        if schema is not None:
            self._open(schema)

    def partial_fit(self, X: npt.ArrayLike) -> Self:
        """Learn rows X (n, dim), oldest first: all of them, or none on an error."""
        self._learn(self._checked(X), projected=None)
        return self

    def partial_project(self, X: npt.ArrayLike) -> list[Array]:
        """Learn rows X (n, dim) and return their projections (the paper's U'Y).

        Returns
        -------
        list of (n_block, r) arrays
            One for each block that this call completes, in order: its rows projected
            on the subspace right after they were learnt. r may differ from block to
            block. Rows that still wait are returned by a later call.
        """
        projected: list[Array] = []
        self._learn(self._checked(X), projected)
        return projected

    def resume(self, past: Subspace, *, n_samples_seen: int, rank: int | None = None) -> Self:
        """Continue from what other engines have learnt, as if their rows had come here.

        Parameters
        ----------
        past : Subspace
            Of this engine's schema. Directions beyond those that it keeps go into the bounds.
        n_samples_seen : int
            Rows behind `past`.
        rank : int, optional
            Where an adaptive rule starts, within its limits; by default its own start.

        Raises
        ------
        UsageError
            If this engine has no schema, or has learnt something already.
        SchemaMismatch
        """
        if self._memory is None or self.n_samples_seen:
            raise UsageError("only an engine with a schema that has learnt nothing can resume")
        check_same_schema(Subspace.empty(self._schema), past)
        whole("n_samples_seen", n_samples_seen, least=1)
        wanted = self._target if rank is None else whole("rank", rank, least=1)
        wanted = min(wanted, self.rule.highest or self._schema.dim)
        self._target = min(max(self.rule.lowest, wanted), self._schema.dim)
        if isinstance(self._memory, Scatter):
            scaled = past.basis * past.sigma
            self._memory.total = scaled @ scaled.T
        else:
            past = past.truncated(self._kept)
            self._memory.restore(past.basis.T, past.sigma)
        self._totals = Totals(past.mean.copy(), past.weight, past.energy, past.spectral_bound)
        self.n_samples_seen, self._seen = n_samples_seen, None
        return self

    def fade(self, factor: float) -> Self:
        """Count all that was learnt so far `factor` times, for time that passed without a row.

        Rows that wait for a full block are learnt first, as a smaller block.
        """
        if not 0 < factor <= 1:
            raise UsageError(f"a fading factor must be in (0, 1], got {factor}")
        if self._memory is None or not self._totals.weight + self._waiting:
            return self
        if self._waiting:
            self._absorb(self._memory, None)
        self._memory.fade(factor)
        mean, weight, energy, dropped = self._totals
        self._totals = Totals(mean, weight * factor, energy * factor, dropped * factor)
        self._seen = None
        return self

    @property
    def schema(self) -> Schema | None:
        """The schema of its vectors; None before the first row, if none was given."""
        return self._schema if self._memory else None

    @property
    def subspace(self) -> Subspace:
        """All that was learnt, with the spare directions: the value to send and merge."""
        if self._seen is None:
            self._seen = self._look(self._kept if self._memory else 0)
        return self._seen

    @property
    def whole(self) -> Subspace:
        """All that is held, and every direction of the exact memory; computed at each call."""
        return self._look(self._schema.dim if self._memory else 0)

    @property
    def shown(self) -> Subspace:
        """The subspace at the rank to show and to score with."""
        return self.subspace.truncated(self._target)

    @property
    def rank(self) -> int:
        """Directions shown: the rule's choice, and never more than the data have."""
        return self.shown.rank

    @property
    def algorithm(self) -> str:
        """The algorithm that runs, in words."""
        if isinstance(self._memory, Scatter):
            since = "" if self._totals.dropped == 0 else ", since a truncated past"
            return f"exact covariance, d <= k + b{since}"
        return "SAPCA" if self.rule.adaptive else "SPCA"

    @property
    def target(self) -> int:
        """The rule's choice of rank, which the data may not have directions for yet."""
        return self._target

    def transform(self, X: npt.ArrayLike) -> Array:
        """Project rows X (n, dim) on the shown directions, (n, rank)."""
        shown = self.shown
        return np.asarray((self._checked(X) - shown.mean) @ shown.basis)

    def inverse_transform(self, Z: npt.ArrayLike) -> Array:
        """Return the points (n, dim) that projections Z (n, rank) stand for."""
        shown = self.shown
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != shown.rank:
            raise ShapeError("projections", expected=f"(n, {shown.rank})", got=Z.shape)
        return np.asarray(Z @ shown.basis.T + shown.mean)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return each row's squared distance to the shown subspace, (n,): its SPE."""
        return spe(self._checked(X), self.shown)

    # -- inside ----------------------------------------------------------------

    def _checked(self, X: npt.ArrayLike) -> Array:
        """Return X as an (n, dim) array of usable numbers, or raise."""
        rows = np.asarray(X)
        dim = self._schema.dim if self._memory else None
        if rows.ndim != 2 or dim not in (None, rows.shape[1]):
            raise ShapeError("rows", expected=f"(n, {dim or 'dim'})", got=rows.shape)
        if rows.dtype.kind not in "fiub":
            raise UsageError(f"rows must be real numbers, got dtype {rows.dtype}")
        # Numbers stored as float32 must fit it, and so must their distance to the mean.
        check_values(rows, LARGEST if self.dtype == np.float64 else LARGEST_SINGLE)
        return rows

    def _open(self, schema: Schema) -> LowRank | Scatter:
        """Choose the memory, once the dimension is known."""
        dim = schema.dim
        if self.rule.start > dim:
            raise UsageError(f"rank must be at most the {dim} columns, got {self.rule.start}")
        self._schema = schema
        self._fingerprint = schema.fingerprint
        self._totals = Totals(np.zeros(dim), 0.0, 0.0, 0.0)
        # The choice depends on the rank at the start: a restored engine must choose the same.
        if self.exact == "auto" and dim <= self.rule.start + self.oversample + self.block_size:
            self._memory = Scatter(dim, self.block_size)
        else:
            self._memory = LowRank(dim, self._kept, self.block_size, self.dtype)
        return self._memory

    @property
    def _kept(self) -> int:
        """The working rank k."""
        return min(self._target + self.oversample, self._schema.dim)

    def _learn(self, rows: Array, projected: list[Array] | None) -> None:
        if not len(rows):
            return
        memory = self._memory or self._open(
            Schema.anonymous(rows.shape[1], center="fleet" if self.center else "none")
        )
        self._seen = None
        if self.center and self._waiting == 0 and self._totals.weight == 0:
            # Rows are measured from the first one: a large mean then costs no digits.
            self._totals = self._totals._replace(mean=rows[0].astype(np.float64))
        start = 0
        while start < len(rows):
            taken = rows[start : start + self.block_size - self._waiting]
            room = memory.room[self._waiting : self._waiting + len(taken)]
            np.subtract(taken, self._totals.mean, out=room, casting="same_kind")
            start += len(taken)
            self._waiting += len(taken)
            if self._waiting == self.block_size:
                self._absorb(memory, projected)
        self.n_samples_seen += len(rows)

    def _absorb(self, memory: LowRank | Scatter, projected: list[Array] | None) -> None:
        """Fade the past, learn the block, set the next rank."""
        block = None if projected is None else memory.room.copy()
        # The exact memory is decomposed only for an adaptive rule or a projection.
        idle = isinstance(memory, Scatter) and not self.rule.adaptive and block is None
        blend = self._blend()
        digest = memory.absorb(blend, 0 if idle else self._kept)
        self._totals = self._totals.after(blend, digest)
        self._waiting = 0
        self.fallbacks += digest.found.guarded
        if block is not None and projected is not None:
            shown = digest.found.rows[: self._target]
            moved = block - blend.follow * digest.drift
            projected.append(moved @ (shown * signs(shown)[:, None]).T)
        if self.rule.adaptive:
            self._adapt(digest.found.sigma)

    def _adapt(self, sigma: Array) -> None:
        """Set the next rank by the rule, its limits and its hold-off."""
        if self._held > 0:
            self._held -= 1
            return
        highest = min(self.rule.highest or self._schema.dim, self._schema.dim)
        wanted = self.rule.next(self._target, sigma, self._totals.energy)
        wanted = max(self.rule.lowest, min(wanted, highest))
        if wanted != self._target:
            self._target = wanted
            self._held = self.rule.hold

    def _blend(self) -> Blend:
        return Blend.of(
            self._waiting,
            self._totals.weight,
            forgetting_factor=self.forgetting_factor,
            center=self.center,
        )

    def _look(self, k: int) -> Subspace:
        """Summarise past and waiting rows at `k` directions, and change neither."""
        if self._memory is None:
            raise NothingLearnt("nothing was learnt yet: call partial_fit first")
        if self._waiting:
            blend = self._blend()
            digest = self._memory.look(blend, k)
            totals, found = self._totals.after(blend, digest), digest.found
        else:
            found = self._memory.directions(k)
            mean, weight, energy, dropped = self._totals
            totals = Totals(mean.copy(), weight, energy, dropped + found.dropped)
        return oriented(
            found.rows.astype(self.dtype, copy=False),
            found.sigma,
            schema=self._fingerprint,
            mean=totals.mean,
            weight=totals.weight,
            energy=totals.energy,
            spectral_bound=totals.dropped,
        )
