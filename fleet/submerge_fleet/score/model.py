"""What `submerge score` holds rows against: a saved model, a running fleet's, or an engine's.

Scores are only as comparable as the number of directions that they are made with. A model
holds spares beside those that nodes score with, and its limits are of scores without them: a
model whose file does not say with how many (form 1) needs to be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from submerge import PeerError, Schema, UsageError, loads
from submerge.protocol.summaries import Subspaces, Summary
from submerge.stats.score_limits import Limits
from submerge_aggregator.questions.views import ShownRank
from submerge_fleet.console.admin_client import AdminClient, printable
from submerge_fleet.operate.model_file import SavedModel, decoded

ZIP = b"PK\x03\x04"
"""How an engine's file begins: `submerge.dumps` writes `.npz`."""


@dataclass(frozen=True, eq=False)
class Normal:
    """What is normal.

    Attributes
    ----------
    about : str
        What it is, for people.
    schema : Schema
    summary : Summary
    limits : Limits or None
        None where nobody has measured any.
    shown : Subspaces
        Knows with how many directions to score.
    notes : tuple of str
    """

    about: str
    schema: Schema
    summary: Summary
    limits: Limits | None
    shown: Subspaces
    notes: tuple[str, ...] = ()


def of_file(path: Path, rank: int | None) -> Normal:
    """Return what a file holds: a model, or an engine's `submerge.dumps`.

    Parameters
    ----------
    path : Path
    rank : int, optional
        Directions to score with, instead of those that the file names.

    Raises
    ------
    UsageError
        If it is neither, or has learnt nothing, or does not hold so many directions.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"expected a saved model in {path}, got: {error.strerror}") from error
    if data.startswith(ZIP):
        return _of_engine(path, data, rank)
    named = decoded(data, str(path))
    return _of_model(named, named.shown, rank)


def of_running(admin: AdminClient, group: str | None, rank: int | None) -> Normal:
    """Return the newest model of a running aggregator."""
    group = admin.group(group)
    named = decoded(admin.get("model", group), f"the aggregator on {admin.path}")
    return _of_model(named, admin.shown(group), rank)


def _of_model(named: SavedModel, shown: ShownRank | None, rank: int | None) -> Normal:
    model, summary = named.model, named.model.summary
    if summary is None:
        raise UsageError(f"{named.whence} has learnt nothing yet: score with a later one")
    if rank is None and shown is None:
        raise UsageError(
            f"expected --rank, since {named.whence} does not say with how many of its"
            f" {_held(summary)} directions nodes score (an earlier version wrote it): give"
            " summary.rank of their configuration"
        )
    notes = []
    if shown is None:
        shown = ShownRank(rank or 1)
    if rank is not None and rank != shown.rank and model.limits is not None:
        notes.append(f"the limits are those of rank {shown.rank}, where nodes score with that")
    shown = ShownRank(_fits(rank, summary) or shown.rank, shown.linear_rank)
    about = f"{printable(model.group)}, version {model.version}, {named.whence}"
    return Normal(about, named.schema, summary, model.limits, _summaries(shown), tuple(notes))


def _of_engine(path: Path, data: bytes, rank: int | None) -> Normal:
    """An engine that somebody has fitted by hand: it has neither limits nor, often, names."""
    try:
        engine = loads(data)
    except PeerError as error:
        raise UsageError(f"expected a saved model in {path}, got something else: {error}") from None
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
    return Normal(about, schema, engine.subspace, None, _summaries(shown), notes)


def _fits(rank: int | None, summary: Summary) -> int | None:
    if rank is not None and not 1 <= rank <= _held(summary):
        raise UsageError(
            f"--rank must be from 1 to the {_held(summary)} directions that the model holds,"
            f" got {rank}"
        )
    return rank


def _held(summary: Summary) -> int:
    return summary.parts[0].rank


def _summaries(shown: ShownRank) -> Subspaces:
    return Subspaces(shown.rank, linear_rank=shown.linear_rank)
