"""Drills on files: each file is a node, as in `submerge score`.

A file's rows are measured from the file's own mean where the group has center = "own", and typical
errors of its channels are those of its rows. Limits follow from the block maxima in the model, at
the rate of false alarms that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from submerge import Array, UsageError
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.limits import AlarmLimits
from submerge.drill.detection import Spans, spans
from submerge.drill.drill import ChannelAnswer, Drill
from submerge.drill.response import DrillModel
from submerge.history.second_pass import NewestRows
from submerge.judge.prepare import Block
from submerge.protocol.messages import Model
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_length import block_rows
from submerge.stats.block_maxima import WITH_FACTORS, WITHOUT_FACTORS
from submerge.stats.residual_scale import READY_S, ResidualScale
from submerge_files.console.units import in_words
from submerge_files.score.mean import Center, of_rows
from submerge_files.score.model import Normal
from submerge_files.score.rows import RowJudge
from submerge_files.score.run import ScoreRequest, opened, row_blocks

MOST_SPANS = 128
"""Spans of a file's rows that each fault is tried on, with both signs."""

WITHOUT_PERIOD = 60
"""Rows in which a fault has to be found, if it is not known for how long a row stands."""


@dataclass(frozen=True)
class FaultsToTry:
    """What to try on so many spans, with both signs, each found `within` rows; None: an hour's."""

    settings: AlarmSettings
    within: int | None
    most_spans: int = MOST_SPANS
    seed: int = 0

    @property
    def rows(self) -> int:
        """Rows in which a fault has to be found."""
        if self.within is not None:
            return self.within
        # With fewer there is no k-of-m statistic of rows after the fault alone.
        return max(block_rows(0.0, self.settings.period_s) or WITHOUT_PERIOD, 2 * self.settings.of)


@dataclass(frozen=True, kw_only=True)
class DrillRequest(FaultsToTry):
    """What to try on files."""

    reading: ScoreRequest
    highest: HighestSoFar = field(default_factory=HighestSoFar)


@dataclass(frozen=True)
class FileAnswer:
    """The answer of a drill on one file."""

    path: Path
    rows: int
    spans: int
    within: int
    channels: tuple[ChannelAnswer, ...]


def limits_of(model: Model, settings: AlarmSettings, highest: HighestSoFar) -> AlarmLimits:
    """Return the limits of alarms by a model; raises UsageError if it has none yet."""
    kinds = WITH_FACTORS if model.factors else WITHOUT_FACTORS
    # For how long the group was monitored is no question here: the maxima say what they say.
    measured = AlarmLimits.of(model.maxima, replace(settings, settle_s=1e-9), kinds)
    limits = highest.over(measured.times(model.widened), settings.period_s or 1.0)
    if not limits.known:
        raise UsageError(
            "the model has no limits of alarms yet: drill with a later one, or with a higher rate"
            ' such as --at-most "1 false per day"'
        )
    return limits


def drill_files(
    files: Sequence[Path],
    normal: Normal,
    model: Model,
    wanted: DrillRequest,
    *,
    note: Callable[[str], None],
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[FileAnswer]:
    """Drill each file."""
    limits = limits_of(model, wanted.settings, wanted.highest)
    if limits.provisional_s:
        note(
            "limits are provisional, for the group was monitored too short for that rate: about"
            f" one false alarm in {in_words(limits.provisional_s)}"
        )
    for path in files:
        try:
            yield _drill_file(path, normal, limits, wanted, note, advance)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error


def _drill_file(
    path: Path,
    normal: Normal,
    limits: AlarmLimits,
    wanted: DrillRequest,
    note: Callable[[str], None],
    advance: Callable[[int], None],
) -> FileAnswer:
    file, columns = opened(path, normal, wanted.reading)
    for remark in (*file.notes, *columns.notes):
        note(remark)

    def blocks(center: Center | None = None) -> Iterator[Block]:
        judge = RowJudge(normal, center, wanted.reading.when)
        for part in row_blocks(file, columns, normal, wanted.reading, lambda _: None):
            yield judge.prepare(part.rows)

    center = of_rows(normal, blocks()) if normal.schema.center == "own" else Center()
    newest = NewestRows()
    for block in blocks(center):
        newest.add(0, block)
    rows = newest.rows
    judged = DrillModel(normal.scoring, normal.schema, center.own, None, center.excess)
    if len(rows):
        judged = replace(judged, residual_scale=typical_errors(judged, rows))
    drill, tried = drill_of(judged, rows, limits, wanted)
    if tried.rows < wanted.rows:
        note(f"{path.name} has {len(rows):,} rows: faults are tried for {tried.rows} of them")
    answers = []
    for channel in range(len(drill)):
        answers.append(drill.answer(channel))
        advance(1)
    return FileAnswer(path, len(rows), len(drill.spans.starts), tried.rows, tuple(answers))


def drill_of(
    model: DrillModel, rows: Array, limits: AlarmLimits, wanted: FaultsToTry
) -> tuple[Drill, Spans]:
    """Return a drill on rows (n, width), scaled, and where it tries faults."""
    settings, tried = wanted.settings, spans(len(rows), wanted.rows, wanted.most_spans)
    noise = np.random.default_rng(wanted.seed).standard_normal(2 * wanted.most_spans * wanted.rows)
    drill = Drill(
        model,
        rows,
        limits.known,
        after=settings.after,
        of=settings.of,
        tried=tried,
        noise=noise,
    )
    return drill, tried


def typical_errors(model: DrillModel, rows: Array) -> ResidualScale:
    """Return the typical errors of the channels of these rows."""
    errors = model.score(rows).sure_errors
    gaps = np.isnan(rows[:, : errors.shape[1]])
    none = ResidualScale.none(errors.shape[1])
    return none.after(np.where(gaps, np.nan, errors), READY_S)
