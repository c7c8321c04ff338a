"""Folds: the cells of a history as a few spans of time, and a model of all but each.

Limits, rank and what is left out follow from rows that the model had not learnt: each span is
scored by the merge of the others, which needs no pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import NothingLearnt
from submerge.history.knowledge import model_of, summaries_of
from submerge.history.layout import Cell, LaidOut
from submerge.history.settings import FitSettings
from submerge.pca.choice import LEAST_FOLDS, best_rank, held_out
from submerge.pca.expectation import Estimate, GappedRows, RareRows, complete_rows, estimate
from submerge.pca.factor import factors_of, floored
from submerge.pca.merging import merge_whole
from submerge.pca.own_scatter import KAPPAS, WIDEST, OwnScatter, of_node
from submerge.pca.scatter_sum import Center
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Model
from submerge.protocol.summaries import below
from submerge.schema import Channel, Schema
from submerge.stats.moments import Moments

MOST_RARE = 1 << 15
"""Numbers in the rows with rare gaps that a cell keeps: of more, every second one counts twice."""


@dataclass(frozen=True, slots=True, eq=False)
class CellSummary:
    """Sums of a cell's rows by what they lack, and those with rare gaps; NaN without times."""

    group: GappedRows
    first: float
    last: float
    thinned: bool = False  # some of the rows with rare gaps stand for others

    @property
    def weight(self) -> float:
        return sum(part.weight for part in self.group.sums.values()) + float(
            self.group.rare.weights.sum()
        )

    @property
    def bounded(self) -> CellSummary:
        """The same with at most `MOST_RARE` numbers in rows with rare gaps, and few sums."""
        rare, thinned = self.group.rare, self.thinned
        while rare.values.size > MOST_RARE:
            some = np.arange(len(rare)) % 2 == 0
            weights = rare.weights * (rare.weights.sum() / rare.weights[some].sum())
            rare, thinned = RareRows(rare.values[some], rare.mask[some], weights[some]), True
        return replace(self, group=self.group._replace(rare=rare).bounded, thinned=thinned)

    @property
    def scatter(self) -> WholeScatter:
        """The scatter of rows without gaps: all of them, once gaps are filled (`folds`)."""
        return self.group.sums[complete_rows(self.group.rare.values.shape[1])]

    @property
    def is_whole(self) -> bool:
        """Whether no row has a gap, or all gaps are filled."""
        (dim,) = self.group.rare.values.shape[1:]
        return not len(self.group.rare) and self.group.sums.keys() == {complete_rows(dim)}

    def filled(self, known: Estimate) -> CellSummary:
        """Return it with gaps filled by what is known."""
        return self.of_whole(self.group.filled(known))

    def of_whole(self, whole: WholeScatter) -> CellSummary:
        """Return the same rows with that scatter."""
        group = GappedRows(
            {complete_rows(whole.dim): whole}, RareRows.none(whole.dim), whole.schema
        )
        return CellSummary(group, self.first, self.last)

    def with_next(self, other: CellSummary) -> CellSummary:
        """Return both as one cell; `other` is later."""
        both = self.group.and_rows(other.group)
        first, last = min(self.first, other.first), max(self.last, other.last)
        return CellSummary(both, first, last, self.thinned or other.thinned).bounded


def mirrored(whole: WholeScatter) -> WholeScatter:
    """Return a scatter whose lower triangle is its upper one: as its bytes are read back."""
    upper = np.triu(whole.scatter)
    held = upper + np.triu(upper, 1).T
    held.flags.writeable = False
    return replace(whole, held=held)


MOST_FOLDS = 8  # spans of time that are scored by the others
FAR = 12.0  # robust deviations by which a cell has to be less likely than others to be left out
NEAR = 1.5  # the same for a cell beside one that is left out: a few rows of a fault are enough
ON = 3.0  # the same for a cell beside one that is left out, to look on from: a fault begins slowly
ROUNDS = 8  # how often cells are judged by those that were kept before, at most

LEAST_DROP = 2.0
"""And by how much, in nats a row, at least: where all cells are alike, small differences are many
deviations."""

