"""What alarms by a fitted model would find: a drill on the newest rows of its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median_high
from typing import Any

from submerge import UsageError
from submerge.drill.drill import ChannelAnswer
from submerge.drill.merged import in_units, merged
from submerge.drill.response import DrillModel
from submerge.history.fit import Fitted
from submerge.history.models import summaries_of
from submerge.history.settings import SOON, FitSettings
from submerge.judge.score import ScoringModel
from submerge_files.console.printable import name_text
from submerge_files.console.units import figure
from submerge_files.drill.files import (
    WITHOUT_PERIOD,
    FaultsToTry,
    drill_of,
    typical_errors,
)
from submerge_files.fit.report import limits_of

MOST_SPANS = 32
"""Spans of rows that each fault is tried on: a report has to come soon."""

MOST_CHANNELS = 128
"""Channels that are tried: the time grows with their square, and is some seconds here."""

NAMED = 5
"""Blind channels that the report names."""


@dataclass(frozen=True)
class FitDrill:
    """What a drill found out.

    channels : As `in_units` makes them; empty if no fault could be tried.
    within : Rows in which a fault has to be found.
    why_not : Why no fault could be tried.
    """

    channels: list[dict[str, Any]]
    within: int = 0
    why_not: str = ""

    def as_object(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"within": self.within, "why_not": self.why_not, "channels": self.channels}

    def as_text(self) -> list[tuple[str, str]]:
        """Return it as lines: names and values."""
        if self.why_not:
            return [("drill", f"none: {self.why_not}")]
        sizes = {each["channel"]: _deviations(each) for each in self.channels}
        found = [size for size in sizes.values() if size is not None]
        missed = [name for name, size in sizes.items() if size is None]
        blind = [each["channel"] for each in self.channels if each["blind"]]
        parts = []
        if found:
            parts.append(
                f"a bias of {_range(found)} standard deviations is found within"
                f" {self.within} rows (median {median_high(found):.2g}"
                f"{self._worst(sizes)})"
            )
        if missed:
            parts.append(f"no bias is found in {_some(missed)}")
        if blind:
            parts.append(f"blind: {_some(blind)}")
        return [("drill", "; ".join(parts))]

    def _worst(self, sizes: dict[str, float | None]) -> str:
        """Return the channel of which the largest bias is needed, in its unit."""
        name = max(sizes, key=lambda each: sizes[each] or 0.0)
        (worst,) = (each for each in self.channels if each["channel"] == name)
        unit = f" {name_text(worst['unit'])}" if worst["unit"] else ""
        return f"; worst: {name_text(name)}, {figure(worst['bias']['median'])}{unit}"


def drill(
    fitted: Fitted, settings: FitSettings, *, advance: Callable[[int], None] = lambda _: None
) -> FitDrill:
    """Try faults on the newest rows of a history; `advance` takes numbers of channels."""
    alarms = replace(SOON, period_s=fitted.first.period_s or 1.0)
    hour = FaultsToTry(alarms, None).rows
    wanted = FaultsToTry(alarms, max(min(hour, WITHOUT_PERIOD), 2 * alarms.of), MOST_SPANS)
    model, rows, limits = _model(fitted, settings), fitted.newest.rows, limits_of(fitted)
    answers: list[ChannelAnswer] = []
    try:
        if model.channels > MOST_CHANNELS:
            raise UsageError(
                f"it takes long for {model.channels} channels; `submerge drill` tries them"
            )
        if not (len(rows) and limits.known):
            raise UsageError("too few rows for limits of alarms")
        if model.residual_scale is None:
            model = replace(model, residual_scale=typical_errors(model, rows))
        trial, tried = drill_of(model, rows, limits, wanted)
        for channel in range(len(trial)):
            answers.append(trial.answer(channel))
            advance(1)
    except UsageError as error:
        return FitDrill([], why_not=str(error))
    return FitDrill(in_units(merged([answers]), fitted.folds.schema), tried.rows)


def _model(fitted: Fitted, settings: FitSettings) -> DrillModel:
    """Return what the machine of the newest rows is judged by."""
    model, schema = fitted.model, fitted.folds.schema
    scoring = ScoringModel(
        summaries_of(fitted.folds.rank, settings),
        model.scoring_summary,
        model.limits,
        schema.width,
        model.factors,
    )
    machine = fitted.newest.machine
    state = None if machine is None else fitted.states.get(fitted.first.machines[machine])
    if state is None:
        return DrillModel(scoring, schema)
    return DrillModel(scoring, schema, state.own, state.residual_scale)


def _deviations(channel: dict[str, Any]) -> float | None:
    """Return the smallest bias that is found, in the channel's standard deviations."""
    size, deviation = channel["bias"]["median"], channel["deviation"]
    return None if size is None or not deviation else float(size / deviation)


def _range(sizes: list[float]) -> str:
    least, most = f"{min(sizes):.2g}", f"{max(sizes):.2g}"
    return least if least == most else f"{least} to {most}"


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(map(name_text, names[:NAMED])) + (f" and {rest} more" if rest > 0 else "")
