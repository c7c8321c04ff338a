"""The processor time of a root for each durable report: this code, and that of another checkout.

    git archive main | tar x -C /somewhere/else
    python benchmarks/durable_against.py /somewhere/else

Roots of both take turns, so that both meet the same other work on this machine. The load and the
nodes are those of `durable.py`. Over gRPC nodes report on streams to this code, and by calls to
the other, which may know no streams. The ratio is the median over the rounds.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click

import durable
import measure
import processes
from report import Table

OTHERS = {"gRPC": "gRPC, a call each", "MQTT": "MQTT"}
"""How nodes report to the other code, by how they report to this one."""


class Pair(NamedTuple):
    """A row of the table: medians over the rounds."""

    over: str
    before_us: float
    after_us: float
    ratio: float
    before_per_s: float
    after_per_s: float


def compared(over: str, other: Path, seconds: float, rounds: int) -> Pair:
    """Let both take turns, the other first."""
    pairs = []
    for _ in measure.progress(range(rounds), over):
        before = _measured(OTHERS[over], seconds, other)
        pairs.append((before, _measured(over, seconds, None)))
    before, after = zip(*pairs, strict=True)
    return Pair(
        over,
        median(rate.microseconds for rate in before),
        median(rate.microseconds for rate in after),
        median(new.microseconds / old.microseconds for old, new in pairs),
        median(rate.per_s for rate in before),
        median(rate.per_s for rate in after),
    )


def _measured(over: str, seconds: float, source: Path | None) -> durable.Rate:
    """Measure in a process of its own: gRPC's event loop ends with its process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_alone, over, seconds, source).result()


def _alone(over: str, seconds: float, source: Path | None) -> durable.Rate:
    with processes.other_core():
        return durable.measured(over, seconds, source=source)


@click.command(help=__doc__)
@click.argument("other", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seconds", default=6.0, help="Of each run.")
@click.option("--rounds", default=5, help="Runs of each.")
def main(other: Path, seconds: float, rounds: int) -> None:
    """Print a table."""
    load = processes.load()
    rows = [compared(over, other.absolute(), seconds, rounds) for over in OTHERS]
    columns = {
        "over": "",
        "µs before": ".0f",
        "µs now": ".0f",
        "ratio": ".2f",
        "reports/s before": ".0f",
        "reports/s now": ".0f",
    }
    print(Table("A durable report", columns, rows, f"Load when it began: {load}.").markdown)


if __name__ == "__main__":
    main()
