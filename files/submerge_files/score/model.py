"""Normal: what rows are scored by: a saved model, a running fleet's or an engine's, and a mean.

Scores compare only if they use the same number of directions; a file without it needs --rank.
With `center = "own"` a file counts as a node: its mean is that of all its rows which can be scored,
read in a first pass, or of its first rows. The former hides one kind of fault: a deviation in most
of the file becomes its normal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from submerge import Array, PeerError, Schema, UsageError, loads
from submerge.client.alarms.detector import AlarmDetector
from submerge.client.monitor_state import MonitorState
from submerge.client.node import MONITOR
from submerge.drill.response import NodeScorer
from submerge.headings import lags_of
from submerge.history.detection import watching
from submerge.history.knowledge import Learnt
from submerge.judge.prepare import Block, in_units
from submerge.judge.score import ScoringModel
from submerge.pca.factor import Factors
from submerge.pca.own_scatter import OwnScatter
from submerge.protocol.summaries import Subspaces, Summary
from submerge.stats.node_mean import READY, OwnMean
from submerge.stats.score_limits import Limits
from submerge.stats.statistic import By, raised_by
from submerge_aggregator.questions.views import ShownRank
from submerge_client.checkpoint import state_of
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.units import printable
from submerge_files.model_file import SavedModel, bytes_of, decoded
from submerge_files.reader.options import ONLY_MACHINE
from submerge_files.reader.selection import some

FAR = 6.0  # standard deviations of the median row beyond which the level is another one
FEWEST = 30  # rows that a level is of
SHOWN = 3  # channels that the warning names
AT_ONCE = 4096  # rows whose median is taken together: the level is the median of these, by rows


class AnotherLevel:
    """Compares the level of rows with that learnt (channels,); deviations of 0 compare nothing."""

    def __init__(self, names: Sequence[str], mean: Array, deviation: Array) -> None:
        self._names, self._mean, self._deviation = names, mean, deviation
        self._waiting: list[Array] = []
        self._parts: list[Array] = []

    def fresh(self) -> AnotherLevel:
        """Return the same without rows."""
        return AnotherLevel(self._names, self._mean, self._deviation)

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account; lags beside them say nothing new."""
        self._waiting.append(rows[:, : len(self._names)])
        if sum(map(len, self._waiting)) >= AT_ONCE:
            self._close()

    @property
    def parts(self) -> Array:
        """(m, 2, channels), medians of what was added, and the readings in each."""
        self._close()
        return np.array(self._parts).reshape(-1, 2, len(self._names))

    def take(self, parts: Array) -> None:
        """Take `parts` of other rows into account."""
        self._parts += list(parts)

    def warn(self, stacklevel: int) -> None:
        """Warn if a channel is far from where it was learnt."""
        said = self.said
        if said:
            warnings.warn(said, UserWarning, stacklevel=stacklevel + 1)

    @property
    def said(self) -> str:
        """Which channels are far from where they were learnt; empty if none is."""
        far = self.far[1]
        return f"these rows are at another level than those that were learnt: {far}" if far else ""

    @property
    def far(self) -> tuple[float, str]:
        """The largest deviation, and how far the furthest channels are; 0 and "" if none is."""
        deviations = self._deviations()
        worst = np.argsort(-np.abs(deviations), kind="stable")
        worst = worst[np.abs(deviations[worst]) > FAR]
        if not len(worst):
            return 0.0, ""
        said = [
            f"{printable(self._names[i])} is {abs(deviations[i]):.0f} standard deviations"
            f" {'higher' if deviations[i] > 0 else 'lower'}"
            for i in worst[:SHOWN].tolist()
        ]
        more = f", and {len(worst) - SHOWN} more" if len(worst) > SHOWN else ""
        return float(abs(deviations[worst[0]])), f"{', '.join(said)}{more}"

    def _close(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate(self._waiting)
        self._waiting.clear()
        finite = np.isfinite(rows)
        counts, median = finite.sum(axis=0), np.full(rows.shape[1], np.nan)
        if finite.all() and len(rows):
            median = np.median(rows, axis=0)
        elif counts.any():
            known = counts > 0
            held = np.where(finite[:, known], rows[:, known], np.nan)
            median[known] = np.nanmedian(held, axis=0)
        self._parts.append(np.stack([median, counts]))

    def _deviations(self) -> Array:
        """Return by how many standard deviations each channel is off; 0 where that is not known."""
        far, parts = np.zeros(len(self._names)), self.parts
        for i in np.flatnonzero((parts[:, 1].sum(axis=0) >= FEWEST) & (self._deviation > 0)):
            some = parts[parts[:, 1, i] > 0, :, i]
            median = _weighted_median(some[:, 0], some[:, 1])
            far[i] = (median - self._mean[i]) / self._deviation[i]
        return far


def _weighted_median(values: Array, weights: Array) -> float:
    """Return the median of values (n,), each of which counts so many times."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    first, last = np.searchsorted(below, half), np.searchsorted(below, half, side="right")
    return float((values[order[first]] + values[order[min(last, len(values) - 1)]]) / 2)


ZIP = b"PK\x03\x04"  # how an engine's file begins: `submerge.dumps` writes `.npz`


@dataclass(frozen=True, eq=False)
class Normal:
    about: str
    schema: Schema
    summary: Summary
    limits: Limits | None  # None if none were measured
    shown: Subspaces
    factors: tuple[Factors, ...] = ()  # empty where they are not known
    notes: tuple[str, ...] = ()
    learnt: Learnt | None = None  # what a fitted model knows of its history, and of each machine

    @cached_property
    def channels(self) -> int:
        """How many channels there are, without their lags."""
        return self.schema.width // lags_of(self.schema.names)

    @cached_property
    def scorer(self) -> NodeScorer:
        """What scores rows, measured from the model's mean."""
        return NodeScorer(self.scoring(), self.schema)

    def scoring(self, own: OwnScatter | None = None) -> ScoringModel:
        """Return what scores, by how rows vary at one machine where that is known."""
        given = self.summary, self.limits, self.channels, self.factors
        return ScoringModel(self.shown, *given, own)

    def watch_of(self, state: MonitorState | None) -> AlarmDetector | None:
        """Return what `detect` compares a machine's rows with; None without limits of alarms."""
        watch = None if self.learnt is None else watching(self.learnt, state=state)
        return watch if watch is not None and watch.limits.known else None

    @cached_property
    def watched(self) -> tuple[By, ...]:
        """The statistics that have a limit of alarms, in their order."""
        kinds = raised_by(factors=bool(self.factors))
        watch = self.watch_of(None)
        known = () if watch is None else watch.limits.known
        return tuple(each for each in kinds if each in known)

    @cached_property
    def states(self) -> Mapping[str, MonitorState]:
        """What is known of each machine."""
        return {} if self.learnt is None else dict(self.learnt.monitors)

    def state(self, *names: str) -> MonitorState | None:
        """Return what is known of the machine that has one of these names."""
        known = next((self.states[name] for name in names if name in self.states), None)
        # Its rows may be named in another way than its history's: without own means, any will do.
        if known is None and self.schema.center != "own":
            known = next(iter(self.states.values()), None)
        return known


def of_file(path: Path, rank: int | None) -> Normal:
    """Return the model in a file, as saved or as an engine's `submerge.dumps`."""
    data = bytes_of(path)
    if data.startswith(ZIP):
        return _of_engine(path, data, rank)
    named = decoded(data, str(path))
    return _of_model(named, named.shown, rank)


def of_running(admin: AdminClient, group: str | None, rank: int | None) -> Normal:
    """Return the newest model of a running aggregator."""
    group = admin.group(group)
    whence = f"the aggregator on {admin.way.name}"
    named = decoded(admin.get("model", group), whence, sent=True)
    return _of_model(named, admin.shown(group), rank)


def of_saved(named: SavedModel) -> Normal:
    """Return a model that was read from a file."""
    return _of_model(named, named.shown, None)


def _of_model(named: SavedModel, shown: ShownRank | None, rank: int | None) -> Normal:
    model, summary = named.model, named.model.summary
    if summary is None:
        raise UsageError(f"{named.whence} has learnt nothing yet: score with a later one")
    if rank is None and shown is None:
        raise UsageError(
            f"expected --rank, since an earlier version wrote {named.whence} without the number"
            f" of directions, of its {_rank(summary)}, that nodes score with: give summary.rank"
            " of their configuration"
        )
    notes = []
    if model.limits is None:
        notes.append("no limits: none were measured for this model, and `over` stays empty")
    if shown is None:
        shown = ShownRank(rank or 1)
    if rank is not None and rank != shown.rank and model.limits is not None:
        notes.append(f"the limits are of scores at rank {shown.rank}, with which nodes score")
    shown = ShownRank(_fits(rank, summary) or shown.rank, shown.linear_rank)
    about = f"{printable(model.group)}, version {model.version}, {named.whence}"
    scoring = summary, model.limits, _summaries(shown), model.factors
    return Normal(about, named.schema, *scoring, tuple(notes), named.learnt)


def _of_engine(path: Path, data: bytes, rank: int | None) -> Normal:
    """Return an engine's model, which has no limits and often no names."""
    try:
        engine = loads(data)
    except PeerError as error:
        raise UsageError(f"{path} is neither a model file nor a saved engine: {error}") from None
    schema = engine.schema
    if schema is None or engine.subspace.weight == 0:
        raise UsageError(f"{path} has learnt nothing yet: score with a later one")
    if not schema.linear:
        raise UsageError(
            f"expected an engine of readings in {path}, got one of features: save the model of a"
            " kernel group instead"
        )
    shown = ShownRank(_fits(rank, engine.subspace) or engine.target)
    about = f"an engine that has learnt {engine.n_samples_seen:,} rows, {path}"
    notes = ("an engine has no measured limits: `over` stays empty",)
    shows = _summaries(shown)
    factors = shows.factors(engine.subspace)
    return Normal(about, schema, engine.subspace, None, shows, factors, notes)


def _fits(rank: int | None, summary: Summary) -> int | None:
    if rank is not None and not 1 <= rank <= _rank(summary):
        raise UsageError(
            f"--rank must be from 1 to the {_rank(summary)} directions that the model holds,"
            f" got {rank}"
        )
    return rank


def _rank(summary: Summary) -> int:
    return summary.parts[0].rank


def _summaries(shown: ShownRank) -> Subspaces:
    return Subspaces(shown.rank, linear_rank=shown.linear_rank)


MODEL, OWN, FIRST = "model", "own", "first:"


Mean = str | int | Path  # `MODEL`, `OWN`, so many first rows, or the checkpoint of a client


def parsed(text: str) -> Mean:
    """Return the value of `--mean`; raises UsageError if it is none."""
    if text in (MODEL, OWN):
        return text
    if text.startswith(FIRST):
        n = text.removeprefix(FIRST)
        if not (n.isascii() and n.isdigit() and int(n) >= READY):
            raise UsageError(
                f"expected --mean first:N with at least {READY} rows, got {text!r}; write first:400"
            )
        return int(n)
    path = Path(text)
    if not path.exists():
        raise UsageError(f"--mean is model, own, first:400, or a client's state file, got {text!r}")
    return path


def about_rows(normal: Normal, blocks: Iterable[Block], *, whole: bool = True) -> NodeScorer:
    """Return what measures rows from the mean of these: of a whole file, or of its first rows."""
    # Filled values do not count: they come from the fleet's model. In feature space only rows
    # without a gap count.
    *lifting, linear = normal.summary.parts
    features = lifting[0].mean if lifting else None
    # Sums of deviations: sums of readings would lose digits beside a huge mean.
    off, known = np.zeros(linear.dim), np.zeros(linear.dim)
    lifted = np.zeros(0 if features is None else len(features))
    rows = complete = 0
    for block in blocks:
        gaps = np.zeros(block.rows.shape, dtype=bool) if block.gaps is None else block.gaps
        off += np.where(gaps, 0.0, block.rows - linear.mean).sum(axis=0)
        known += (~gaps).sum(axis=0)
        rows += len(block)
        if features is not None:
            full = ~gaps.any(axis=1)
            lifted += (block.features[full] - features).sum(axis=0)
            complete += int(full.sum())
    # A channel without any reading in the file keeps the fleet's mean.
    own = OwnMean(
        linear.mean + off / np.maximum(known, 1.0),
        None if features is None else features + lifted / max(complete, 1),
        weight=float(rows),
        count=rows,
        span_s=0.0,
    )
    # If the mean is of these very rows, they do not vary more about it.
    return replace(normal.scorer, own=own, excess=1.0 if whole else None)


def state_in(path: Path, normal: Normal) -> MonitorState:
    """Return the state of a client, from the file of its `[client] state`."""
    schema = normal.schema
    # Imported here: only this option needs protobuf.
    from submerge_proto.kept import records

    try:
        data = state_of(path).get(MONITOR)
        kept: MonitorState | None = None if data is None else records.unpack(MONITOR, data)
    except (OSError, PeerError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"expected a client's checkpoint in {path}, got: {reason}") from None
    if kept is None:
        raise UsageError(
            f"expected a checkpoint of a client that has read rows in {path}, got none"
        )
    if kept.fingerprint != schema.fingerprint:
        raise UsageError(
            f"expected a checkpoint with the model's schema, {schema.fingerprint[:8]}, in {path},"
            f" got one with {kept.fingerprint[:8]}"
        )
    return kept


def of_machine(normal: Normal, machine: str | None) -> NodeScorer:
    """Return what scores rows of a machine that was learnt; None is the only one."""
    if normal.schema.center == "own" and machine not in normal.states:
        raise refusal(
            "machine",
            expected="one that was learnt, as each has its own mean",
            got="none" if machine is None else repr(machine),
            hint=f"the model knows {some(list(normal.states)) or 'none'}",
        )
    state = normal.state(*([] if machine is None else [machine]))
    return normal.scorer if state is None else of_state(normal, state)


def of_state(
    normal: Normal,
    state: MonitorState,
    whence: str = "",
    note: Callable[[str], None] = lambda _: None,
) -> NodeScorer:
    """Return what scores rows of a machine whose state is known."""
    kept = state.of_schema(normal.schema, normal.channels)
    own = kept.own
    if own is not None and not own.ready:
        few = f"the mean in {whence} is of {own.count} rows, fewer than {READY}"
        note(f"{few}: the client scores with the fleet's")
        own = None
    steps = None if kept.resolution is None else kept.resolution.restarted.steps
    scorer = normal.scorer
    if own is not None and kept.scatter is not None:
        scorer = replace(scorer, scoring=normal.scoring(kept.scatter))
    return replace(scorer, own=own, residual_scale=kept.residual_scale, steps=steps)


class Means:
    """What scores the rows of files, each measured from a mean."""

    def __init__(self, normal: Normal, mean: Mean | None, note: Callable[[str], None]) -> None:
        center = normal.schema.center
        if mean == OWN and center != "own":
            raise UsageError(
                f'expected a model of center = "own" for --mean {OWN}, got "{center}": its scatter'
                " is about one mean: leave --mean out, or take first:400"
            )
        self._normal, self._mean, self._note = normal, mean, note
        self._shared: NodeScorer | None = None
        self._kept: MonitorState | None = None
        # Where each machine has a mean, and none was asked for, it is that of the machine.
        self._each = mean is None and center == "own"
        if isinstance(mean, Path):
            self._kept = state_in(mean, normal)
            self._shared = of_state(normal, self._kept, str(mean), note)
        elif mean in (None, MODEL) and not self._each:
            self._shared = normal.scorer

    def of(
        self, path: Path, read: Callable[[int | None], Iterable[Block]]
    ) -> tuple[NodeScorer, bool]:
        """Return what scores a file, and whether its mean is from elsewhere than from the file."""
        state = self._state(path)
        if self._each and state is not None:
            return of_state(self._normal, state, f"the model for {path.name}", self._note), True
        scorer = self._shared or self._about(path, read)
        if scorer.residual_scale is None and state is not None:
            typical = of_state(self._normal, state).residual_scale
            scorer = replace(scorer, residual_scale=typical)
        return scorer, self._shared is not None

    def watch(self, path: Path) -> AlarmDetector | None:
        """Return what compares the scores of a file with the limits of alarms."""
        return self._normal.watch_of(self._state(path) if self._each else self._kept)

    def _state(self, path: Path) -> MonitorState | None:
        return self._normal.state(path.name.split(".")[0] or path.name, str(path), ONLY_MACHINE)

    def _about(self, path: Path, read: Callable[[int | None], Iterable[Block]]) -> NodeScorer:
        if self._each:
            self._note(
                "rows are measured from their own file's mean, which hides a fault in most of a"
                " file: --mean first:400 takes that of its first rows, --mean model the model's,"
                " --mean STATE a client's"
            )
        first = self._mean if isinstance(self._mean, int) else None
        scorer = about_rows(self._normal, read(first), whole=first is None)
        if scorer.own is not None and not scorer.own.ready:
            few = counted(scorer.own.count, "row")
            self._note(f"the mean of {path.name} is of only {few}, fewer than {READY}")
        return scorer


def deviations_of(normal: Normal) -> Array:
    """Return the standard deviation of each channel by the model, lags left out; scaled."""
    linear = normal.summary.parts[-1]
    held = np.square(linear.basis, dtype=np.float64) @ linear.explained_variance
    if normal.factors:
        factors = normal.factors[-1]
        variance = factors.noise + np.square(factors.loadings_of(linear)).sum(axis=1)
    elif linear.channel_energies is not None:
        variance = linear.channel_energies / linear.weight
    else:
        rest = (linear.energy - np.square(linear.sigma).sum()) / linear.weight
        variance = held + max(rest, 0.0) / linear.dim
    deviations: Array = np.sqrt(variance)
    return deviations[: normal.channels]


def level_of(normal: Normal, scorer: NodeScorer) -> AnotherLevel:
    """Return what compares the level of rows with the one that they are measured from."""
    schema, deviations = normal.schema, deviations_of(normal)
    width, own = len(deviations), scorer.own
    mean = normal.summary.parts[-1].mean if own is None else own.rows
    moments = None if normal.learnt is None else normal.learnt.moments
    if moments is not None:
        # A channel that stood still has no level.
        deviations = np.where(moments.variance[:width] > 0, deviations, 0.0)
    if schema.scaling is not None:
        deviations = deviations * np.array(schema.scaling.scale[:width])
    return AnotherLevel(schema.names[:width], in_units(mean, schema)[:width], deviations)


def level_warning(far: Mapping[Path, tuple[float, str]], files: int, schema: Schema) -> str:
    """Return one line about files at another level than the model's, with what to do."""
    path, (_, channels) = max(far.items(), key=lambda each: each[1][0])
    of = f"{printable(str(path))} is"
    if len(far) > 1:
        of = f"{len(far)} of {files} files are"
        channels = f"in {printable(str(path))} {channels}"
    own = " or its own mean (--mean own)" if schema.center == "own" else ""
    return (
        f"{of} at another level than the model: {channels}; if that is normal there, measure from"
        f" the first rows (--mean first:400){own}"
    )