APART = 0.5
"""Share of all rows that has to be left without a fold and its neighbours to judge it by them."""

LEAST_CELLS, MOST_LEFT_OUT = 10, 0.2
"""Cells of which some may be left out, and their share, in whole spans."""


class HistorySpan(NamedTuple):
    """Cells of a machine that follow one another; times are NaN without any."""

    first: float
    last: float
    rows: int  # that could have been learnt
    drop: float  # if left out: nats a row less likely than a typical cell, where most
    begin: Cell
    end: Cell

    @property
    def machine(self) -> int:
        """Its number, as in `Cell`."""
        return self.begin.machine


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    schema: Schema  # with center and scale
    moments: Moments  # of the channels in their units
    cells: Mapping[Cell, CellSummary]  # those that are learnt, scaled
    deviant: tuple[HistorySpan, ...]  # those that are left out, as spans
    fold_of: Mapping[Cell, int]
    rank: int
    # what fills gaps of each machine, in units of the channels; empty where there were none
    known: Mapping[int, Estimate]

    @property
    def count(self) -> int:
        return max(self.fold_of.values()) + 1

    @property
    def whole(self) -> WholeScatter:
        return pooled_scatter(self.cells, self._center)

    def owns(self, others: Sequence[WholeScatter]) -> dict[tuple[int, int], OwnScatter]:
        """Return `HeldOut.owns`; none where machines have one mean, or there are many channels."""
        if self._center != "own" or self.schema.width > WIDEST:
            return {}
        fleets = [each.scatter / each.weight for each in others]
        fleets = [each + np.diag(floored(0 * np.diag(each), np.diag(each))) for each in fleets]
        return {
            (machine, fold): own
            for machine, cells in _by_machine(self.cells).items()
            for fold, own in self._owns(cells, fleets).items()
        }

    def _owns(
        self, cells: Mapping[Cell, CellSummary], fleets: Sequence[Array]
    ) -> dict[int, OwnScatter]:
        found, evidence = dict[int, OwnScatter](), np.zeros(len(KAPPAS))
        for fold in (-1, *sorted({self.fold_of[cell] for cell in cells})):
            inside = {cell: each for cell, each in cells.items() if self.fold_of[cell] == fold}
            found[fold] = _own(cells, self.fold_of, fold, self.schema.width)
            if inside and found[fold].weight:
                held = _merged(inside)
                evidence += found[fold].likelihoods(fleets[fold], held.scatter, held.weight)
        known = tuple(evidence.tolist())
        return {fold: replace(each, evidence=known) for fold, each in found.items()}

    def without(self, fold: int) -> WholeScatter:
        """Return all that is learnt but one fold and the cells beside it in time."""
        # Where causes are slow, rows whose neighbours were learnt are not held out: T2 shows it
        # most. Where too few rows would be left, the neighbours stay; with one fold, all do.
        of_span = {cell.when: each for cell, each in self.fold_of.items()}
        pairs = [(a, b) for a, b in pairwise(sorted(of_span)) if fold in (of_span[a], of_span[b])]
        near = {span for pair in pairs for span in pair}
        apart = {
            cell: each
            for cell, each in self.cells.items()
            if cell.when not in near and self.fold_of[cell] != fold
        }
        rows = sum(each.scatter.weight for each in apart.values())
        if rows >= APART * self.moments.count:
            return pooled_scatter(apart, self._center)
        return _without(self.cells, self.fold_of, fold, self._center)

    @property
    def _center(self) -> Center:
        return "own" if self.schema.center == "own" else "fleet"


