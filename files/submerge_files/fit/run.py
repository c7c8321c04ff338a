"""A fit from its request to its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.history.fit import Fitted, fit
from submerge.history.settings import FitSettings
from submerge_files.console.printable import printable
from submerge_files.console.progress import advancing, counting
from submerge_files.detect import lines
from submerge_files.fit.drill import FitDrill, drill
from submerge_files.fit.history_detection import HistoryDetection, detect_history
from submerge_files.fit.report import as_object, as_text
from submerge_files.fit.saving import save
from submerge_files.fit.time_spans import Label
from submerge_files.reader import Recordings

if TYPE_CHECKING:
    from submerge_files.cluster import FileCluster


@dataclass(frozen=True)
class FitRequest:
    """What to learn, and what to say of it.

    output : Where the model goes.
    labels : Known faults, the same as in the settings.
    plot : Where a picture goes.
    detects, drills : Whether alarms on the same history are wanted, and a drill.
    cluster : Whose workers read the rows.
    """

    recordings: Recordings
    settings: FitSettings
    output: Path
    labels: Sequence[Label] = ()
    plot: Path | None = None
    detects: bool = False
    drills: bool = True
    cluster: FileCluster | None = None


def run(request: FitRequest, *, as_json: bool) -> None:
    """Learn a history, write the model, and print the report."""
    recordings = request.recordings
    with counting("rows read, in two passes") as advance:
        fitted = _fitted(request, advance)
    size = save(request.output, fitted)
    for note in recordings.notes:
        click.echo(printable(f"note: {note}"), err=True)
    alarms, found = _alarms(request, fitted), _drill(request, fitted)
    if alarms is not None and request.plot is not None:
        alarms.draw(request.plot)
    if as_json:
        said = as_object(fitted, recordings, request.output, size)
        click.echo(json.dumps(said | _objects(request, alarms, found)))
        return
    report = as_text(fitted, recordings, request.output, size)
    model = report.pop()
    report += [] if found is None else found.as_text()
    if alarms is not None and alarms.comparison is not None:
        report += alarms.comparison.as_text()
    for name, value in (*report, model):
        click.echo(f"{name:<10} {value}")
    if alarms is not None and request.detects:
        for alarm in alarms.detected.alarms:
            click.echo(lines.as_text(alarm, alarms.detected))
        click.echo(f"{'alarms':<10} {len(alarms.detected.alarms):,}", err=True)
    if request.plot is not None:
        click.echo(f"{'picture':<10} {request.plot}", err=True)


def _fitted(request: FitRequest, advance: Callable[[int], None]) -> Fitted:
    recordings, settings = request.recordings, request.settings
    if request.cluster is not None:
        return request.cluster.fit(recordings, settings, advance)
    return fit(
        recordings.rows,
        recordings.channels,
        settings,
        look=partial(recordings.looks, settings.when),
        advance=advance,
    )


def _alarms(request: FitRequest, fitted: Fitted) -> HistoryDetection | None:
    if not (request.detects or request.labels or request.plot):
        return None
    with counting("rows judged") as advance:
        return detect_history(
            request.recordings,
            fitted,
            request.settings,
            request.labels,
            draws=request.plot is not None,
            cluster=request.cluster,
            advance=advance,
        )


def _drill(request: FitRequest, fitted: Fitted) -> FitDrill | None:
    if not request.drills:
        return None
    with advancing("drill", len(request.recordings.names)) as advance:
        return drill(fitted, request.settings, advance=advance)


def _objects(
    request: FitRequest, alarms: HistoryDetection | None, found: FitDrill | None
) -> dict[str, object]:
    """Return what JSON has beside the report of the history itself."""
    said: dict[str, object] = {}
    if found is not None:
        said["drill"] = found.as_object()
    if alarms is not None and alarms.comparison is not None:
        said["labels"] = alarms.comparison.as_object()
    if alarms is not None and request.detects:
        said["alarms"] = [lines.as_object(alarm) for alarm in alarms.detected.alarms]
    return said
