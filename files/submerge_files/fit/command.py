"""`submerge fit`: a model of what is normal, from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from submerge import Schema
from submerge.errors import UsageError
from submerge.headings import heading_of
from submerge_files.console.options import FILE, check_picture, flag_option, json_option
from submerge_files.console.reading_options import (
    DASK,
    READING,
    in_states,
    reading_options,
    workers_at,
)
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_files.workers import Workers


def schema_like(path: Path) -> Schema:
    # Without names or scaling, or with a kernel, rows of files cannot be learnt so: that is
    # refused.
    from submerge_files import model_file

    saved = model_file.read(path)
    schema = saved.schema
    if isinstance(schema.channels, int):
        raise UsageError(f"{path} has no names of channels: columns cannot be found by them")
    if not schema.linear:
        raise UsageError(f"{path} is of a group with a kernel: fit learns rows as they are")
    if saved.known.lags > 1:
        raise UsageError(f"{path} is of rows with lags: fit learns rows one by one")
    if schema.center == "none":
        raise UsageError(f"{path} is measured about zero: fit learns rows about a mean")
    return schema


def open_like(
    paths: Sequence[Path],
    options: ReadingOptions,
    like: Path | None,
    workers: Workers | None = None,
) -> tuple[Recordings, Schema | None]:
    """Return recordings, and the schema to learn them under, with its channels in its order."""
    if like is None:
        return open_recordings(paths, options, workers), None
    schema = schema_like(like)
    if not options.columns:
        options = replace(options, columns=tuple(map(heading_of, schema.named)))
    recordings = open_recordings(paths, options, workers)
    ordered = recordings.ordered(schema.named, like)
    extra = {*recordings.headings} - {*ordered.headings}
    if extra:
        raise UsageError(
            f"expected the channels of {like}, got {min(extra)} as well: leave --columns out"
        )
    return ordered, schema


@click.command(
    epilog="""\b
Example: submerge fit history/*.csv -o plant.model
         submerge fit history/*.csv -o plant.model --labels faults.csv --plot history.png
         submerge detect monday.csv --model plant.model --plot monday.png"""
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=FILE, required=True, help="Where the model goes.")
@READING
@click.option("--rank", type=click.IntRange(1), help="Directions of SPE and T2.  [default: chosen]")
@click.option("--when", metavar="CONDITION", help='Only rows like "rpm > 50 and load >= 0.2".')
@click.option(
    "--exclude",
    multiple=True,
    metavar="FROM..TO",
    help='Leave a span of time out, such as "2026-03-04..2026-03-05 12:00"; an end may be open.',
)
@click.option(
    "--labels",
    type=FILE,
    help="A CSV of known faults (from,to,text): not learnt, and compared with alarms.",
)
@click.option(
    "--keep-all/--leave-out",
    default=None,
    help="Learn also spans of time that are unlike all others, or do not."
    "  [default: leave out, but keep with --labels]",
)
@click.option(
    "--like",
    type=FILE,
    metavar="MODEL",
    help="Learn with the channels, units, scaling and mean of this model, to push into its fleet.",
)
@flag_option("--detect", "Print the alarms on FILEs themselves, as `submerge detect` does.")
@click.option("--plot", type=FILE, help="Draw scores, alarms and channels of FILEs into this PNG.")
@DASK
@flag_option("--no-drill", "Do not try which faults would be found.")
@json_option()
def command(
    files: tuple[str, ...],
    output: Path,
    rank: int | None,
    when: str | None,
    exclude: tuple[str, ...],
    labels: Path | None,
    keep_all: bool | None,
    like: Path | None,
    detect: bool,
    plot: Path | None,
    dask: str | None,
    no_drill: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Learn what is normal from FILEs, and write it as a model.

    FILEs are CSV, TSV, Parquet, Arrow, .npy or mote logs, plain or gzip; folders and patterns
    are searched. Each column of numbers is a channel; a column of times is found.

    Rows are read twice: they are summarised, and then each span of time is scored by a model of
    the others, so that limits are of rows that were not learnt. Spans that are unlike all others
    are left out, and named. Memory does not grow with the number of rows.

    Of --exclude, rows are neither learnt nor scored. Of --labels, they are not learnt, and the
    report says which faults alarms by the model find. --detect, --labels and --plot read FILEs
    once more; alarms on the history leave the exit status at 0.

    With --dask, workers read FILEs where they lie, and the model is the same to rounding.

    The model is for `submerge detect`, `submerge score` and `submerge drill`.
    """
    from submerge_files.fit.apart import settings_for
    from submerge_files.fit.run import run
    from submerge_files.fit.time_spans import excluded, labels_of
    from submerge_files.model_file import check_target
    from submerge_files.reader.formats.remote_path import path_of

    check_target(output)
    paths = [path_of(file) for file in files]
    options, when = in_states(reading_options(**reading), when)
    check_picture(plot, inputs=paths)
    with workers_at(dask, plot=plot, sort=options.sort, long=options.long) as workers:
        recordings, schema = open_like(paths, options, like, workers)
        faults = () if labels is None else labels_of(labels)
        _check_rank(rank, recordings)
        settings = settings_for(
            recordings,
            rank=rank,
            when=when,
            leaves_out=labels is None if keep_all is None else not keep_all,
            exclude=tuple(map(excluded, exclude)),
            faults=tuple(label.span for label in faults),
            schema=schema,
        )
        asked = recordings, settings, output, faults, plot, workers
        run(*asked, detects=detect, drills=not no_drill, as_json=as_json)


def _check_rank(rank: int | None, recordings: Recordings) -> None:
    names = recordings.names
    if rank is not None and rank >= len(names) > 1:
        raise UsageError(
            f"expected --rank below the number of channels, {len(names)}, got {rank}:"
            " leave it out to have it chosen"
        )
