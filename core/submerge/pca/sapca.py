"""SAPCA: the streaming engine, which learns a `Subspace` from blocks of rows.

It promises:

1. Memory is O(dim (k + b)), or a constant, whatever the length of the stream (`budget`).
2. The result does not depend on how rows were cut into calls, to the last bit; where rows are
   sparse or have gaps, and the whole scatter is held, to rounding.
3. Reading changes nothing: rows that wait for a full block are summarised separately.
4. A call with a bad row learns none of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, unmasked
from submerge.errors import NothingLearnt, ShapeError, UsageError, whole
from submerge.features.sparse import is_sparse
from submerge.pca import budget, sparse_rows
from submerge.pca.block import Blend, Totals
from submerge.pca.expectation import Guesses
from submerge.pca.low_rank import LowRank
from submerge.pca.rank import RankChoice, RankRule, rule_of
from submerge.pca.ritz import block_rows
from submerge.pca.scatter import Scatter
from submerge.pca.score import spe
from submerge.pca.subspace import (
    LARGEST,
    LARGEST_SINGLE,
    MOST_SUMMED,
    Subspace,
    check_same_schema,
    check_values,
    oriented,
)
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Channel, Schema


class SAPCA:
    """Streaming PCA, of a fixed rank or of one that a rule adapts (SPCA, SAPCA).

    Parameters
    ----------
    rank : int, "sapca", "energy" or RankRule
        Directions to show: a fixed number (SPCA), or a rule that changes it: "sapca" is
        `SapcaRank()`, the paper's, "energy" `EnergyRank()`. `algorithm` says what runs: with the
        defaults 10 directions of the exact covariance, while that fits `memory`. SAPCA as printed
        is rank="sapca" with oversample=0, center=False and exact="never".
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
        Rows learnt at once: fewer wait, and are counted in when it is read. By default up to 500
        on the exact path, as far as `memory` goes, and k + 30 on the low-rank path, or up to
        100 - k where that is faster. Fewer need more time, more need more memory; the low-rank path
        takes no more than are fast.
    exact : {"auto", "never"}
        "auto" keeps the whole scatter where `memory` has room for it: to some 320 columns with 500
        rows at once, to 400 with fewer. With an adaptive rule, which needs the spectrum of each
        block, it does so for dim <= k + block_size.
    memory : int
        Budget in bytes: the exact path takes at most 8 dim (3 dim + k + b) + 64 kB for blocks of
        b <= dim rows. Where that is more, the low-rank path runs, in O(dim (k + b)), whatever the
        budget is; `most_bytes` says what the path taken may need.
    dtype : float64 or float32
        Type of what is stored. Sums over blocks are float64 in either case.
    schema : Schema, optional
        The meaning of the rows, which `schema.lift` has mapped already. By default
        that of a table's columns, or an anonymous one that depends on their number only.

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
        rank: int | Literal["sapca", "energy"] | RankRule = 10,
        *,
        oversample: int = 5,
        forgetting_factor: float = 1.0,
        center: bool | None = None,
        block_size: int | None = None,
        exact: budget.Exact = "auto",
        memory: int = budget.DEFAULT_MEMORY,
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
        self.rule = rule_of(rank)
        self.oversample = whole("oversample", oversample, least=0)
        self.forgetting_factor = float(forgetting_factor)
        self.center = by_schema if center is None else bool(center)
        self.exact = exact
        self.memory = whole("memory", memory, least=0)
        self.dtype = np.dtype(dtype)
        self._largest = LARGEST if self.dtype == np.float64 else LARGEST_SINGLE
        self._most_summed = min(self._largest**2, MOST_SUMMED[self.dtype])
        self.block_size = self.patience = self.rule.start + self.oversample + 30
        self._sized = block_size is not None
        if block_size is not None:
            self.block_size = whole("block_size", block_size, least=1)
        self.n_samples_seen = 0
        """Number of rows ever passed, not faded."""
        self.fallbacks = 0
        """Blocks whose rows were too deficient or badly scaled for the fast kernel."""
        self._choice = RankChoice(self.rule, self.rule.start)
        self._waiting = 0  # rows of the unfinished block
        self._seen: Subspace | None = None  # these two until the next rows or time
        self._filled: WholeScatter | None = None
        self._memory: LowRank | Scatter | None = None
        if schema is not None:
            self._open(schema)

    def partial_fit(self, X: npt.ArrayLike, *, gaps: Guesses | None = None) -> Self:
        """Learn rows X (n, dim), oldest first: all of them, or none on an error.

        A table's columns give the schema their names; later tables need the same. `gaps` says which
        values are guesses: where the whole scatter is held, such rows wait for up to 1000 others,
        and what is learnt is what they have on average (`expectation`); elsewhere guesses are
        learnt as they are. Rows may be sparse, without gaps (`sparse_rows`).
        """
        if gaps is None and type(X) is np.ndarray and (memory := self._memory):
            # Calls of few rows are many: good rows that only wait need nothing else.
            end = self._waiting + len(X)
            if (
                X.dtype == self.dtype
                and X.shape[1:] == self._totals.mean.shape
                and memory.gaps is None
                and self._waiting < end < self.block_size
                and (self._waiting or self._totals.weight)
                and X.flags.c_contiguous
                and np.vdot(X, X) < self._most_summed
            ):
                memory.write(X, self._totals.mean, at=self._waiting)
                self._waiting, self._seen, self._filled = end, None, None
                self.n_samples_seen += len(X)
                return self
        if is_sparse(X):
            self._learn_sparse(sparse_rows.checked(X, self._dim, self._largest, gaps))
        else:
            rows = self._checked(X)
            names = () if self._memory else column_names(X)
            self._learn(rows, None if gaps is None else gaps.of(rows), names)
        return self

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
        """
        if self._memory is None or self.n_samples_seen:
            raise UsageError("only an engine with a schema that has learnt nothing can resume")
        check_same_schema(Subspace.empty(self._schema), past)
        whole("n_samples_seen", n_samples_seen, least=1)
        wanted = self.target if rank is None else whole("rank", rank, least=1)
        self._choice.rank = self._choice.limited(wanted, self._schema.dim)
        if isinstance(self._memory, Scatter):
            scaled = past.basis * past.sigma
            self._memory.total = scaled @ scaled.T
        else:
            past = past.truncated(self._kept)
            self._memory.restore(past.basis.T, past.sigma)
        self._totals = Totals.of(past)
        self.n_samples_seen = n_samples_seen
        self._seen = self._filled = None
        return self

    def fade(self, factor: float) -> Self:
        """Count all that was learnt so far `factor` times, for time that passed without a row.

        Rows that wait for a full block are learnt first, as a smaller block.
        """
        if not 0 < factor <= 1:
            raise UsageError(f"a fading factor must be in (0, 1], got {factor}")
        if self._memory is None or not self.n_samples_seen:
            return self
        if self._waiting:
            self._absorb(self._memory)
        self._memory.fade(factor)
        self._totals = self._totals.faded(factor)
        self._seen = self._filled = None
        return self

    @property
    def schema(self) -> Schema | None:
        """The schema of its vectors; None before the first row, if none was given."""
        return self._schema if self._memory else None

    @property
    def subspace(self) -> Subspace:
        """All that was learnt: the value to send and merge. Its spare directions score no rows."""
        if self._seen is None:
            self._seen = self._look(self._kept if self._memory else 0)
        return self._seen

    @property
    def whole(self) -> Subspace:
        """All that is held, and every direction of the exact memory; computed at each call."""
        return self._look(self._schema.dim if self._memory else 0)

    @property
    def whole_scatter(self) -> WholeScatter | None:
        """All of the exact memory; None where directions alone are held."""
        if self._filled is not None or not isinstance(self._memory, Scatter):
            return self._filled
        blend = self._blend() if self._waiting else None
        whole = self._memory.whole(self._fingerprint, self._totals, blend)
        if self._memory.is_expected:
            self._filled = whole  # many rounds for what a report, a checkpoint and a look all ask
        return whole

    @property
    def shown(self) -> Subspace:
        """The subspace at the rank to show and to score with."""
        return self.subspace.shown

    @property
    def rank(self) -> int:
        """Directions shown: the rule's choice, and never more than the data have."""
        return self.shown.rank

    @property
    def algorithm(self) -> str:
        """The algorithm that runs, in words."""
        if isinstance(self._memory, Scatter):
            return "exact covariance" + (", since a truncated past" if self._totals.dropped else "")
        return "SAPCA" if self.rule.adaptive else "SPCA"

    @property
    def target(self) -> int:
        """The rule's choice of rank, which the data may not have directions for yet."""
        return self._choice.rank

    @property
    def most_bytes(self) -> int | None:
        """The most bytes that it takes, by the contract of its path; None before the first row."""
        if self._memory is None:
            return None
        dim, most = self._schema.dim, self.block_size
        if not isinstance(self._memory, Scatter):
            return budget.low_rank_bytes(dim, self._kept, most)
        if self._memory.gapped:
            return budget.gapped_bytes(dim, self.patience, most)
        return budget.exact_bytes(dim, self._kept, most, number=self.dtype.itemsize)

    def transform(self, X: npt.ArrayLike) -> Array:
        """Project rows X (n, dim) on the shown directions, (n, rank)."""
        shown = self.shown
        return np.asarray((self._checked(X) - shown.mean) @ shown.basis)

    def partial_project(self, X: npt.ArrayLike) -> Array:
        """Learn rows X (n, dim), and return their projections (n, rank) on the directions then.

        Algorithm 3's projected data: a row is projected once, as it comes.
        """
        return self.partial_fit(X).transform(X)

    def inverse_transform(self, Z: npt.ArrayLike) -> Array:
        """Return the points (n, dim) that projections Z (n, rank) stand for."""
        shown = self.shown
        Z = np.asarray(unmasked(Z), dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != shown.rank:
            raise ShapeError("projections", expected=f"(n, {shown.rank})", got=Z.shape)
        return np.asarray(Z @ shown.basis.T + shown.mean)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return each row's squared distance to the shown subspace, (n,): its SPE."""
        return spe(self._checked(X), self.shown)

    @property
    def _dim(self) -> int | None:
        """Columns of its rows, once they are known."""
        return self._schema.dim if self._memory else None

    def _checked(self, X: npt.ArrayLike) -> Array:
        """Return X as an (n, dim) array of usable numbers, or raise."""
        if is_sparse(X):
            # What is asked of rows is as long as they are: they may as well be dense.
            return np.asarray(sparse_rows.checked(X, self._dim, self._largest).toarray())
        rows, dim = np.asarray(unmasked(X)), self._dim
        if rows.ndim != 2 or dim not in (None, rows.shape[1]):
            raise ShapeError("rows", expected=f"(n, {dim or 'dim'})", got=rows.shape)
        if rows.dtype.kind not in "fiub":
            raise UsageError(f"rows must be real numbers, got dtype {rows.dtype}")
        if self._memory and rows is not X:
            check_names(column_names(X), self._schema)
        # Numbers stored as float32 must fit it, and so must their distance to the mean.
        check_values(rows, self._largest)
        return rows

    def _open(self, schema: Schema, *, exact: bool | None = None) -> LowRank | Scatter:
        """Choose the memory, once the dimension is known; `exact` is what a saved engine chose."""
        dim = schema.dim
        if self.rule.start > dim:
            raise UsageError(f"rank must be at most the {dim} columns, got {self.rule.start}")
        self._schema = schema
        self._fingerprint = schema.fingerprint
        self._totals = Totals(np.zeros(dim), 0.0, 0.0, 0.0, np.zeros(dim))
        least, number, restored = self.block_size, self.dtype.itemsize, exact is not None
        kept = self._kept
        if exact is None:
            adaptive = self.rule.adaptive
            fits = budget.is_exact(dim, kept, least, self.memory, adaptive=adaptive, number=number)
            exact = fits and self.exact == "auto"
        free = not (self._sized or self.rule.adaptive)
        if exact:
            self.patience = budget.rows_with_gaps(dim, least, self.memory)
            if free:
                self.block_size = budget.rows_at_once(dim, kept, least, self.memory, number=number)
            self._memory = Scatter(
                dim, self.block_size, self.patience, self.dtype, center=self.center
            )
        else:
            if free or not restored:
                self.block_size = block_rows(dim, kept, None if free else least)
            self._memory = LowRank(dim, self._kept, self.block_size, self.dtype)
            self.patience = self.block_size
        return self._memory

    @property
    def _kept(self) -> int:
        return min(self.target + self.oversample, self._schema.dim)

    def _learn(self, rows: Array, gaps: Guesses | None, names: tuple[str, ...] = ()) -> None:
        if not len(rows):
            return
        memory = self._memory or self._open(schema_of(names, rows.shape[1], center=self.center))
        self._seen = self._filled = None
        if self.center and self._waiting == 0 and self._totals.weight == 0:
            # Rows are measured from the first one: a large mean then costs no digits.
            self._totals = self._totals._replace(mean=rows[0].astype(np.float64))
        start = 0
        while start < len(rows):
            most = self.block_size if gaps is None and memory.gaps is None else self.patience
            if self._waiting >= most:  # of rows without gaps, more may wait
                self._absorb(memory)
            part = slice(start, start + most - self._waiting)
            memory.write(rows[part], self._totals.mean, at=self._waiting)
            if gaps is not None:
                came, some = self._totals.weight > 0, gaps._replace(mask=gaps.mask[part])
                memory.mark(some, at=self._waiting, came=came)
            taken = len(rows[part])
            start, self._waiting = start + taken, self._waiting + taken
            if self._waiting >= (self.block_size if memory.gaps is None else self.patience):
                self._absorb(memory)
        self.n_samples_seen += len(rows)

    def _learn_sparse(self, rows: Any) -> None:
        memory = self._memory or self._open(schema_of((), rows.shape[1], center=self.center))
        if not isinstance(memory, Scatter):
            for part in sparse_rows.dense_blocks(rows, self.block_size):
                self._learn(part, None)
            return
        for part in sparse_rows.blocks(rows):
            if self._waiting:
                self._absorb(memory)
            memory.bring(part, self._totals.mean)
            self._waiting = part.shape[0]
            self._seen = self._filled = None
        if self._waiting:
            self._absorb(memory)
        self.n_samples_seen += rows.shape[0]

    def _absorb(self, memory: LowRank | Scatter) -> None:
        """Fade the past, learn the block, set the next rank."""
        if isinstance(memory, Scatter) and memory.gaps is not None:
            self._totals = memory.absorb_gaps(self._fingerprint, self._totals, self._blend())
            self._waiting = 0
            if self.rule.adaptive:
                seen = self._look(self._kept)
                self._choice.after_block(seen.sigma, seen.energy, self._schema.dim)
            return
        idle = isinstance(memory, Scatter) and not self.rule.adaptive  # it is not decomposed
        blend = self._blend()
        digest = memory.absorb(blend, 0 if idle else self._kept)
        self._totals = self._totals.after(blend, digest)
        self._waiting = 0
        self.fallbacks += digest.found.guarded
        self._choice.after_block(digest.found.sigma, self._totals.energy, self._schema.dim)

    def _blend(self) -> Blend:
        return Blend.of(
            self._waiting,
            self._totals.weight,
            forgetting_factor=self.forgetting_factor,
            center=self.center,
        )

    def _look(self, k: int) -> Subspace:
        """Summarise past and waiting rows at `k` directions."""
        if self._memory is None:
            raise NothingLearnt("nothing was learnt yet: call partial_fit first")
        expected = isinstance(self._memory, Scatter) and self._memory.is_expected
        if expected and (whole := self.whole_scatter) is not None:
            seen = whole.directions(k)
            spares = max(0, seen.rank - self.target)
            return replace(seen, basis=seen.basis.astype(self.dtype), spares=spares)
        if self._waiting:
            blend = self._blend()
            digest = self._memory.look(blend, k)
            totals, found = self._totals.after(blend, digest), digest.found
        else:
            found = self._memory.directions(k)
            totals = self._totals._replace(
                mean=self._totals.mean.copy(), dropped=self._totals.dropped + found.dropped
            )
        return oriented(
            found.rows.astype(self.dtype, copy=False),
            found.sigma,
            spares=max(0, len(found.sigma) - self.target),
            schema=self._fingerprint,
            mean=totals.mean,
            weight=totals.weight,
            energy=totals.energy,
            spectral_bound=totals.dropped,
            channel_energies=totals.energies,
        )


MOST_NAMED = 3  # most columns that a line names


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of a table's columns (pandas, polars, pyarrow); () without usable names."""
    if type(X) is np.ndarray:
        return ()  # at once: calls of one row are many
    found = getattr(X, "columns", None) if not hasattr(X, "column_names") else X.column_names
    names = tuple(found) if isinstance(found, Iterable) else ()
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return ()
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return ()
    return names


def schema_of(names: tuple[str, ...], dim: int, *, center: bool) -> Schema:
    """Return the schema of rows with such columns; an anonymous one without names."""
    channels = tuple(map(Channel, names)) if len(names) == dim else dim
    return Schema(channels, center="fleet" if center else "none")


def check_names(names: tuple[str, ...], schema: Schema) -> None:
    """Refuse columns of other names, or in another order, than those that were learnt."""
    if not names or not schema.linear or isinstance(schema.channels, int):
        return
    known = schema.names
    if len(names) != len(known) or names == known:
        return
    pairs = [(ours, theirs) for ours, theirs in zip(known, names, strict=True) if ours != theirs]
    expected, got = (", ".join(side[:MOST_NAMED]) for side in zip(*pairs, strict=True))
    more = " ..." if len(pairs) > MOST_NAMED else ""
    cure = "give them in that order" if set(names) == set(known) else "select those"
    raise UsageError(f"expected columns {expected}{more}, got {got}{more}: {cure}")