def folds_of(
    cells: Mapping[Cell, CellSummary], channels: Sequence[Channel], settings: FitSettings
) -> Folds:
    """Return the folds of a history; NothingLearnt if no row could be learnt, or nothing varies."""
    if not cells:
        raise NothingLearnt("expected rows that can be learnt, got none")
    deviant: dict[Cell, float] = {}
    moments, schema, scaled, known = _scaled(cells, cells, channels, settings)
    fold_of = _spread(scaled)
    for _ in range(ROUNDS if settings.leaves_out and moments.varying else 0):
        # What is left out must neither settle the scale nor judge what is beside it.
        before, deviant = deviant, _deviant(scaled, deviant, fold_of, settings)
        if deviant.keys() == before.keys():
            break
        kept = {cell: each for cell, each in cells.items() if cell not in deviant}
        moments, schema, scaled, known = _scaled(cells, kept, channels, settings)
    scaled = {cell: each for cell, each in scaled.items() if cell not in deviant}
    if not moments.varying:
        raise NothingLearnt("expected channels that vary, got only constant ones")
    fold_of = _spread(scaled)
    rank = settings.rank or _best_rank(scaled, fold_of, settings)
    left_out = spans_of(deviant, cells)
    return Folds(schema, moments, scaled, left_out, fold_of, below(rank, schema.dim), known)


def spans_of(
    some: Mapping[Cell, float], cells: Mapping[Cell, CellSummary]
) -> tuple[HistorySpan, ...]:
    """Return some cells with their drops as spans."""
    spans = []
    for near in neighbours(some, sorted(cells)):
        first, last = cells[near[0]].first, cells[near[-1]].last
        rows = round(sum(cells[cell].weight for cell in near))
        drop = max(some[cell] for cell in near)
        spans.append(HistorySpan(first, last, rows, drop, near[0], near[-1]))
    return tuple(spans)


def neighbours(some: Collection[Cell], ordered: Sequence[Cell]) -> list[list[Cell]]:
    """Return some cells in lists of such as follow one another among all cells of a machine."""
    found: list[list[Cell]] = []
    for before, cell in zip([None, *ordered], ordered, strict=False):
        if cell not in some:
            continue
        if found and found[-1][-1] == before and before[:2] == cell[:2]:
            found[-1].append(cell)
        else:
            found.append([cell])
    return found


def _scaled(
    cells: Mapping[Cell, CellSummary],
    kept: Mapping[Cell, CellSummary],
    channels: Sequence[Channel],
    settings: FitSettings,
) -> tuple[Moments, Schema, dict[Cell, CellSummary], dict[int, Estimate]]:
    """Return moments of what is kept, its schema, all cells under it, and what filled gaps."""
    center, known = settings.center(len({cell.machine for cell in kept})), dict[int, Estimate]()
    if not all(each.is_whole for each in cells.values()):
        known = known_of(kept, center)
        if {cell.machine for cell in cells} - known.keys():
            known = known_of(cells, center) | known
        cells = {cell: each.filled(known[cell.machine]) for cell, each in cells.items()}
    whole = pooled_scatter({cell: cells[cell] for cell in kept}, center)
    energies = (
        whole.scatter.diagonal() if whole.channel_energies is None else whole.channel_energies
    )
    moments = Moments(round(whole.weight), whole.mean, np.array(energies))
    schema = settings.schema or Schema(tuple(channels), scaling=moments.scaling, center=center)
    width = len(channels)
    offset, scale = np.zeros(width), np.ones(width)
    if schema.scaling is not None:
        offset, scale = np.array(schema.scaling.offset), np.array(schema.scaling.scale)
    scaled = {}
    for cell, summary in cells.items():
        scatter = summary.scatter.scaled(offset, scale)
        scaled[cell] = summary.of_whole(replace(scatter, schema=schema.fingerprint))
    return moments, schema, scaled, known


def known_of(cells: Mapping[Cell, CellSummary], center: Center) -> dict[int, Estimate]:
    """Return what cells say of the rows of each machine."""
    machines = sorted({cell.machine for cell in cells})
    about = {machine: machine if center == "own" else 0 for machine in machines}
    groups: dict[int, GappedRows] = {}
    for cell in sorted(cells):
        place, group = about[cell.machine], cells[cell].group
        groups[place] = groups[place].and_rows(group) if place in groups else group
    known, _ = estimate([*groups.values()])
    of_place = dict(zip(groups, known, strict=True))
    return {machine: of_place[place] for machine, place in about.items()}


def pooled_scatter(cells: Mapping[Cell, CellSummary], center: Center) -> WholeScatter:
    """Return the scatter of all cells, of each machine about its own mean or about that of all."""
    return merge_whole(*map(_merged, _by_machine(cells).values()), center=center)


