"""`submerge score`: how odd the rows of files are, by a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_fleet.console.admin_client import AdminCommand
from submerge_fleet.console.options import (
    FILE,
    QUANTITY,
    ZERO_IS_MISSING,
    AggregatorOptions,
    aggregator_options,
    json_option,
    skip_option,
)

if TYPE_CHECKING:
    from submerge_fleet.score.model import Normal


@click.command(
    cls=AdminCommand,
    epilog="""\b
Example: submerge model save monday.model --config root.toml
         submerge score pump-*.csv --model monday.model -o scores.csv.gz --plot scores.png""",
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option("--model", type=FILE, help="As `submerge model save` writes it, or submerge.dumps.")
@aggregator_options("config, store: whose model; needed where there are several groups.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=Path("-"),
    help="Where scores go; packed if it ends in .gz; - is standard output, the default.",
)
@json_option("Write a JSON object a line, not CSV.")
@click.option(
    "--rank", type=click.IntRange(1), help="Directions to score with.  [default: as nodes do]"
)
@click.option(
    "--mean",
    metavar="file|fleet|CHECKPOINT",
    help="What rows are measured from, where center = own: the mean of their FILE, of the fleet,"
    " or of the client whose state file this is.  [default: file]",
)
@click.option(
    "--when", metavar="CONDITION", help='Score rows of a state alone: "rpm > 50 and load >= 0.2".'
)
@ZERO_IS_MISSING
@QUANTITY
@skip_option("Leave a column out, by name; needed where columns go by place.")
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
    zero_is_missing: bool,
    quantity: str,
    skip: tuple[str, ...],
    plot: Path | None,
) -> None:
    """Score the rows of FILEs as nodes would: a line for each, and a summary on stderr.

    FILEs are whitespace matrices, Intel Lab logs, CSV or .npy, plain or gzip, in the units of
    the model's channels. Columns go by name if there is a header (a channel without a column is
    filled, other columns are left out), else by place.

    Each FILE is a node: in a group with center = "own" rows are measured from the mean of their
    own FILE (--mean fleet: of all nodes; --mean pump-1.state: of that client, whose score lines
    these then are), and lags reach no further than its first row.

    A line has file and row (from 1); spe and t2 (and linear and odd in a kernel group, as a
    client says them); over and over_t2, the highest limit that SPE and T2 are above once what
    gaps take from them is given back (and over_linear in a kernel group); the top three channels
    to blame with their shares; and how many numbers were filled. A row that cannot be scored says
    why: lead-in, gaps, too large, other state.
    """
    from submerge.condition import Condition
    from submerge_fleet.console.picture import check_target as check_picture
    from submerge_fleet.console.progress import counting
    from submerge_fleet.score.lines import CsvScoreLines, JsonScoreLines
    from submerge_fleet.score.output import check_target, opened
    from submerge_fleet.score.run import ScoreRequest, score
    from submerge_fleet.score.summary import Summary

    target = None if str(output) == "-" else output
    inputs = files if model is None else (*files, model)
    check_target(target, inputs=inputs)
    curves = None
    if plot is not None:
        # A missing extra, or a place that cannot be, is said before the work.
        from submerge_fleet.score.plot import ScoreCurves

        check_picture(plot, inputs=inputs)
        curves = ScoreCurves()
    normal = _normal(model, at, rank)
    names = normal.schema.names
    whose: str | Path | None = mean
    if mean not in (None, "file", "fleet"):
        whose = Path(mean)
        if not whose.exists():
            raise UsageError(f"--mean is file, fleet, or a client's state file, got {mean!r}")
    wanted = ScoreRequest(
        whose,
        None if when is None else Condition.parse(when, names),
        quantity,
        skip,
        zero_is_missing,
    )
    form: CsvScoreLines | JsonScoreLines = CsvScoreLines(
        names, kernel=len(normal.summary.parts) > 1
    )
    if as_json:
        form = JsonScoreLines(normal.schema)
    summary, notes = Summary(normal), dict.fromkeys(normal.notes)
    own_terminal = target is not None or not sys.stdout.isatty()
    with opened(target) as text, counting("rows read", shown=own_terminal) as advance:
        text.write(form.head)
        for path, part in score(files, normal, wanted, note=notes.setdefault, advance=advance):
            text.write(form.lines(path, part))
            summary.add(path, part)
            if curves is not None:
                curves.add(path, part)
        if not summary.scored:
            # Nothing of it is worth the place of older scores.
            raise UsageError(f"expected rows that can be scored, got none of {summary.counts}")
    for note in notes:
        click.echo(f"note: {note}", err=True)
    for what, said in summary.text():
        click.echo(f"{what:<10} {said}", err=True)
    if curves is not None and plot is not None:
        curves.draw(plot, normal.limits)
        click.echo(f"{'picture':<10} {plot}", err=True)


def _normal(model: Path | None, at: AggregatorOptions, rank: int | None) -> Normal:
    """Return what the options mean: a file's model, or a running aggregator's."""
    from submerge_fleet.score.model import of_file, of_running

    if model is None:
        return of_running(at.admin(instead="--model FILE, "), at.group, rank)
    at.refuse("--model")
    return of_file(model, rank)
