"""learnt_settings(): what a history, or a model of one, settles of a fleet's configurations."""

from __future__ import annotations

from pathlib import Path

from submerge import Schema, UsageError
from submerge.headings import lags_of
from submerge.history.knowledge import Learnt
from submerge.history.settings import FitSettings
from submerge.protocol.names import is_name
from submerge_client.config.from_history import GROUP, LearntSettings
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import BadSetting
from submerge_client.config.summary import SummaryConfig
from submerge_files import model_file
from submerge_files.console.progress import advancing
from submerge_files.fit.apart import learnt
from submerge_files.model_file import learnt_of
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.options import ONLY_MACHINE
from submerge_proto.files.learnt import MARK


def learnt_settings(path: Path) -> LearntSettings:
    source = path.name.encode(errors="replace").decode()
    if _is_model(path):
        saved = model_file.read(path)
        rank = saved.shown.rank if saved.shown else 0
        return _settings(source, saved.known, saved.schema, rank)
    learnt = _history(path)
    return _settings(source, learnt, Schema.parse(learnt.model.schema), learnt.model.rank)


def _is_model(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(MARK)) == MARK
    except OSError as error:
        raise UsageError(f"expected a file to read in {path}, got: {error.strerror}") from error


def _history(path: Path) -> Learnt:
    try:
        recordings = open_recordings([path], ReadingOptions())
        with advancing("rows read, in two passes") as advance:
            fitted = learnt(recordings, FitSettings(), advance=advance)
    except UsageError as error:
        if " --" not in str(error) and "(--" not in str(error):
            raise
        # A hint names an option that `init` does not have.
        raise UsageError(
            f"{error}; it is an option of submerge fit, whose model --from takes as well"
        ) from error
    return learnt_of(fitted)


def _settings(source: str, learnt: Learnt, schema: Schema, rank: int) -> LearntSettings:
    machines = tuple(name for name, _ in learnt.monitors if name != ONLY_MACHINE and is_name(name))
    return LearntSettings(
        source,
        _schema(source, schema),
        _summary(learnt, rank),
        learnt.period_s,
        machines,
        # A history's model has no group of a fleet yet.
        learnt.model.group if learnt.origin or not learnt.chunks else GROUP,
    )


def _summary(learnt: Learnt, rank: int) -> SummaryConfig:
    """Return settings by which a fleet's model has as many directions as that of the history."""
    if not rank:
        return SummaryConfig()
    summary, spare = learnt.model.summary, SummaryConfig().oversample
    if summary is not None:
        spare = max(spare, summary.parts[-1].rank - rank)
    return SummaryConfig(rank=rank, oversample=spare)


def _schema(source: str, schema: Schema) -> SchemaConfig:
    if isinstance(schema.channels, int):
        raise UsageError(f"{source} has no names of channels: fit it from files with headings")
    if not schema.linear:
        raise UsageError(
            f"{source} has a kernel, which cannot be filled in: expected a model without one"
        )
    try:
        section = SchemaConfig.of(schema, lags_of(schema.names))
    except BadSetting as error:
        raise UsageError(f"{source}: {error}") from error
    if section.built.fingerprint != schema.fingerprint:
        # A root that measures scaling does so for each of a channel's lags.
        raise UsageError(
            f"{source} scales a channel's lags in different ways, which cannot be filled in:"
            " expected a model without lags"
        )
    return section
