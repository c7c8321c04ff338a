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
    QUANTITY,
    RANK,
    ZERO_IS_MISSING,
    AggregatorOptions,
    aggregator_options,
    json_option,
    skip_option,
)

if TYPE_CHECKING:
    from submerge_fleet.score.model import Normal
    from submerge_fleet.score.plot import ScoreCurves
    from submerge_fleet.score.run import ScoreRequest
    from submerge_fleet.score.summary import ScoreSummary


@click.command(
    cls=AdminCommand,
    epilog="""\b
Example: submerge model save monday.model --config root.toml
         submerge score pump-*.csv --model monday.model -o scores.csv.gz --plot scores.png""",
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option("--model", type=FILE, help="A file of `submerge model save` or submerge.dumps.")
@aggregator_options("config, store: the group's model; needed if there are several groups.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=Path("-"),
    help="Where scores go; compressed if it ends in .gz; - is standard output, the default.",
)
@json_option("Write JSON, one object per line, not CSV.")
@RANK
@click.option(
    "--mean",
    metavar="file|fleet|CHECKPOINT",
    help="The mean that rows are measured from, if center = own: of their FILE, of the fleet,"
    " or of the client with this state file.  [default: file]",
)
@click.option(
    "--when", metavar="CONDITION", help='Score only rows like "rpm > 50 and load >= 0.2".'
)
@ZERO_IS_MISSING
@QUANTITY
@skip_option("Leave a column out, by name; needed if columns go by place.")
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

    FILEs are whitespace matrices, Intel Lab logs, CSV or .npy, plain or gzip, in the units of
    the model's channels. Columns go by name if there is a header (a channel without a column is
    filled, other columns are left out), else by place.

    Each FILE is a node: in a group with center = "own" rows are measured from the mean of their
    own FILE (--mean fleet: of all nodes; --mean pump-1.state: of that client, which gives the
    client's score lines), and lags do not reach before its first row.

    A line has: file; row (from 1); distance (squared Mahalanobis distance, if the model has
    factors), spe (squared prediction error) and t2 (Hotelling's T-squared), in a kernel group also
    linear and anomaly_score; over_distance, over and over_t2, the highest limit that distance, SPE
    and T2 exceed after a correction for gaps (in a kernel group over_linear too); the top three
    channels to blame with their shares; how many numbers were filled. A row that cannot be scored
    has the reason: lead-in, gaps, too large, other state.
    """
    from submerge.condition import Condition
    from submerge_fleet.console.picture import check_target as check_picture
    from submerge_fleet.score.output import check_target
    from submerge_fleet.score.run import ScoreRequest

    target = None if str(output) == "-" else output
    inputs = files if model is None else (*files, model)
    check_target(target, inputs=inputs)
    curves = None
    if plot is not None:
        # Refuse a missing extra or an impossible path before the work.
        from submerge_fleet.score.plot import ScoreCurves

        check_picture(plot, inputs=inputs)
        curves = ScoreCurves()
    normal = _normal(model, at, rank)
    condition = None if when is None else Condition.parse(when, normal.schema.names)
    request = ScoreRequest(_mean(mean), condition, **reading)
    summary, notes = _write_scores(files, normal, request, target, curves, as_json=as_json)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    for name, value in summary.text():
        click.echo(f"{name:<10} {value}", err=True)
    if curves is not None and plot is not None:
        curves.draw(plot, normal.limits)
        click.echo(f"{'picture':<10} {plot}", err=True)


def _write_scores(
    files: tuple[Path, ...],
    normal: Normal,
    request: ScoreRequest,
    target: Path | None,
    curves: ScoreCurves | None,
    *,
    as_json: bool,
) -> tuple[ScoreSummary, Iterable[str]]:
    """Score the files and write a line for each row; return the summary, and notes."""
    from submerge_fleet.console.progress import counting
    from submerge_fleet.score.lines import CsvScoreLines, JsonScoreLines
    from submerge_fleet.score.output import open_output
    from submerge_fleet.score.run import score
    from submerge_fleet.score.summary import ScoreSummary

    form: CsvScoreLines | JsonScoreLines = JsonScoreLines(normal.schema)
    if not as_json:
        kernel, factors = len(normal.summary.parts) > 1, bool(normal.factors)
        form = CsvScoreLines(normal.schema.names, kernel=kernel, factors=factors)
    summary, notes = ScoreSummary(normal), dict.fromkeys(normal.notes)
    # No progress bar between scores on one terminal.
    shown = target is not None or not sys.stdout.isatty()
    with open_output(target) as text, counting("rows read", shown=shown) as advance:
        text.write(form.head)
        for path, part in score(files, normal, request, note=notes.setdefault, advance=advance):
            text.write(form.lines(path, part))
            summary.add(path, part)
            if curves is not None:
                curves.add(path, part)
        if not summary.scored:
            # Raised here, so that older scores are not overwritten.
            raise UsageError(f"expected rows that can be scored, got none of {summary.counts}")
    return summary, notes


def _mean(mean: str | None) -> str | Path | None:
    """Return the value of --mean, a checkpoint as a path."""
    if mean in (None, "file", "fleet"):
        return mean
    path = Path(str(mean))
    if not path.exists():
        raise UsageError(f"--mean is file, fleet, or a client's state file, got {mean!r}")
    return path


def _normal(model: Path | None, at: AggregatorOptions, rank: int | None) -> Normal:
    """Return the model in a file, or that of a running aggregator."""
    from submerge_fleet.score.model import of_file, of_running

    if model is None:
        return of_running(at.admin(instead="--model FILE, "), at.group, rank)
    at.refuse("--model")
    return of_file(model, rank)
