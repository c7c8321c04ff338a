"""What a history costs the reports that a root makes durable: with one, and without, in turns.

    python benchmarks/durable_history.py --rounds 5

The load and the nodes are those of `durable.py`; each report has the trail of 32 minutes, in both
cases. Roots with `[history] max_bytes = 0` and with the default take turns, so that both meet the
same other work on this machine. The shares are medians over the rounds, and those of
the best turns, which other programs disturb least: above 1, reports were faster with a history.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import NamedTuple

import click

import durable
import measure
import processes
from report import Table

NONE = "\n[history]\nmax_bytes = 0\n"


class Pair(NamedTuple):
    """A row of the table: medians over the rounds."""

    over: str
    without_per_s: float
    with_per_s: float
    share: float
    without_us: float
    with_us: float
    share_of_time: float
    best_per_s: float
    best_us: float


def compared(over: str, seconds: float, rounds: int) -> Pair:
    """Let both take turns; which one is first, too."""
    pairs = []
    for turn in measure.progress(range(rounds), over):
        order = (NONE, "") if turn % 2 else ("", NONE)
        taken = {more: _measured(over, seconds, more) for more in order}
        pairs.append((taken[NONE], taken[""]))
    without, kept = zip(*pairs, strict=True)
    return Pair(
        over,
        median(rate.per_s for rate in without),
        median(rate.per_s for rate in kept),
        median(new.per_s / old.per_s for old, new in pairs),
        median(rate.microseconds for rate in without),
        median(rate.microseconds for rate in kept),
        median(old.microseconds / new.microseconds for old, new in pairs),
        max(rate.per_s for rate in kept) / max(rate.per_s for rate in without),
        min(rate.microseconds for rate in without) / min(rate.microseconds for rate in kept),
    )


def _measured(over: str, seconds: float, more: str) -> durable.Rate:
    """Measure in a process of its own: gRPC's event loop ends with its process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_alone, over, seconds, more).result()


def _alone(over: str, seconds: float, more: str) -> durable.Rate:
    with processes.other_core():
        return durable.measured(over, seconds, more=more)


@click.command(help=__doc__)
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=8.0, show_default=True, help="Of each turn.")
@click.option("--over", "ways", multiple=True, default=("gRPC",), show_default=True)
def main(rounds: int, seconds: float, ways: tuple[str, ...]) -> None:
    """Print the table."""
    load = processes.load()
    rows = [compared(over, seconds, rounds) for over in ways]
    columns = {
        "over": "",
        "reports/s without": ".0f",
        "reports/s with": ".0f",
        "share": ".3f",
        "µs without": ".0f",
        "µs with": ".0f",
        "share of µs": ".3f",
        "share of the best": ".3f",
        "of the least µs": ".3f",
    }
    title = f"Durable reports with a history, {rounds} rounds of {seconds:g} s"
    click.echo(Table(title, columns, rows, f"Load when it began: {load}.").markdown)


if __name__ == "__main__":
    main()
