"""One replay: settings and a table in, figures out. Nothing here prints."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from submerge import SAPCA, Array, EnergyRank, FixedRank, RankRule, SapcaRank, Subspace, UsageError
from submerge_client.datasets import Table
from submerge_fleet import exact
from submerge_fleet.progress import advancing
from submerge_fleet.rows import Missing, check_magnitudes, deal_with_gaps, dealt, without_mean
from submerge_fleet.streaming import Leaf, merged, peak_bytes, stream


@dataclass(frozen=True)
class Settings:
    """What the options of `submerge replay` say; `--help` says what each one does."""

    rank: int | None = None
    rank_rule: Literal["fixed", "sapca", "energy"] = "fixed"
    alpha: float = 0.01
    beta: float = 0.10
    energy: tuple[float, float] = (0.95, 0.98)
    block: int | None = None
    oversample: int = 5
    exact: Literal["auto", "never"] = "auto"
    center: Literal["stream", "none", "offline"] = "stream"
    forgetting_factor: float = 1.0
    missing: Missing = "reject"
    zero_is_missing: bool = False
    leaves: int = 1
    fan_in: int = 4
    deal: Literal["turn", "runs"] = "turn"
    whole_blocks: bool = False


PAPER: dict[str, Any] = {
    "rank_rule": "sapca",
    "oversample": 0,
    "exact": "never",
    "center": "offline",
    "whole_blocks": True,
}
"""The paper's algorithm and its scripts' ways, the mistakes in print corrected."""


@dataclass(frozen=True)
class Outcome:
    """What a replay found. All but counts and times is per row, in squared units.

    With forgetting, rows weigh in error, optimum, bounds and energy alike what they weigh
    at the end of the stream, and "per row" is per unit of weight.

    Attributes
    ----------
    error : ||Y - Y U U'||_F^2 / n for the final subspace and all rows
    optimum : the same for the best subspace of that rank, by exact PCA
    ratio : error / optimum; None where only the optimum is zero
    frobenius_bound, spectral_bound, energy : the subspace's own, over its weight
    seconds : spent learning, and merging if there is a tree
    peak_bytes : of one estimator (of a tree: its largest leaf), by tracemalloc
    fallbacks : blocks that needed the slower, guarded kernel
    """

    algorithm: str
    rows: int
    dim: int
    rank: int
    error: float
    optimum: float
    ratio: float | None
    frobenius_bound: float
    spectral_bound: float
    energy: float
    seconds: float
    peak_bytes: int
    fallbacks: int
    rows_per_s: float
    filled: int
    dropped: int
    zeros: int
    leaves: int
    notes: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary, for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Curves:
    """What the picture shows: both spectra, per row, and each leaf's diary."""

    shown: Array
    exact: Array
    leaves: list[Leaf]


