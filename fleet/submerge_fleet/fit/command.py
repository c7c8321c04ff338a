"""`submerge fit`: a model of what is normal, from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge_fleet.console.options import FILE, flag_option, json_option
from submerge_fleet.console.reading_options import READING, reading_options

if TYPE_CHECKING:
    from submerge.history.fit import Fitted
    from submerge.history.settings import FitSettings
    from submerge_fleet.files import Recordings


@click.command(
    epilog="""\b
Example: submerge fit history/*.csv -o plant.model
         submerge detect monday.csv --model plant.model --plot monday.png"""
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=FILE, required=True, help="Where the model goes.")
@READING
@click.option("--rank", type=click.IntRange(1), help="Directions of SPE and T2.  [default: chosen]")
@click.option("--when", metavar="CONDITION", help='Only rows like "rpm > 50 and load >= 0.2".')
@flag_option("--keep-all", "Learn also spans of time that are unlike all others.")
@json_option()
def command(
    files: tuple[str, ...],
    output: Path,
    rank: int | None,
    when: str | None,
    keep_all: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Learn what is normal from FILEs, and write it as a model.

    FILEs are CSV, TSV, Parquet, Arrow, .npy or mote logs, plain or gzip; folders and patterns
    are searched. Each column of numbers is a channel; a column of times is found by its name.

    Rows are read twice: they are summarised, and then each span of time is scored by a model of
    the others, so that limits are of rows that were not learnt. Spans that are unlike all others
    are left out, and named. Memory does not grow with the number of rows.

    The model is for `submerge detect`, `submerge score` and `submerge drill`.
    """
    from submerge_fleet.files import open_recordings
    from submerge_fleet.fit.report import as_object, as_text
    from submerge_fleet.fit.saving import check_target, save

    check_target(output)
    recordings = open_recordings([Path(file) for file in files], reading_options(**reading))
    settings = _settings(rank, when, recordings, keep_all=keep_all)
    fitted = _fit(recordings, settings)
    size = save(output, fitted)
    for note in recordings.notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        click.echo(json.dumps(as_object(fitted, recordings, output, size)))
        return
    for name, value in as_text(fitted, recordings, output, size):
        click.echo(f"{name:<10} {value}")


def _settings(
    rank: int | None, when: str | None, recordings: Recordings, *, keep_all: bool
) -> FitSettings:
    from submerge.condition import Condition
    from submerge.history.settings import FitSettings

    condition = None if when is None else Condition.parse(when, recordings.names)
    most = max(FitSettings().rank_max, rank or 0)
    return FitSettings(rank or 0, rank_max=most, when=condition, leaves_out=not keep_all)


def _fit(recordings: Recordings, settings: FitSettings) -> Fitted:
    from submerge.history.fit import fit
    from submerge_fleet.console.progress import counting

    with counting("rows read, in two passes") as advance:
        return fit(recordings.rows, recordings.names, settings, advance=advance)
