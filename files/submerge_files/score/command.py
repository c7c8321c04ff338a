"""`submerge score`: scores of the rows of files, by a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge.errors import UsageError
from submerge_files.console import options
from submerge_files.console.admin_client import AdminCommand
from submerge_files.console.reading_options import COLUMNS, DASK, TIMES, workers_at
from submerge_files.console.tables import say_lines, say_notes
from submerge_files.console.units import printable

if TYPE_CHECKING:
    from submerge_files.score.model import Normal
    from submerge_files.score.run import ScoreRequest, ScoreSummary


@click.command(
    cls=AdminCommand,
    epilog="""\b
Example: submerge fit history/*.csv -o plant.model
         submerge score monday.csv --model plant.model -o scores.csv.gz --plot scores.png""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--model",
    type=options.FILE,
    help="A file of `submerge fit`, `submerge model save` or submerge.dumps.",
)
@options.aggregator_options("config, store: the group's model; needed if there are several groups.")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="PATH",
    help="Where scores go; compressed if it ends in .gz, Parquet if it ends in .parquet; - is"
    " standard output, the default. With --dask, a folder.",
)
@options.json_option("Write JSON, one object per line, not CSV.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Carry a column of the files along into the output.",
)
@options.RANK
@click.option(
    "--mean",
    metavar="MEAN",
    help="The mean that rows are measured from: the model's (model), that of the first 400 rows of"
    " each FILE (first:400), of all its rows (own), or of the client with this state file."
    '  [default: model; if center = "own" the machine\'s, or own]',
)
@click.option(
    "--when", metavar="CONDITION", help='Score only rows like "rpm > 50 and load >= 0.2".'
)
@COLUMNS
@TIMES
@options.flag_option("--allow-missing", "Fill channels without a column, up to half of them.")
@options.ZERO_IS_MISSING
@options.QUANTITY
@options.skip_option("Leave a column out, by name or pattern; needed if columns go by place.")
@DASK
@click.option("--plot", type=options.FILE, help="Draw scores and limits into this PNG.")
def command(
    at: options.AggregatorOptions,
    files: tuple[str, ...],
    model: Path | None,
    output: str,
    as_json: bool,
    rank: int | None,
    mean: str | None,
    when: str | None,
    dask: str | None,
    plot: Path | None,
    **reading: Any,
) -> None:
    """Score the rows of FILEs as nodes would: a line for each, and a summary on stderr.

    FILEs are CSV, TSV, whitespace matrices, Parquet, Arrow, .npy or Intel Lab logs, plain or
    gzip, in the units of the model's channels; folders and patterns are searched. Columns go by
    name if there is a header (other columns are left out), else by place.

    Each FILE is a node: in a group with center = "own" rows are measured from the machine's own
    mean, if the model knows a machine of the FILE's name, else from the mean of their FILE; and
    lags do not reach before its first row. --mean pump-1.state gives that client's score lines.

    With --dask, workers score FILEs, each into a file in the folder of -o.

    A line has: file; row (from 1); time, if FILEs have times; what --keep names; distance
    (squared Mahalanobis distance, if the model has factors), spe (squared prediction error) and
    t2 (Hotelling's T-squared), in a kernel group also linear and anomaly_score; over, over_spe
    and over_t2, the highest share of normal rows that the row passes by the distance (without
    one, SPE), by SPE and by T2 (in a kernel group over_linear too); the top three channels to
    blame with their shares; how many numbers were filled; alarm_ewma and its like, each
    statistic that alarms are raised by over its limit, if the model has such: above 1 `submerge
    detect` has an alarm. A row that cannot be scored has the reason: lead-in, gaps, too large,
    other state.
    """
    from submerge_files.console.progress import advancing
    from submerge_files.reader.formats.remote_path import path_of
    from submerge_files.score.run import ScoreRequest, all_files, score_apart

    named = list(map(path_of, files))
    found = all_files(named, note=lambda said: say_notes([said]))

    def wanted() -> ScoreRequest:
        normal = _normal(model, at, rank)
        return ScoreRequest.of(normal, found, mean=mean, when=when, as_json=as_json, **reading)

    if dask is None:
        inputs = found if model is None else [*found, model]
        _here(wanted, inputs, None if output == "-" else Path(output), plot)
        return
    at.refuse("--dask")
    if plot is not None:
        raise UsageError("expected no --plot with --dask, got both: leave one of them out")
    if model is None:
        raise UsageError("expected --model FILE with --dask, got none: workers score by a file")
    with workers_at(dask) as workers, advancing("rows scored") as advance:
        assert workers is not None  # noqa: S101 - there is an address
        _tell(*score_apart(workers, wanted(), output, advance))


def _here(
    wanted: Callable[[], ScoreRequest], inputs: list[Path], target: Path | None, plot: Path | None
) -> None:
    """Score files in this process, into one file or standard output."""
    from submerge_files.console.progress import advancing
    from submerge_files.score.output import check_target
    from submerge_files.score.run import written_scores

    check_target(target, inputs=inputs)
    options.check_picture(plot, inputs=inputs)
    curves = None
    if plot is not None:
        from submerge_files.score.plot import ScoreCurves

        curves = ScoreCurves()
    request = wanted()
    # No progress bar between scores on one terminal.
    shown = target is not None or not sys.stdout.isatty()
    with advancing("rows read", shown=shown) as advance:
        found = written_scores(request, target, curves=curves, advance=advance)
    _tell(*found)
    if curves is not None and plot is not None:
        curves.draw(plot, request.normal.limits)
        say_lines([("picture", plot)], err=True)


def _tell(summary: ScoreSummary, remarks: Iterable[str]) -> None:
    for note in remarks:
        click.echo(printable(note), err=True)
    say_lines(summary.text(), err=True)


def _normal(model: Path | None, at: options.AggregatorOptions, rank: int | None) -> Normal:
    """Return the model in a file, or that of a running aggregator."""
    from submerge_files.score.model import of_file, of_running

    if model is None:
        return of_running(at.admin(instead="--model FILE, "), at.group, rank)
    at.refuse("--model")
    return of_file(model, rank)
