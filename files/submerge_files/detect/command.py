"""`submerge detect`: alarms on files, by a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge_files.console.options import FILE, check_picture, default_option, json_option
from submerge_files.console.reading_options import DASK, READING, reading_options, workers_at
from submerge_files.console.tables import say_lines, say_notes

if TYPE_CHECKING:
    from submerge_files.console.curves import Curves

ALARMED = 3  # exit status if there were alarms


@click.command(
    epilog="""\b
Example: submerge fit history/*.csv -o plant.model
         submerge detect monday.csv --model plant.model --plot monday.png"""
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--model", type=FILE, required=True, help="A file of `submerge fit`.")
@READING
@click.option("--when", metavar="CONDITION", help='Only rows like "rpm > 50 and load >= 0.2".')
@default_option(
    "--at-most", "1 false per week", "The rate of false alarms that is promised.", metavar="RATE"
)
@DASK
@click.option("--plot", type=FILE, help="Draw scores, alarms and channels into this PNG.")
@json_option("Print JSON, an object for each alarm.")
def command(
    files: tuple[str, ...],
    model: Path,
    when: str | None,
    at_most: str,
    dask: str | None,
    plot: Path | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Say which alarms a client with this model would have raised on FILEs.

    Each alarm has its times, the channels to blame at its onset, and for the first of them the
    value and what the other channels say that it should be. Alarms by provisional limits are
    marked; they are of models with few rows.

    With --dask, each machine's rows are judged by one of its workers.

    The exit status is 3 if there were alarms, and 0 if there were none. Nothing is learnt.
    """
    from submerge_files.console.progress import advancing
    from submerge_files.detect.run import as_object, as_text, detect, request_of
    from submerge_files.reader.formats.remote_path import path_of

    curves: Curves | None = None
    check_picture(plot, inputs=list(map(path_of, files)))
    if plot is not None:
        from submerge_files.console.curves import Curves

        curves = Curves()
    options = reading_options(**reading)
    with workers_at(dask, plot=plot, sort=options.sort, long=options.long) as workers:
        recordings, request = request_of(files, model, options, at_most, when, workers)
        with advancing("rows judged") as advance:
            detection = detect(recordings, request, curves, workers=workers, advance=advance)
    say_notes(detection.notes)
    for found in detection.alarms:
        text = json.dumps(as_object(found)) if as_json else as_text(found, detection)
        click.echo(text)
    if not as_json:
        say_lines(detection.summary, err=True)
    if plot is not None and curves is not None:
        from submerge_files.detect.plot import save_picture

        save_picture(plot, curves, detection)
        say_lines([("picture", plot)], err=True)
    if detection.alarms:
        sys.exit(ALARMED)
