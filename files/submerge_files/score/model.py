"""The model that `submerge score` scores with: a saved one, a running fleet's, or an engine's.

Scores compare only if they use the same number of directions; a file without it needs --rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from submerge import PeerError, Schema, UsageError, loads
from submerge.client.alarms.detector import AlarmDetector
from submerge.client.monitor_state import MonitorState
from submerge.drill.response import NodeScorer
from submerge.headings import lags_of
from submerge.history.detection import watching
from submerge.history.knowledge import Learnt
from submerge.judge.score import ScoringModel
from submerge.pca.factor import Factors
from submerge.pca.own_scatter import OwnScatter
from submerge.protocol.summaries import Subspaces, Summary
from submerge.stats.score_limits import Limits
from submerge.stats.statistic import By, raised_by
from submerge_aggregator.questions.views import ShownRank
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.units import printable
from submerge_files.model_file import SavedModel, bytes_of, decoded

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

    @cached_property
    def watch(self) -> AlarmDetector | None:
        """What `detect` compares rows with; None without limits of alarms."""
        return self.watch_of(None)

    def watch_of(self, state: MonitorState | None) -> AlarmDetector | None:
        """Return the same for a machine whose state is known."""
        watch = None if self.learnt is None else watching(self.learnt, state=state)
        return watch if watch is not None and watch.limits.known else None

    @property
    def watched(self) -> tuple[By, ...]:
        """The statistics that have a limit of alarms, in their order."""
        kinds = raised_by(factors=bool(self.factors))
        known = () if self.watch is None else self.watch.limits.known
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
    return of_bytes(bytes_of(path), path, rank)


def of_bytes(data: bytes, path: Path, rank: int | None) -> Normal:
    """Return the model in the bytes of a file; as `of_file`."""
    if data.startswith(ZIP):
        return _of_engine(path, data, rank)
    named = decoded(data, str(path))
    return _of_model(named, named.shown, rank)


def of_saved(named: SavedModel) -> Normal:
    """Return a model that was read from a file."""
    return _of_model(named, named.shown, None)


def of_running(admin: AdminClient, group: str | None, rank: int | None) -> Normal:
    """Return the newest model of a running aggregator."""
    group = admin.group(group)
    whence = f"the aggregator on {admin.way.name}"
    named = decoded(admin.get("model", group), whence, sent=True)
    return _of_model(named, admin.shown(group), rank)


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
