"""Drills on files: each file is a node, as in `submerge score`, with its own typical errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from submerge import Array, UsageError
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.limits import AlarmLimits
from submerge.drill.detection import spans
from submerge.drill.drill import ChannelAnswer, Drill
from submerge.drill.response import NodeScorer
from submerge.history.detection import ByModel, RowJudge
from submerge.history.second_pass import NewestRows
from submerge.judge.prepare import Block
from submerge.protocol.messages import Model
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_length import block_rows
from submerge.stats.residual_scale import READY_S, ResidualScale
from submerge.stats.resolution import Resolution
from submerge.stats.statistic import raised_by
from submerge_files.console.units import in_words
from submerge_files.score.model import about_rows
from submerge_files.score.run import ScoreRequest

MOST_SPANS = 128  # spans of a file's rows that each fault is tried on, with both signs

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


@dataclass(frozen=True)
class FileAnswer:
    """The answer of a drill on some rows; `path`: of the file that they are from."""

    rows: int
    spans: int
    within: int
    channels: tuple[ChannelAnswer, ...]
    path: Path = Path()
    in_alarm: float = 0.0  # share of the spans that were not tried, for they raise an alarm already


def limits_of(model: Model, settings: AlarmSettings, highest: HighestSoFar) -> AlarmLimits:
    """Return the limits of alarms by a model; raises UsageError if it has none yet."""
    kinds = raised_by(factors=bool(model.factors))
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
    model: Model,
    reading: ScoreRequest,
    wanted: FaultsToTry,
    highest: HighestSoFar,
    *,
    note: Callable[[str], None],
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[FileAnswer]:
    """Drill each file."""
    limits = limits_of(model, wanted.settings, highest)
    if limits.provisional_s:
        note(
            "limits are provisional, for the group was monitored too short for that rate: about"
            f" one false alarm in {in_words(limits.provisional_s)}"
        )
    for path in reading.files:
        try:
            scorer, rows = _newest(path, reading, note)
            answer = drill_rows(scorer, rows, limits, wanted, advance)
        except UsageError as error:
            place = "" if str(error).startswith(str(path)) else f"{path}: "
            raise UsageError(f"{place}{error}") from error
        if answer.within < wanted.rows:
            few = f"faults are tried for {answer.within} of them"
            note(f"{path.name} has {len(rows):,} rows: {few}")
        if answer.in_alarm:
            note(f"{path.name}: {answer.in_alarm:.0%} of the tries left out, already in alarm")
        yield replace(answer, path=path)


def _newest(
    path: Path, wanted: ScoreRequest, note: Callable[[str], None]
) -> tuple[NodeScorer, Array]:
    file, normal = wanted.opened(path), wanted.normal

    def blocks(scorer: NodeScorer) -> Iterator[Block]:
        judge = RowJudge(ByModel(scorer), wanted.when)
        return (judge.prepare(part.rows, judges=False) for part in file.rows(normal.schema))

    scorer, newest = normal.scorer, NewestRows()
    if normal.schema.center == "own":
        scorer = about_rows(normal, blocks(scorer))
    for block in blocks(scorer):
        newest.add(0, block)
    for remark in file.notes:
        note(remark)
    rows = newest.rows
    read, _ = Resolution.none(scorer.channels).after(rows[:, : scorer.channels])
    return replace(scorer, steps=read.steps), rows


def drill_rows(
    model: NodeScorer,
    rows: Array,
    limits: AlarmLimits,
    wanted: FaultsToTry,
    advance: Callable[[int], None],
) -> FileAnswer:
    """Try faults on rows (n, width), scaled; `advance` takes numbers of channels."""
    if model.residual_scale is None and len(rows):
        errors = model.score(rows).sure_errors
        gaps = np.isnan(rows[:, : errors.shape[1]])
        typical = ResidualScale.none(errors.shape[1])
        typical = typical.after(np.where(gaps, np.nan, errors), READY_S)
        model = replace(model, residual_scale=typical)
    settings, tried = wanted.settings, spans(len(rows), wanted.rows, wanted.most_spans)
    noise = np.random.default_rng(wanted.seed).standard_normal(2 * wanted.most_spans * wanted.rows)
    how = {"after": settings.after, "of": settings.of}
    drill = Drill(model, rows, limits.known, **how, tried=tried, noise=noise)
    answers = []
    for channel in range(len(drill)):
        answers.append(drill.answer(channel))
        advance(1)
    spared = len(drill.spans.starts)
    return FileAnswer(
        *(len(rows), spared, tried.rows, tuple(answers)), in_alarm=1 - spared / len(tried.starts)
    )
