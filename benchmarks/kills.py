"""Real processes killed as by a power cut: what was acknowledged is counted, and counted once.

`python benchmarks/kills.py --kills 200 --over grpc` runs a fleet of seven processes, prints
kills and recoveries as they come, the figures at the end, and exits 1 on a violation. What is
judged, and how: tests/support/kills. `--over mqtt` needs Mosquitto.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import click

import blas  # noqa: F401 (before numpy: it sets one thread)
import recorded
from report import JSON_HELP, Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.kills import OverGrpc, OverMqtt, Result, Way, run

STARTS = (
    "aggregator/submerge_aggregator",
    "client/submerge_client",
    "core/submerge",
    "proto/submerge_proto",
)
"""What its programs run."""

FULL = 100
"""Fewer kills make a quick run."""


@contextmanager
def way(over: str) -> Iterator[Way]:
    if over == "grpc":
        yield OverGrpc.on_free_ports()
        return
    from support.broker import Mosquitto

    with tempfile.TemporaryDirectory() as folder:
        broker = Mosquitto(Path(folder))
        broker.start()
        try:
            yield OverMqtt(broker.port)
        finally:
            broker.stop()


def tables(over: str, result: Result) -> list[Table]:
    """Return what a run has shown."""
    found = result.findings
    back = [each.recovered_s for each in result.deaths if each.recovered_s is not None]
    row = (
        over,
        len(result.deaths),
        found.fed,
        found.acknowledged,
        found.counted,
        len(found.missing),
        len(found.twice),
        len(found.other),
        median(back) if back else None,
        max(back, default=None),
    )
    columns = {
        "over": "",
        "kills": "d",
        "fed": ",d",
        "acknowledged": ",d",
        "counted": ",d",
        "acknowledged, missing": "d",
        "counted twice": "d",
        "other violations": "d",
        "recovery, median s": ".1f",
        "longest s": ".1f",
    }
    return [Table("Kills", columns, [row])]


@click.command(help=__doc__)
@click.option("--kills", default=200, show_default=True)
@click.option("--over", type=click.Choice(("grpc", "mqtt")), default="grpc", show_default=True)
@click.option("--seed", default=1, show_default=True, help="Of the plan of kills.")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
def main(kills: int, over: str, seed: int, as_json: bool) -> None:
    """Run it, and print what was found."""
    began = time.monotonic()

    def tell(what: str) -> None:
        click.echo(f"{time.monotonic() - began:6.1f} s  {what}", err=as_json)

    with way(over) as chosen:
        result = run(chosen, seed=seed, kills=kills, tell=tell)
    if as_json:
        command = f"python benchmarks/kills.py --kills {kills} --over {over}"
        module = sys.modules[__name__]
        click.echo(recorded.record(module, command, tables(over, result), quick=kills < FULL))
    else:
        click.echo(f"over {over}, seed {seed}, {time.monotonic() - began:.0f} s")
        click.echo(result.text())
    sys.exit(bool(result.findings.all))


if __name__ == "__main__":
    main()
