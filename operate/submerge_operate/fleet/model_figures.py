"""What a model holds, in figures and as text."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from submerge import Array, Schema, Subspace
from submerge.features import plain
from submerge.history.knowledge import Learnt
from submerge.pca.relations import LEAST, Change, changes
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import Summary
from submerge.schema import differences
from submerge.stats.score_limits import Limits
from submerge_files.console.units import ago, moment, name_text, printable
from submerge_files.model_file import SavedModel


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a file of form 3."""

    merges: str  # what merges; empty if the file holds the model alone
    origin: str  # which fleet made it; empty for files
    # of files; 0 for a fleet's model
    chunks: int
    machines: int
    rows: int
    # when the first and the last of those rows were, Unix seconds; None without times
    first_s: float | None
    last_s: float | None


def contents(learnt: Learnt) -> Contents:
    merges = ""
    if learnt.summary is not None:
        is_whole = isinstance(learnt.summary, WholeScatter)
        merges = "whole scatter" if is_whole else "directions"
    chunks = learnt.chunks
    timed = [chunk for chunk in chunks if not math.isnan(chunk.first)]
    return Contents(
        merges,
        learnt.origin,
        len(chunks),
        len({chunk.machine for chunk in chunks}),
        learnt.rows,
        min((chunk.first for chunk in timed), default=None),
        max((chunk.last for chunk in timed), default=None),
    )


def contents_text(found: Contents) -> str:
    merges = f"a {found.merges}" if found.merges == "whole scatter" else found.merges
    said = [f"{merges} to merge further" if found.merges else "the model alone"]
    if found.origin:
        said.append(f"of the fleet {printable(found.origin)}")
    if found.chunks:
        span = ""
        if found.first_s is not None and found.last_s is not None:
            span = f", {moment(found.first_s)} to {moment(found.last_s)}"
        machines, chunks = _of(found.machines, "machine"), _of(found.chunks, "chunk")
        said.append(f"{found.rows:,} rows of {machines}, in {chunks}{span}")
    return "; ".join(said)


def _of(n: int, what: str) -> str:
    return f"one {what}" if n == 1 else f"{n:,} {what}s"