def replay(table: Table, settings: Settings, *, watch: bool) -> tuple[Outcome, Curves]:
    """Stream the table as the settings say, and hold the result against exact PCA."""
    rule = _rule(settings, table.rows.shape[1])
    _check(settings, len(table.rows))
    check_magnitudes(table.rows, table.names)
    gaps = deal_with_gaps(
        table.rows,
        table.names,
        missing=settings.missing,
        zero_is_missing=settings.zero_is_missing,
    )
    rows = without_mean(gaps.rows) if settings.center == "offline" else gaps.rows

    def engine() -> SAPCA:
        return SAPCA(
            rule,
            oversample=settings.oversample,
            forgetting_factor=settings.forgetting_factor,
            center=settings.center == "stream",
            block_size=settings.block,
            exact=settings.exact,
        )

    if settings.whole_blocks:
        rows = _cut(rows, engine().block_size)
    with advancing("learning", len(rows)) as progress:
        leaves = [
            stream(part, engine(), watch=watch, progress=progress)
            for part in dealt(rows, settings.leaves, settings.deal)
        ]
    subspace, seconds = _summary(leaves, settings.fan_in)
    learnt = leaves[0].rows if len(leaves) == 1 else np.concatenate([leaf.rows for leaf in leaves])

    # Held to the same account: rows weigh here what they weighed there.
    ages = [np.arange(len(leaf.rows) - 1, -1, -1) for leaf in leaves]
    weights = settings.forgetting_factor ** np.concatenate(ages).astype(np.float64)
    roots, total = np.sqrt(weights)[:, None], float(weights.sum())
    mean = np.zeros(learnt.shape[1])
    if settings.center == "stream":
        mean = learnt[0] + weights @ (learnt - learnt[0]) / total
    spectrum = exact.spectrum(roots * (learnt - mean))
    error = exact.residual(roots * (learnt - subspace.mean), subspace.basis)
    optimum = float(spectrum[subspace.rank :].sum())
    first = leaves[0].engine
    tree = f", {len(leaves)} leaves merged with fan-in {settings.fan_in}"
    outcome = Outcome(
        algorithm=first.algorithm + (tree if len(leaves) > 1 else ""),
        rows=len(learnt),
        dim=learnt.shape[1],
        rank=subspace.rank,
        error=error / total,
        optimum=optimum / total,
        ratio=exact.ratio(error, optimum, float(spectrum.sum())),
        frobenius_bound=subspace.frobenius_bound / subspace.weight,
        spectral_bound=subspace.spectral_bound / subspace.weight,
        energy=subspace.energy / subspace.weight,
        seconds=seconds,
        peak_bytes=peak_bytes(max((leaf.rows for leaf in leaves), key=len), engine),
        fallbacks=sum(leaf.engine.fallbacks for leaf in leaves),
        rows_per_s=len(learnt) / seconds,
        filled=sum(leaf.filled for leaf in leaves),
        dropped=gaps.dropped,
        zeros=gaps.zeros,
        leaves=len(leaves),
        notes=table.notes,
    )
    return outcome, Curves(subspace.explained_variance, spectrum / total, leaves)


def _check(settings: Settings, rows: int) -> None:
    """Refuse, in the command's own words, what an engine or a tree would refuse in theirs."""
    if settings.block is not None and not 1 <= settings.block <= rows:
        raise UsageError(
            f"--block must be from 1 to the {rows} rows there are, got {settings.block}"
        )
    if settings.oversample < 0:
        raise UsageError(f"--oversample must be at least 0, got {settings.oversample}")
    if not 0 < settings.forgetting_factor <= 1:
        raise UsageError(
            f"--forgetting-factor must be in (0, 1], got {settings.forgetting_factor:g}"
        )
    if settings.fan_in < 2 or settings.fan_in & (settings.fan_in - 1):
        raise UsageError(f"--fan-in must be a power of two, at least 2, got {settings.fan_in}")


def _rule(settings: Settings, dim: int) -> RankRule:
    start = min(10, dim) if settings.rank is None else settings.rank
    if not 1 <= start <= dim:
        raise UsageError(f"--rank must be from 1 to the {dim} columns there are, got {start}")
    if settings.rank_rule == "sapca":
        return SapcaRank(start, alpha=settings.alpha, beta=settings.beta)
    if settings.rank_rule == "energy":
        return EnergyRank(*settings.energy, start=start)
    return FixedRank(start)


def _cut(rows: Array, block: int) -> Array:
    whole = len(rows) // block * block
    if not whole:
        raise UsageError(f"--paper needs at least one block of {block} rows, got {len(rows)} rows")
    return rows[:whole]


def _summary(leaves: list[Leaf], fan_in: int) -> tuple[Subspace, float]:
    """The subspace to judge, at the rank that is shown, and the seconds it took."""
    learning = sum(leaf.seconds for leaf in leaves)
    if len(leaves) == 1:
        return leaves[0].engine.shown, learning
    root, rank, merging = merged(leaves, fan_in=fan_in)
    return root.truncated(rank), learning + merging
