"""One replay: settings and a table in, figures out. This module does not print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from submerge import SAPCA, Array, Schema, Subspace
from submerge.features import FeatureMap
from submerge.pca.rank import RankRule
from submerge_files.console.progress import advancing
from submerge_lab.replay import exact
from submerge_lab.replay.kernel import (
    KernelFigures,
    dominance_note,
    figures_of,
    filler_of,
    settle_gamma,
    uncached,
    within_float32,
)
from submerge_lab.replay.over_time import ErrorOverTime, OverTime
from submerge_lab.replay.rows import (
    check_magnitudes,
    deal,
    deal_with_gaps,
    hidden_error,
    without_mean,
)
from submerge_lab.replay.settings import ReplaySettings, cut
from submerge_lab.replay.stacked import Stacked
from submerge_lab.replay.streaming import Leaf, merge_leaves, peak_bytes, stream


@dataclass(frozen=True)
class RankBound:
    """The same rows at a fixed rank; fields as in `ReplayOutcome`."""

    rank: int
    error: float
    optimum: float
    ratio: float | None
    over_time: OverTime | None

    def figures(self) -> dict[str, Any]:
        """Return the fields for JSON; errors over time only if they were asked for."""
        plain = asdict(self)
        if self.over_time is None:
            del plain["over_time"]
        return plain


@dataclass(frozen=True)
class ReplayOutcome:
    """Figures of a replay. All but counts and times are per row, in squared units.

    With forgetting, rows have the weights that they have at the end of the stream in error,
    optimum, bounds and energy, and "per row" is per unit of weight. With a kernel, all of these are
    of the rows' features.

    hidden_error : hidden on purpose; None without gaps
    bounds, over_time : None if they were not asked for
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
    hidden_error: float | None = None
    kernel: KernelFigures | None = None
    bounds: dict[str, RankBound] | None = None
    over_time: OverTime | None = None

    def figures(self) -> dict[str, Any]:
        """Return the fields for JSON; what was not asked for is left out."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("kernel", "bounds", "over_time"):
            del plain[name]
        if self.kernel is not None:
            plain |= asdict(self.kernel)
        if self.bounds is not None:
            plain["bounds"] = {name: each.figures() for name, each in self.bounds.items()}
        return plain if self.over_time is None else plain | {"over_time": asdict(self.over_time)}


@dataclass(frozen=True)
class ErrorCurves:
    """The data of the picture: both spectra, per row, and the record of each leaf."""

    shown: Array
    exact: Array
    leaves: list[Leaf]


def replay(
    table: Stacked, settings: ReplaySettings, *, watch: bool
) -> tuple[ReplayOutcome, ErrorCurves]:
    """Stream the table as the settings say, and compare the result with exact PCA.

    With `settings.bounds` the rows are learnt at the least and at the largest rank that the rule
    chose, too: the paper's SPCA lo and SPCA hi.
    """
    outcome, curves = _replay(table, settings, watch=watch or settings.bounds)
    if not settings.bounds:
        return outcome, curves
    start = settings.rule(table.rows.shape[1]).start
    ranks = [start, *(moment.rank for leaf in curves.leaves for moment in leaf.moments)]
    # Rows that are all alike have no direction to show.
    least = max(1, min(ranks))
    at = {rank: _at(rank, table, settings) for rank in {least, max(ranks)}}
    return replace(outcome, bounds={"lo": at[least], "hi": at[max(ranks)]}), curves


def _at(rank: int, table: Stacked, settings: ReplaySettings) -> RankBound:
    fixed = replace(settings, rank=rank, rank_rule="fixed", hold_off=0, bounds=False)
    found, _ = _replay(table, fixed, watch=False)
    return RankBound(rank, found.error, found.optimum, found.ratio, found.over_time)


def _replay(
    table: Stacked, settings: ReplaySettings, *, watch: bool
) -> tuple[ReplayOutcome, ErrorCurves]:
    rule = settings.rule(table.rows.shape[1])
    settings.check(table.rows)
    check_magnitudes(table.rows, table.names)
    gaps = deal_with_gaps(
        table.rows, table.names, missing=settings.missing, zero_is_missing=settings.zero_is_missing
    )
    rows = without_mean(gaps.rows) if settings.center == "offline" else gaps.rows
    map_ = None if settings.features is None else settle_gamma(settings.features, rows)
    loud = None if map_ is None else dominance_note(rows, table.names)

    dim = rows.shape[1] if map_ is None else map_.dim(rows.shape[1])
    engine = partial(_engine, settings, rule, dim, curved=map_ is not None)
    if settings.whole_blocks:
        rows = cut(rows, engine().block_size)
    record = _record(settings, dim)
    leaves = _learn(rows, settings, engine, map_, watch=watch, over_time=record)
    subspace, seconds = _summary(leaves, settings)
    learnt = leaves[0].rows if len(leaves) == 1 else np.concatenate([leaf.rows for leaf in leaves])

    center = settings.center == "stream"
    error, spectrum, total = _account(leaves, learnt, subspace, map_, settings)
    optimum = float(spectrum[subspace.rank :].sum())
    first, longest = leaves[0].engine, max((leaf.rows for leaf in leaves), key=len)
    tree = f", {len(leaves)} leaves merged with fan-in {settings.fan_in}"
    outcome = ReplayOutcome(
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
        peak_bytes=peak_bytes(longest, engine, None if map_ is None else uncached(map_).lift),
        fallbacks=sum(leaf.engine.fallbacks for leaf in leaves),
        rows_per_s=len(learnt) / seconds,
        filled=sum(leaf.filled for leaf in leaves),
        dropped=gaps.dropped,
        zeros=gaps.zeros,
        leaves=len(leaves),
        hidden_error=None
        if map_ is not None or not gaps.missing
        else hidden_error(
            rows, lambda part: _summary(_learn(part, settings, engine, None), settings)[0]
        ),
        notes=(*table.notes, *([] if loud is None else [loud])),
        kernel=None if map_ is None else figures_of(learnt, map_, subspace, center=center),
        over_time=None if record is None else record.noted,
    )
    return outcome, ErrorCurves(subspace.explained_variance, spectrum / total, leaves)


def _learn(
    rows: Array,
    settings: ReplaySettings,
    engine: Callable[[], SAPCA],
    map_: FeatureMap | None,
    *,
    watch: bool = False,
    over_time: ErrorOverTime | None = None,
) -> list[Leaf]:
    """Learn the rows of each leaf with an engine of its own."""
    rule, width = settings.rule(rows.shape[1]), rows.shape[1]
    with advancing("learning", len(rows)) as progress, within_float32(map_):
        return [
            stream(
                part,
                engine(),
                watch=watch,
                progress=progress,
                lift=None if map_ is None else map_.lift,
                filler=None if map_ is None else filler_of(settings, rule, width),
                over_time=over_time,
            )
            for part in deal(rows, settings.leaves, settings.deal)
        ]


def _record(settings: ReplaySettings, dim: int) -> ErrorOverTime | None:
    if not settings.over_time:
        return None
    return ErrorOverTime(
        dim,
        forgetting_factor=settings.forgetting_factor,
        center=settings.center == "stream",
    )


def _engine(settings: ReplaySettings, rule: RankRule, dim: int, *, curved: bool) -> SAPCA:
    """Return an engine as the settings say, for rows or for their features, (n, dim)."""
    return SAPCA(
        rule,
        oversample=settings.oversample,
        forgetting_factor=settings.forgetting_factor,
        block_size=settings.block_size,
        exact=settings.exact,
        # float32, as on a device: features are numbers of one size.
        dtype=np.float32 if curved else np.float64,
        # With a schema it knows from the start how many rows a block has.
        schema=Schema.anonymous(dim, center="fleet" if settings.center == "stream" else "none"),
    )


def _account(
    leaves: list[Leaf],
    learnt: Array,
    subspace: Subspace,
    map_: FeatureMap | None,
    settings: ReplaySettings,
) -> exact.Account:
    """Return error, spectrum and total weight, with the weights of rows when learnt."""
    ages = [np.arange(len(leaf.rows) - 1, -1, -1) for leaf in leaves]
    weights = settings.forgetting_factor ** np.concatenate(ages).astype(np.float64)
    center = settings.center == "stream"
    if map_ is None:
        return exact.of_rows(learnt, weights, subspace, center=center)
    return exact.of_features(learnt, weights, subspace, map_, center=center)


def _summary(leaves: list[Leaf], settings: ReplaySettings) -> tuple[Subspace, float]:
    """Return the result at the rank that is shown, and the seconds it took."""
    learning = sum(leaf.seconds for leaf in leaves)
    if len(leaves) == 1:
        return leaves[0].engine.shown, learning
    root, rank, merging = merge_leaves(leaves, fan_in=settings.fan_in)
    return root.truncated(rank), learning + merging
