"""Methods that learn a subspace, side by side on one stream: `python benchmarks/compare.py --help`.

Needs `submerge[files]`. Run from a clone, with OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from contest.contender import found, raised
from contest.line_up import line_up
from contest.streams import of_files, spectrum
from contest.trial import BenchTrial, tails, tried
from submerge import SubmergeError, UsageError
from submerge_files.console.options import QUIET, default_option, json_option, skip_option
from submerge_files.console.progress import advancing

MOST_RANK, MOST_ALPHA = 4096, 10.0

FLAT = 1e-12
"""What a rank misses, over all that rows vary, from which on it is more than rounding."""


@click.command(
    epilog="""\b
Example: python benchmarks/compare.py readings.csv --rank 8
         python benchmarks/compare.py --alpha 1 --method mymethods:Tracker"""
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE...]")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="MODULE:CLASS",
    help="One more method: Class(rank) with partial_fit(block) and basis(); may be repeated.",
)
@default_option("--rank", 10, "Directions.", type=click.IntRange(1, MOST_RANK))
@default_option("--block", 50, "Rows of a call.", type=click.IntRange(1))
@default_option("--passes", 3, "Passes that are timed.", type=click.IntRange(1, 100))
@default_option(
    "--alpha",
    1.0,
    "Without FILE: a stream with eigenvalues i^-alpha.",
    type=click.FloatRange(0, MOST_ALPHA),
)
@skip_option("Leave a column of FILEs out, by name.")
@json_option()
@QUIET
def command(
    files: tuple[Path, ...],
    methods: tuple[str, ...],
    rank: int,
    block: int,
    passes: int,
    alpha: float,
    skip: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Let methods learn the rows of FILEs, and print error, time and memory of each.

    Error is the squared residual of all rows over that of the best subspace of the same rank, which
    is 1. Rows with a gap are left out and the mean is removed first, since most methods do neither.
    Time is processor time of one thread where OPENBLAS_NUM_THREADS=1.
    """
    if not files and alpha != alpha:  # NaN is in every range
        raise UsageError(f"--alpha must be a number from 0 to {MOST_ALPHA:g}, got {alpha}")
    others = {name: found(name) for name in methods}
    stream = of_files(files, skip=skip) if files else spectrum(alpha)
    n, dim = stream.rows.shape
    if rank >= min(n, dim):
        raise UsageError(
            f"--rank must be below {min(n, dim)}, the least of rows and columns, got {rank}"
        )
    contenders, tail = line_up(rank, others), tails(stream.rows)
    if not tail[rank] > FLAT * tail[0]:
        raise UsageError(f"expected rows that vary in more than {rank} directions: lower --rank")
    results: dict[str, BenchTrial] = {}
    with nullcontext(lambda _: None) if quiet else advancing("bench", len(contenders)) as advance:
        for name, make in contenders.items():
            try:
                results[name] = tried(make, stream.rows, block=block, passes=passes, tail=tail)
            except Exception as error:  # code of others: it may raise anything
                if name not in others:
                    raise
                why = str(error) if isinstance(error, UsageError) else f"it raised {raised(error)}"
                raise UsageError(f"method {name}: {why}") from error
            advance(1)
    if as_json:
        measured = {name: trial._asdict() for name, trial in results.items()}
        head = {"stream": stream.name, "rows": n, "dim": dim, "rank": rank, "block": block}
        click.echo(json.dumps(head | {"methods": measured}))
        return
    click.echo(f"{stream.name}: {n} rows of {dim} columns, rank {rank}, calls of {block} rows")
    width = max(map(len, results))
    click.echo(f"{'method':<{width}}  rank  over the optimum  µs a row  peak kB")
    for name, trial in results.items():
        figures = f"{trial.rank:>4}  {trial.over_optimum:>16.5f}  {trial.us_a_row:>8.2f}"
        click.echo(f"{name:<{width}}  {figures}  {trial.peak_bytes / 1e3:>7.0f}")


def main() -> None:
    """Run the command; report bad input in one line."""
    try:
        command.main(standalone_mode=False)
    except click.ClickException as error:
        refuse(error.format_message())
    except SubmergeError as error:
        refuse(str(error))


def refuse(message: str) -> None:
    click.echo(f"compare: {message}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