def _by_machine(cells: Mapping[Cell, CellSummary]) -> dict[int, dict[Cell, CellSummary]]:
    found: dict[int, dict[Cell, CellSummary]] = {}
    for cell in sorted(cells):
        found.setdefault(cell.machine, {})[cell] = cells[cell]
    return found


def _merged(cells: Mapping[Cell, CellSummary]) -> WholeScatter:
    return merge_whole(*(each.scatter for each in cells.values()))


def _own(
    cells: Mapping[Cell, CellSummary], fold_of: Mapping[Cell, int], fold: int, dim: int
) -> OwnScatter:
    """Return how the rows of one machine vary, in all folds but one."""
    known = {cell: each for cell, each in cells.items() if fold_of[cell] != fold}
    if not known:
        return OwnScatter.none(dim)
    whole = _merged(known)
    return replace(OwnScatter.none(dim), sums=whole.scatter, weight=whole.weight)


def _without(
    cells: Mapping[Cell, CellSummary], fold_of: Mapping[Cell, int], fold: int, center: Center
) -> WholeScatter:
    others = {cell: each for cell, each in cells.items() if fold_of[cell] != fold}
    return pooled_scatter(others or cells, center)


def _spread(cells: Mapping[Cell, CellSummary]) -> dict[Cell, int]:
    """Return the fold of each cell: neighbours in time together, of about as many rows each."""
    # Of runs that are all of one time, by machines.
    alone = len({cell.when for cell in cells}) < 2
    rows: dict[tuple[int, int], float] = {}
    for cell, each in cells.items():
        place = (cell.machine, 0) if alone else cell.when
        rows[place] = rows.get(place, 0.0) + each.weight
    spans = sorted(rows)
    weights = np.array([rows[span] for span in spans])
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    count = min(MOST_FOLDS, len(spans))
    folds = np.minimum((middle * count).astype(int), count - 1)
    # Without those that no cell has.
    _, folds = np.unique(folds, return_inverse=True)
    of_span = dict(zip(spans, folds.tolist(), strict=True))
    return {cell: of_span[(cell.machine, 0) if alone else cell.when] for cell in cells}


