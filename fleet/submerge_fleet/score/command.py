"""`submerge score`: scores of the rows of files, by a model."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge.errors import UsageError
from submerge_fleet.console.admin_client import AdminCommand
from submerge_fleet.console.options import (
    FILE,
    FILES,
    QUANTITY,
    RANK,
    ZERO_IS_MISSING,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
    skip_option,
)
from submerge_fleet.console.printable import printable
from submerge_fleet.console.reading_options import COLUMNS, TIMES, reading_options

if TYPE_CHECKING:
    from submerge_fleet.score.mean import Mean
    from submerge_fleet.score.model import Normal
    from submerge_fleet.score.output import ScoreForm
    from submerge_fleet.score.plot import ScoreCurves
    from submerge_fleet.score.run import ScoreRequest
    from submerge_fleet.score.summary import ScoreSummary


@click.command(
    cls=AdminCommand,
    epilog="""\b
Example: submerge fit history/*.csv -o plant.model
         submerge score monday.csv --model plant.model -o scores.csv.gz --plot scores.png""",
)
@FILES
@click.option(
    "--model", type=FILE, help="A file of `submerge fit`, `submerge model save` or submerge.dumps."
)
@aggregator_options("config, store: the group's model; needed if there are several groups.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=Path("-"),
    help="Where scores go; compressed if it ends in .gz, Parquet if it ends in .parquet; - is"
    " standard output, the default.",
)
@json_option("Write JSON, one object per line, not CSV.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Carry a column of the files along into the output.",
)
@RANK
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
@flag_option("--allow-missing", "Fill channels without a column, up to half of them.")
@ZERO_IS_MISSING
@QUANTITY
@skip_option("Leave a column out, by name or pattern; needed if columns go by place.")
@click.option("--plot", type=FILE, help="Draw scores and limits into this PNG.")
def command(
    at: AggregatorOptions,
    files: tuple[Path, ...],
    model: Path | None,
    output: Path,
    as_json: bool,
    rank: int | None,
    mean: str | None,
    when: str | None,
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

    A line has: file; row (from 1); time, if FILEs have times; what --keep names; distance
    (squared Mahalanobis distance, if the model has factors), spe (squared prediction error) and
    t2 (Hotelling's T-squared), in a kernel group also linear and anomaly_score; over, over_spe
    and over_t2, the highest share of normal rows that the row passes by the distance (without
    one, SPE), by SPE and by T2 (in a kernel group over_linear too); the top three channels to
    blame with their shares; how many numbers were filled. A row that cannot be scored has the
    reason: lead-in, gaps, too large, other state.
    """
    from submerge_fleet.console.conditions import condition_of
    from submerge_fleet.console.picture import check_target as check_picture
    from submerge_fleet.score.output import check_target
    from submerge_fleet.score.run import ScoreRequest, all_files

    target = None if str(output) == "-" else output
    files = tuple(
        all_files(files, note=lambda said: click.echo(printable(f"note: {said}"), err=True))
    )
    inputs = files if model is None else (*files, model)
    check_target(target, inputs=inputs)
    curves = None
    if plot is not None:
        # Refuse a missing extra or an impossible path before the work.
        from submerge_fleet.score.plot import ScoreCurves

        check_picture(plot, inputs=inputs)
        curves = ScoreCurves()
    normal = _normal(model, at, rank)
    condition = condition_of(when, normal.schema.names)
    request = ScoreRequest(_mean(mean), condition, **_reading(**reading))
    form = _form(files, normal, request, target, as_json=as_json)
    summary, notes = _write_scores(files, normal, request, target, form, curves)
    for note in notes:
        click.echo(printable(note), err=True)
    for name, value in summary.text():
        click.echo(f"{name:<10} {value}", err=True)
    if curves is not None and plot is not None:
        curves.draw(plot, normal.limits)
        click.echo(f"{'picture':<10} {plot}", err=True)


def _form(
    files: tuple[Path, ...],
    normal: Normal,
    request: ScoreRequest,
    target: Path | None,
    *,
    as_json: bool,
) -> ScoreForm:
    """Look at all files before the work, and return how their scores are written."""
    from submerge_fleet.score.lines import CsvScoreLines, JsonScoreLines, ScoreHeadings
    from submerge_fleet.score.parquet import SUFFIX, ParquetScores
    from submerge_fleet.score.run import opened

    timed = [opened(path, normal, request)[0].timed for path in files]
    kernel, factors = len(normal.summary.parts) > 1, bool(normal.factors)
    kept = tuple(dict.fromkeys(request.table.keep))
    headings = ScoreHeadings(
        normal.schema.names, kernel=kernel, factors=factors, timed=any(timed), kept=kept
    )
    if target is not None and target.suffix == SUFFIX:
        if as_json:
            raise UsageError(f"--json writes lines of JSON, got {target}: leave one of the two out")
        return ParquetScores(headings)
    if target is not None and not as_json and target.suffix in (".json", ".jsonl"):
        raise UsageError(f"{target} would hold CSV: give --json, or name it .csv")
    return JsonScoreLines(normal.schema, headings) if as_json else CsvScoreLines(headings)


def _write_scores(
    files: tuple[Path, ...],
    normal: Normal,
    request: ScoreRequest,
    target: Path | None,
    form: ScoreForm,
    curves: ScoreCurves | None,
) -> tuple[ScoreSummary, Iterable[str]]:
    """Score the files and write a line for each row; return the summary, and remarks."""
    from submerge.judge.none_left import none_left
    from submerge_fleet.console.progress import counting
    from submerge_fleet.score.output import open_output
    from submerge_fleet.score.run import score
    from submerge_fleet.score.summary import ScoreSummary

    summary, remarks = ScoreSummary(normal), dict.fromkeys(f"note: {n}" for n in normal.notes)

    def note(text: str) -> None:
        remarks.setdefault(f"note: {text}")

    def warn(text: str) -> None:
        remarks.setdefault(f"warning: {text}")

    # No progress bar between scores on one terminal.
    shown = target is not None or not sys.stdout.isatty()
    with open_output(target, form) as write, counting("rows read", shown=shown) as advance:
        for path, part in score(files, normal, request, note=note, warn=warn, advance=advance):
            write(path, part)
            summary.add(path, part)
            if curves is not None:
                curves.add(path, part)
        if not summary.scored:
            # Raised here, so that older scores are not overwritten.
            none = none_left(summary.rows, summary.reasons, request.when)
            raise UsageError(f"expected rows that can be scored, got {none}")
    return summary, remarks


def _mean(mean: str | None) -> Mean | None:
    from submerge_fleet.score.mean import parsed

    return None if mean is None else parsed(mean)


def _reading(
    quantity: str,
    keep: tuple[str, ...],
    columns: str | None,
    time: str | None,
    time_format: str | None,
    long: str | None,
    **others: Any,
) -> dict[str, Any]:
    """Return the options of reading as the request takes them."""
    from submerge_fleet.score.table import TableOptions

    reading = reading_options(columns, time, time_format, long)
    table = TableOptions(quantity, reading, tuple(dict.fromkeys(keep)))
    return {"table": table} | others


def _normal(model: Path | None, at: AggregatorOptions, rank: int | None) -> Normal:
    """Return the model in a file, or that of a running aggregator."""
    from submerge_fleet.score.model import of_file, of_running

    if model is None:
        return of_running(at.admin(instead="--model FILE, "), at.group, rank)
    at.refuse("--model")
    return of_file(model, rank)
