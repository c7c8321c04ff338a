"""compare(): how far one model is from another of the same channels. Directions of like variance
may turn into one another freely. So an angle means something only between directions whose variance
is clearly larger than the next one's, in both models.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from submerge import Array, Schema, Subspace
from submerge.protocol.summaries import Summary
from submerge.schema import differences
from submerge_files.console.units import name_text, printable
from submerge_files.model_file import SavedModel

SEPARATED = 2.0
"""A direction is separated from those behind it if its eigenvalue is this multiple of the next."""

NAMED = 5
"""Channels that are named for a person."""


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """One model against another.

    rank : Leading directions of each that are compared.
    separated : How many of them are separated from those behind, in both: up to the last eigenvalue
        that is twice the next.
    angles_deg : Principal angles between the leading `rank` of both, the largest first.
    separated_deg : The largest between the separated ones of both; None if there are none.
    shift : For each channel, the second mean less the first, in standard deviations of the first
        model; infinite where a channel that never varied has another mean.
    variance_ratio : All variance of the second over all of the first.
    variance_ratios : The same along each direction, one after another.
    features : Of a kernel group's features; the rest is of its readings. Its `shift` is empty:
        features have no names.
    """

    rank: int
    separated: int
    angles_deg: tuple[float, ...]
    separated_deg: float | None
    shift: tuple[float, ...]
    variance_ratio: float
    variance_ratios: tuple[float, ...]
    features: ModelComparison | None = None


def compare_summaries(
    first: Summary, second: Summary, *, rank: int | None = None
) -> ModelComparison:
    """Compare two models of the same vectors; both of kernel groups, or neither."""
    learnt = compare(first.parts[0], second.parts[0], rank=rank)
    if len(first.parts) == 1:
        return learnt
    readings = compare(first.parts[1], second.parts[1])
    return replace(readings, features=replace(learnt, shift=()))


def compare(first: Subspace, second: Subspace, *, rank: int | None = None) -> ModelComparison:
    """Compare two subspaces of the same vectors."""
    # O(dim k^2). Angles as `scipy.linalg.subspace_angles` finds them, exact to rounding whether
    # small or large.
    held = min(first.rank, second.rank)
    rank = held if rank is None else min(rank, held)
    separated = min(_separated_count(first, rank), _separated_count(second, rank))
    separation = _angles(first, second, separated)
    return ModelComparison(
        rank,
        separated,
        tuple(float(angle) for angle in _angles(first, second, rank)),
        float(separation[0]) if len(separation) else None,
        tuple(float(x) for x in _over(second.mean - first.mean, deviations(first))),
        float(_over(second.energy / second.weight, first.energy / first.weight)),
        tuple(
            float(x)
            for x in _over(second.explained_variance[:rank], first.explained_variance[:rank])
        ),
    )


def deviations(subspace: Subspace) -> Array:
    """Return the standard deviation of each channel, (dim,), as far as a subspace knows it."""
    # The direction of variance that was not kept is lost. It is spread evenly over all that is
    # orthogonal to the basis, as in probabilistic PCA. The sum of the variances is then exact.
    squares = np.asarray(subspace.basis, dtype=np.float64) ** 2
    spread = subspace.frobenius_bound / max(1, subspace.dim - subspace.rank)
    variances = squares @ subspace.sigma**2 + spread * (1 - squares.sum(axis=1)).clip(0)
    return np.asarray(np.sqrt(variances / subspace.weight))


def schema_differences(first: Schema, second: Schema) -> tuple[tuple[str, ...], bool]:
    """Return the differences of two schemas, a line each, and whether their vectors compare."""
    # The words of `differences` on scaling are for a node that wants to join.
    unscaled = replace(first, scaling=None), replace(second, scaling=None)
    lines = list(differences(*unscaled))
    if first.scaling != second.scaling:
        lines.append(
            "scaling: the same readings become other vectors, so none are comparable;"
            " `submerge fit --like MODEL` gives a history the scaling of another"
        )
    return tuple(lines), _vectors(first) == _vectors(second)


def as_dict(found: ModelComparison | None, lines: tuple[str, ...]) -> dict[str, Any]:
    """Return a comparison as JSON has it: null for what is infinite."""
    content = {"differences": list(lines), "comparable": found is not None}
    if found is None:
        return content
    if found.features is not None:
        content["features"] = _plain(found.features)
    return _plain(found) | content


def _plain(found: ModelComparison) -> dict[str, Any]:
    """A comparison with null for what is infinite."""
    content = asdict(found)
    for name in ("shift", "variance_ratios"):
        content[name] = [x if np.isfinite(x) else None for x in content[name]]
    ratio = found.variance_ratio
    return content | {"variance_ratio": ratio if np.isfinite(ratio) else None}


def comparison_text(
    first: SavedModel, second: SavedModel, found: ModelComparison, lines: tuple[str, ...]
) -> str:
    """Return a comparison as text."""
    names = first.schema.names
    shifted = sorted(range(len(names)), key=lambda j: -abs(found.shift[j]))[:NAMED]
    features = []
    if found.features is not None:
        of = found.features
        features = [
            ("features", _separation_text(of)),
            ("", f"{_list(of.angles_deg)} degrees at rank {of.rank}"),
            ("", f"{of.variance_ratio:.4g} times the first's variance"),
        ]
    said = [
        ("first", _title(first)),
        ("second", _title(second)),
        *(("differs", printable(line)) for line in lines),
        *features,
        ("separated", _separation_text(found)),
        ("angles", f"{_list(found.angles_deg)} degrees at rank {found.rank}"),
        ("variance", f"{found.variance_ratio:.4g} times the first's, of all channels"),
        ("", f"along directions {_list(found.variance_ratios)}"),
        ("mean", "shifted most, in standard deviations of the first:"),
        *(("", f"{found.shift[j]:>+8.3g}  {name_text(names[j])}") for j in shifted),
    ]
    return "\n".join(f"{name:<10} {value}" for name, value in said)


def _separation_text(found: ModelComparison) -> str:
    if found.separated_deg is None:
        return "none are separated from those behind them: angles say little"
    return (
        f"{found.separated_deg:.3g} degrees at most between the leading {found.separated},"
        " which are separated from those behind them"
    )


def _title(named: SavedModel) -> str:
    model = named.model
    return (
        f"{named.whence}: {model.group}, version {model.version}, {model.counts.learnt:,} readings"
    )


def _list(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers) or "none"


def _vectors(schema: Schema) -> Schema:
    """Return what decides the meaning of a schema's vectors."""
    return replace(schema, center="fleet", half_life=None)


def _separated_count(subspace: Subspace, rank: int) -> int:
    """Return how many leading directions are separated from those behind them."""
    # What lies behind the last held direction is at most `spectral_bound`.
    squares = np.append(subspace.sigma**2, subspace.spectral_bound)
    clear = (squares[:rank] >= SEPARATED * squares[1 : rank + 1]) & (squares[:rank] > 0)
    return int(np.flatnonzero(clear)[-1]) + 1 if clear.any() else 0


def _angles(first: Subspace, second: Subspace, rank: int) -> Array:
    if not rank:
        return np.empty(0)
    from scipy.linalg import subspace_angles

    bases = (np.asarray(each.basis[:, :rank], dtype=np.float64) for each in (first, second))
    return np.asarray(np.degrees(subspace_angles(*bases)))


def _over(part: Any, whole: Any) -> Array:
    """Divide; 0 / 0 is 0, and anything else over 0 is infinite."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(part == 0, 0.0, part / whole)