NAMED = 3  # channels that are named with a direction
SHOWN = 8  # channels that are listed for a person


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of normal variation."""

    share: float  # of all variation, kept and discarded
    # those with the largest part in it, with their signed part, the largest first
    channels: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class KernelText:
    """The features of a kernel group, and what was learnt of them."""

    spec: dict[str, Any]
    # features; directions of them that the model holds, spare ones included
    dim: int
    rank: int
    share: float  # what those explain of all variation of the features


@dataclass(frozen=True, slots=True)
class Figures:
    whence: str
    group: str
    version: int
    fingerprint: str
    created_s: float
    age_s: float  # by this machine's clock
    expires_s: float
    expired: bool  # an expired model still scores
    channels: tuple[tuple[str, str], ...]  # as learnt: with lags each counts several times
    scaled: bool
    center: str
    half_life_s: float | None
    learnt: int
    withheld: int
    lost: int
    coverage: float  # learnt readings over all known ones
    epsilon: float  # that the group's models have spent; 0 without noise
    nodes: int
    staleness_s: tuple[float, float, float]  # silence of half, 99 % and all clients
    rank: int  # directions that the model holds, spare ones included
    shown: int | None
    variance: float  # of all channels, in squared units of what was learnt
    noise: tuple[float, ...]  # standard deviation of each number; empty if unknown
    loadings: int  # columns that the distance of a row is by: `rank`, or more
    directions: tuple[Direction, ...]  # of the readings, in a kernel group as well
    kernel: KernelText | None
    limits: Limits | None
    contents: Contents | None = None  # what else the file holds; None for the model alone
    verdicts: tuple[str, ...] = ()  # what people say of the alarms by it; of a running one

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures(named: SavedModel, *, shown: int | None = None, now: float | None = None) -> Figures:
    model, schema = named.model, named.schema
    now = time.time() if now is None else now
    parts = () if model.summary is None else model.summary.parts
    summary, kernel = parts[-1] if parts else None, None
    if len(parts) > 1:
        of = parts[0]
        share = 1 - of.frobenius_bound / of.energy if of.energy > 0 else 1.0
        kernel = KernelText(plain(schema.features.spec()), of.dim, of.rank, share)
    return Figures(
        whence=named.whence,
        group=model.group,
        version=model.version,
        fingerprint=model.fingerprint,
        created_s=model.created,
        age_s=max(0.0, now - model.created),
        expires_s=model.expires,
        expired=now > model.expires,
        channels=tuple((each.name, each.unit) for each in schema.named),
        scaled=schema.scaling is not None,
        center=schema.center,
        half_life_s=schema.half_life,
        learnt=model.counts.learnt,
        withheld=model.counts.withheld,
        lost=model.counts.lost,
        coverage=model.coverage,
        epsilon=model.epsilon,
        nodes=model.nodes,
        staleness_s=model.staleness,
        rank=0 if summary is None else summary.rank,
        shown=shown,
        variance=0.0 if summary is None else summary.energy / summary.weight,
        noise=tuple(np.sqrt(model.factors[-1].noise).tolist()) if model.factors else (),
        loadings=model.factors[0].loadings_of(parts[0]).shape[1] if model.factors else 0,
        directions=() if summary is None else _directions(summary, schema.names),
        kernel=kernel,
        limits=model.limits,
        contents=None if named.learnt is None else contents(named.learnt),
    )


def figures_text(found: Figures) -> str:
    expiry = "EXPIRED: nodes still score with it, and report it" if found.expired else "not expired"
    p50, p99, most = (ago(seconds) for seconds in found.staleness_s)
    scaling = "scaled" if found.scaled else "in their own units"
    half_life = "" if found.half_life_s is None else f", half-life {ago(found.half_life_s)}"
    readings = (
        f"{found.learnt:,} learnt, {found.withheld:,} withheld, {found.lost:,} lost:"
        f" coverage {found.coverage:.2%}"
    )
    lines = [
        ("model", f"{found.group}, version {found.version}"),
        ("from", found.whence),
        ("age", f"{ago(found.age_s)}, made {moment(found.created_s)}; {expiry}"),
        ("schema", f"{found.fingerprint[:12]}, center {found.center}{half_life}"),
        ("channels", f"{len(found.channels)}, {scaling}: {_channel_list(found.channels)}"),
        ("readings", readings),
        ("nodes", f"{found.nodes:,}, silent {p50} (half), {p99} (99 %), {most} (all) at most"),
    ]
    if found.epsilon:
        told = f"with noise: epsilon {found.epsilon:.3g} of one row so far, at delta = 1e-6"
        lines.append(("privacy", told))
    if found.contents is not None:
        lines.append(("file", contents_text(found.contents)))
    if not found.rank:
        return _aligned([*lines, ("rank", "0: nothing has been learnt yet")])
    known = found.shown is not None and found.kernel is None
    score = f", of which nodes score with {found.shown}" if known else ""
    if found.kernel is not None:
        lines += _kernel(found.kernel, found.shown)
    kept = sum(direction.share for direction in found.directions)
    lines.append(("rank", f"{found.rank} directions{score}: {kept:.2%} of all variation"))
    for i, direction in enumerate(found.directions, 1):
        parts = ", ".join(f"{name_text(name)} {part:+.2f}" for name, part in direction.channels)
        lines.append((f"  {i}", f"{direction.share:>7.2%}  {parts}"))
    lines.append(("noise", _noise(found)))
    lines += [("verdicts" if not i else "", said) for i, said in enumerate(found.verdicts)]
    if found.limits is None:
        return _aligned([*lines, ("limits", "none measured yet")])
    limits = found.limits
    lines.append(("limits", f"from {limits.n:,} scores"))
    for i, share in enumerate(limits.shares):
        below = f"distance {limits.distance[i]:.4g}, " if limits.distance else ""
        below += f"SPE {limits.spe[i]:.4g}, T2 {limits.t2[i]:.4g}"
        if limits.linear:
            below += f" of features, SPE {limits.linear[i]:.4g} of readings"
        lines.append(("", f"{share:.1%} stay below {below}"))
    return _aligned(lines)


def _noise(found: Figures) -> str:
    if not found.noise:
        return (
            "one for all channels: the model has no energies of channels, as one of a job or of an"
            " earlier version has none, so scores and alarms are by SPE and T2"
        )
    return f"one for each channel; distances are by {found.loadings} columns of loadings"


def _kernel(found: KernelText, shown: int | None) -> list[tuple[str, str]]:
    spec = found.spec
    score = "" if shown is None else f", of which nodes score with {min(shown, found.rank)}"
    features = f"{found.dim} features, {spec['kind']}"
    return [
        ("kernel", f"{spec['kernel']}, gamma {spec['gamma']:.6g}; {features}"),
        ("", f"{found.rank} directions of them{score}: {found.share:.2%} of all their variation"),
    ]


def _directions(summary: Subspace, names: tuple[str, ...]) -> tuple[Direction, ...]:
    squares = summary.sigma**2
    shares = squares / summary.energy if summary.energy > 0 else squares
    basis = np.asarray(summary.basis, dtype=np.float64)
    leading = np.argsort(-np.abs(basis), axis=0, kind="stable")[:NAMED]
    return tuple(
        Direction(float(share), tuple((names[j], float(basis[j, i])) for j in leading[:, i]))
        for i, share in enumerate(shares)
    )


def _channel_list(channels: tuple[tuple[str, str], ...]) -> str:
    figures_text = [
        f"{name_text(name)} [{name_text(unit)}]" if unit else name_text(name)
        for name, unit in channels[:SHOWN]
    ]
    more = len(channels) - len(figures_text)
    return ", ".join(figures_text) + (f" and {more} more" if more else "")


def _aligned(lines: list[tuple[str, str]]) -> str:
    return "\n".join(f"{name:<10} {value}" for name, value in lines)


SEPARATED = 2.0
"""A direction is separated from those behind it if its eigenvalue is this multiple of the next."""

NO_CHANGE = f"each channel follows the others as before, to {LEAST:.0%}"

MOST_SHIFTED = 5  # channels that are named for a person


@dataclass(frozen=True, slots=True)
class ModelComparison:
    rank: int  # leading directions that are compared
    separated: int  # how many of them are separated from those behind, in both
    angles_deg: tuple[float, ...]  # principal, the largest first
    separated_deg: float | None  # the largest between the separated ones
    shift: tuple[float, ...]  # of means by channel, in deviations of the first model
    variance_ratio: float  # of all variance, the second over the first
    variance_ratios: tuple[float, ...]  # the same along each direction
    features: ModelComparison | None = None  # of a kernel group; the rest is of readings
    # channels that follow the others otherwise, the surest first
    relations: tuple[Change, ...] = ()


def compare_summaries(
    first: Summary, second: Summary, *, rank: int | None = None
) -> ModelComparison:
    """Compare two models of the same vectors; both of kernel groups, or neither."""
    learnt = compare(first.parts[0], second.parts[0], rank=rank)
    changed = tuple(changes(first.pieces[-1], second.pieces[-1]))
    if len(first.parts) == 1:
        return replace(learnt, relations=changed)
    readings = compare(first.parts[1], second.parts[1])
    return replace(readings, features=replace(learnt, shift=()), relations=changed)


def compare(first: Subspace, second: Subspace, *, rank: int | None = None) -> ModelComparison:
    # O(dim k^2). Angles as `scipy.linalg.subspace_angles` finds them, exact to rounding whether
    # small or large.
    held = min(first.rank, second.rank)
    rank = held if rank is None else min(rank, held)
    separated = min(_separated_count(first, rank), _separated_count(second, rank))
    separation = _angles(first, second, separated)
    return ModelComparison(
        rank,
        separated,
        tuple(_angles(first, second, rank).tolist()),
        float(separation[0]) if len(separation) else None,
        tuple(_over(second.mean - first.mean, deviations(first)).tolist()),
        float(_over(second.energy / second.weight, first.energy / first.weight)),
        tuple(_over(second.explained_variance[:rank], first.explained_variance[:rank]).tolist()),
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


def as_dict(
    found: ModelComparison | None, lines: tuple[str, ...], names: Sequence[str]
) -> dict[str, Any]:
    """Return a comparison as JSON has it: null for what is infinite."""
    content: dict[str, Any] = {"differences": list(lines), "comparable": found is not None}
    if found is None:
        return content
    content["relations"] = [
        {"channel": names[each.channel], "partner": names[each.partner], "ratio": each.ratio}
        | {"words": each.words(names)}
        for each in found.relations
    ]
    if found.features is not None:
        content["features"] = _plain(found.features)
    return _plain(found) | content


def _plain(found: ModelComparison) -> dict[str, Any]:
    content = asdict(found)
    del content["relations"]  # by the names of channels: `as_dict`
    for name in ("shift", "variance_ratios"):
        content[name] = [x if np.isfinite(x) else None for x in content[name]]
    ratio = found.variance_ratio
    return content | {"variance_ratio": ratio if np.isfinite(ratio) else None}


def comparison_text(
    first: SavedModel, second: SavedModel, found: ModelComparison, lines: tuple[str, ...]
) -> str:
    names = first.schema.names
    shifted = sorted(range(len(names)), key=lambda j: -abs(found.shift[j]))[:MOST_SHIFTED]
    features = []
    if found.features is not None:
        of = found.features
        features = [
            ("features", _separation_text(of)),
            ("", f"{_list(of.angles_deg)} degrees at rank {of.rank}"),
            ("", f"{of.variance_ratio:.4g} times the first's variance"),
        ]
    relations = [("", name_text(f"{each.words(names)} as before")) for each in found.relations]
    said = [
        ("first", _title(first)),
        ("second", _title(second)),
        ("relations", f"changed {_between(first, second)}:" if relations else NO_CHANGE),
        *relations,
        *(("differs", printable(line)) for line in lines),
        *features,
        ("separated", _separation_text(found)),
        ("angles", f"{_list(found.angles_deg)} degrees at rank {found.rank}"),
        ("variance", f"{found.variance_ratio:.4g} times the first's, of all channels"),
        ("", f"along directions {_list(found.variance_ratios)}"),
        ("mean", "shifted most, in standard deviations of the first:"),
        *(("", f"{found.shift[j]:>+8.3g}  {name_text(names[j])}") for j in shifted),
    ]
    return _aligned(said)


def _between(first: SavedModel, second: SavedModel) -> str:
    return f"between {moment(first.model.created)} and {moment(second.model.created)}"


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
