"""The generated plants as files: what `submerge fit` and `detect` find, beside live fleets.

The rows of 40 nodes for 30 days ([plants](../docs/plants.md)). The first ten days, in which nothing
is wrong, are a history: `submerge.history.fit` learns it, a machine a node. The other twenty are
judged by `HistoryDetector`. An alarm is false if it began while nothing was wrong with its node. A
fault is found if an alarm was open during it. The live fleets are those of `alarms.py --keep`, with
the same seeds; they are judged from the moment they are armed, and learn on.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from plants.plant import PLANTS, Plant, plant
from report import Table
from submerge.history.detection import HistoryDetector
from submerge.history.fit import Fitted, fit
from submerge.history.recording import Recorded
from submerge.history.settings import SOON

DAYS, QUIET_DAYS, NODES = 30, 10, 40
EPOCH, WEEK_S, AT_ONCE = 1_700_000_000.0, 7 * 86400.0, 2048
REPAIR = 8
"""Rows after a fault's end in which an alarm is one about its repair, as in `alarms.py`."""


def recorded(fleet: Plant, rows: list[np.ndarray], first: int, last: int) -> Iterator[Recorded]:
    """Yield rows of all nodes, one after another."""
    for node in range(fleet.nodes):
        yield from of_node(fleet, rows, node, first, last)


def of_node(
    fleet: Plant, rows: list[np.ndarray], node: int, first: int, last: int
) -> Iterator[Recorded]:
    for begin in range(first, last, AT_ONCE):
        end, name = min(begin + AT_ONCE, last), f"n{node:02}"
        times = EPOCH + fleet.period_s * np.arange(begin, end)
        yield Recorded(name, rows[node][begin:end], times, name, begin + 1)


def judged(fleet: Plant, rows: list[np.ndarray], fitted: Fitted, first: int) -> dict[str, float]:
    """Return counts of false alarms, node-weeks without a fault, and faults that were found."""
    counts = {"false": 0.0, "weeks": 0.0, "found": 0.0, "faults": 0.0}
    for node in range(fleet.nodes):
        state = fitted.states[f"n{node:02}"]
        detector = HistoryDetector(fitted.model, state, fleet.period_s, SOON)
        for part in of_node(fleet, rows, node, first, fleet.n_rows):
            for _ in detector.add(part):
                pass
        spans = [
            (each.began.row - 1, fleet.n_rows if each.ended is None else each.ended.row - 1)
            for each in detector.found.values()
        ]
        faults = [fault for fault in fleet.faults if fault.node == node]
        wrong = np.zeros(fleet.n_rows, dtype=bool)
        for fault in faults:
            wrong[fault.start : fault.end + fleet.lingers + REPAIR] = True
            counts["faults"] += 1
            counts["found"] += any(a < fault.end and b >= fault.start for a, b in spans)
        counts["false"] += sum(not wrong[begin] for begin, _ in spans)
        counts["weeks"] += float((~wrong[first:]).sum()) * fleet.period_s / WEEK_S
    return counts


def live_counts(path: Path) -> dict[str, float]:
    """Return the same of a live fleet."""
    (run,) = json.loads(path.read_text())["runs"]
    found = [each["delay_h"] is not None for each in run["found"]]
    return {
        "false": len(run["false"]),
        "weeks": run["quiet_weeks"],
        "found": sum(found),
        "faults": len(found),
    }


@click.command(help=__doc__)
@click.option("--plant", "names", type=click.Choice([*PLANTS]), multiple=True)
@click.option("--seed", "seeds", type=int, multiple=True, default=(106,))
@click.option("--live", type=click.Path(path_type=Path), help="A folder of `alarms.py --keep`.")
def main(names: tuple[str, ...], seeds: tuple[int, ...], live: Path | None) -> None:
    """Run it, and print the table."""
    table = []
    for name in names or PLANTS:
        ways: dict[str, list[dict[str, float]]] = {"files": [], "live": []}
        for seed in seeds:
            click.echo(f"{name} {seed}", err=True)
            fleet = plant(name, seed=seed, nodes=NODES, days=DAYS, quiet_days=QUIET_DAYS)
            rows = [fleet.rows(node, 0, fleet.n_rows) for node in range(fleet.nodes)]
            first = int(QUIET_DAYS * 86400 / fleet.period_s)
            parts = list(recorded(fleet, rows, 0, first))
            fitted = fit(lambda parts=parts: parts, [each.name for each in fleet.channels])
            ways["files"].append(judged(fleet, rows, fitted, first))
            if live is not None:
                ways["live"].append(live_counts(live / f"{name}-{seed}.json"))
        for way, every in ways.items():
            if every:
                total = {what: sum(each[what] for each in every) for what in every[0]}
                found = f"{total['found']:.0f} of {total['faults']:.0f}"
                share = total["found"] / total["faults"]
                table.append((name, way, total["false"] / total["weeks"], found, share))
    heads = {
        "plant": "",
        "": "",
        "false alarms a node and week": ".2f",
        "found": "",
        "share": ".1%",
    }
    click.echo(Table("files and live fleets", heads, table).markdown)


if __name__ == "__main__":
    main()
