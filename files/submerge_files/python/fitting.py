"""Rows become what a model file holds, as `submerge fit` does it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from submerge.errors import whole
from submerge.history.fit import fit
from submerge.history.knowledge import Learnt
from submerge.history.settings import FitSettings
from submerge_files import model_file
from submerge_files.console.reading_options import condition_of
from submerge_files.model_file import SavedModel, learnt_of
from submerge_files.python.sources import Source
from submerge_proto.files import learnt as learnt_file


def learnt_from(source: Source, *, rank: int | None, when: str | None, keep_all: bool) -> Learnt:
    """Learn rows; options as in `Model.fit`."""
    settings = settings_of(source.names, rank=rank, when=when, keep_all=keep_all)
    if settings.when is not None:
        source.note_only(settings.when.holds)
    look = partial(source.looks, settings.when)
    return learnt_of(fit(source.rows, source.channels, settings, look=look))


def settings_of(
    names: Sequence[str], *, rank: int | None, when: str | None, keep_all: bool
) -> FitSettings:
    """Return the settings of a fit; options as in `Model.fit`."""
    condition = condition_of(when, tuple(names))
    directions = 0 if rank is None else whole("rank", rank, least=1)
    most = max(FitSettings().rank_max, directions)
    return FitSettings(directions, rank_max=most, when=condition, leaves_out=not keep_all)


def reread(learnt: Learnt) -> SavedModel:
    """Return a model as its file would hold it."""
    return model_file.decoded(learnt_file.packed(learnt), "the model")