def _best_rank(
    cells: Mapping[Cell, CellSummary], fold_of: Mapping[Cell, int], settings: FitSettings
) -> int:
    parts: dict[int, dict[Cell, CellSummary]] = {}
    for cell, each in cells.items():
        parts.setdefault(fold_of[cell], {})[cell] = each
    center = settings.center(len({cell.machine for cell in cells}))
    folds = [pooled_scatter(parts[fold], center) for fold in sorted(parts)]
    if len(folds) < LEAST_FOLDS:
        folds = [cells[cell].scatter for cell in sorted(cells)]
    found = best_rank(folds, most=settings.rank_max, center=center, spare=settings.oversample)
    return found or min(settings.rank_max, max(1, folds[0].dim // 2))


def _deviant(
    cells: Mapping[Cell, CellSummary],
    before: Collection[Cell],
    fold_of: Mapping[Cell, int],
    settings: FitSettings,
) -> dict[Cell, float]:
    """Return how much less likely than usual rows of cells are that are left out."""
    ordered = sorted(cells)
    most = int(MOST_LEFT_OUT * len(ordered))
    if len(ordered) < LEAST_CELLS:
        return {}
    likely = _likelihoods(cells, before, fold_of, settings)
    usual = [cell for cell in ordered if cell not in before]
    typical = _typical(likely, usual)
    drop = {cell: typical[cell] - likely[cell] for cell in ordered}
    spread = 1.4826 * float(np.median([abs(drop[cell]) for cell in usual]))
    far = max(FAR * spread, LEAST_DROP)
    grown = {cell for cell in ordered if drop[cell] > far}
    # A fault does not begin and end with a cell: neighbours go with it.
    for around in (ordered, ordered[::-1]):
        for cell, beside in pairwise(around):
            on = cell in grown and drop[cell] > ON * spread and cell.machine == beside.machine
            if on and drop[beside] > NEAR * spread:
                grown.add(beside)
    deviant: dict[Cell, float] = {}
    spans = neighbours(grown, ordered)
    for span in sorted(spans, key=lambda span: -max(drop[cell] for cell in span)):
        # A part of a fault that is learnt is worse than all of it: its rows judge one another.
        if len(deviant) + len(span) <= most:
            deviant |= {cell: drop[cell] for cell in span}
    return deviant


def _typical(likely: Mapping[Cell, float], usual: Sequence[Cell]) -> dict[Cell, float]:
    """Return how likely the rows of each cell are usually."""
    # Rows that vary more are less likely, so it is that of the machine, where it has enough cells.
    of_all = float(np.median([likely[cell] for cell in usual]))
    found: dict[Cell, float] = {}
    for machine, cells in groupby(sorted(likely), lambda cell: cell.machine):
        own = [likely[cell] for cell in usual if cell.machine == machine]
        most = float(np.median(own)) if len(own) >= LEAST_CELLS else of_all
        found |= dict.fromkeys(cells, most)
    return found


def _likelihoods(
    cells: Mapping[Cell, CellSummary],
    without: Collection[Cell],
    fold_of: Mapping[Cell, int],
    settings: FitSettings,
) -> dict[Cell, float]:
    """Return the mean log density of each cell's rows by what others than `without` have learnt."""
    kept = {cell: each for cell, each in cells.items() if cell not in without}
    of_kept = _by_machine(kept)
    machines = _by_machine(cells) | of_kept
    means = {machine: _merged(each).mean for machine, each in machines.items()}
    center = settings.center(len(machines))
    found: dict[Cell, float] = {}
    for fold in sorted(set(fold_of.values())):
        others = _without(kept, fold_of, fold, center)
        directions = others.directions(settings.rank or settings.rank_max)
        factors, owns = factors_of(directions, directions), dict[int, OwnScatter]()
        for cell in cells:
            if fold_of[cell] == fold:
                held = cells[cell].scatter
                # From its machine's mean, which may be far from that of the others.
                if center == "own" or len(machines) == 1:
                    held = replace(held, mean=held.mean - means[cell.machine] + directions.mean)
                if factors is None:
                    found[cell] = -np.inf
                    continue
                # A machine of another kind is no fault: its own rows judge as well.
                own = None
                if center == "own" and held.dim <= WIDEST:
                    own = owns.get(cell.machine)
                    own = own or _own(of_kept.get(cell.machine, {}), fold_of, fold, held.dim)
                    owns[cell.machine] = own
                (by,) = of_node((factors,), directions, own)
                found[cell] = held_out(directions, by, held)
    return found


@dataclass(frozen=True)
class HeldOut:
    """Judges rows by models that had not learnt them."""

    schema: Schema
    rank: int
    fold_of: Mapping[Cell, int]  # rows of other cells are left out
    others: tuple[WholeScatter, ...]  # for each fold, all that is learnt but it
    laid: LaidOut
    block_s: float = 0.0  # length of the blocks whose maxima are counted
    # by machine and fold, how a machine's rows of the others vary; by fold -1 of all
    owns: Mapping[tuple[int, int], OwnScatter] = field(default_factory=dict)
    _models: dict[int, Model] = field(default_factory=dict)

    @classmethod
    def of(cls, folds: Folds, laid: LaidOut) -> HeldOut:
        """Return what judges the rows of some folds."""
        others = tuple(mirrored(folds.without(fold)) for fold in range(folds.count))
        owns = folds.owns(others)
        return cls(folds.schema, folds.rank, folds.fold_of, others, laid, owns=owns)

    def of_blocks(self, block_s: float) -> HeldOut:
        """Return the same with blocks of another length."""
        return replace(self, block_s=block_s, _models={})

    @property
    def row_s(self) -> float:
        """Time that a row stands for: without times, a second."""
        return self.laid.period_s or 1.0

    def model(self, fold: int, settings: FitSettings) -> Model:
        """Return the model of all folds but one; it is made once."""
        if fold not in self._models:
            self._models[fold] = model_of(
                self.others[fold],
                self.schema,
                summaries_of(self.rank, settings),
                rank=self.rank,
                version=fold + 1,
                block_s=self.block_s,
            )
        return self._models[fold]
