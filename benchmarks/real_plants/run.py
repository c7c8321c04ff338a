"""Real plants, where the user has their files: fit, score and detect at defaults.

SUBMERGE_DATA=~/data python benchmarks/real_plants/run.py tep
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

# Run as a file: its folder is on the path, and the benchmarks' is not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
import numpy as np

import blas
import measure
from real_plants.judged import Judged, alarms, contenders, judged
from real_plants.sets import SETS
from report import Table
from submerge import UsageError


def tables(name: str, most: int) -> list[Table]:
    """Measure a set; at most so many of its cases."""
    plants = SETS[name]
    cases = plants.cases(measure.DATA)[:most]
    rows: list[tuple[object, ...]] = []
    for method, make in measure.progress(contenders().items(), f"{plants.title}: scores"):
        results = [judged(case, make) for case in cases]
        rows.append((method, *_means(results), sum(each.found is not None for each in results)))
    columns = {"method": "", "found at 1 % false": ".3f", "AUC": ".3f", "cases": "d"}
    raised = [alarms(case) for case in measure.progress(cases, f"{plants.title}: alarms")]
    faulty = [each for each in raised if each.hit is not None]
    figures = [
        (
            *(len(cases), len(faulty), sum(bool(each.hit) for each in faulty)),
            *(sum(each.false for each in raised), sum(len(case.rows) for case in cases)),
        )
    ]
    names = ("cases", "with a fault", "found", "false alarms", "rows judged")
    return [
        Table(f"{plants.title}: scores, means of cases", columns, rows, plants.load.__doc__ or ""),
        Table("Alarms of submerge at its defaults", dict.fromkeys(names, "d"), figures),
    ]


def _means(results: list[Judged]) -> tuple[float | None, float | None]:
    found = [each.found for each in results if each.found is not None]
    auc = [each.auc for each in results if each.auc is not None]
    return (float(np.mean(found)), float(np.mean(auc))) if found else (None, None)


@click.command(help=__doc__)
@click.argument("name", type=click.Choice(tuple(SETS)))
@click.option("--most", default=10**6, help="Most cases, for a first look.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of markdown.")
def main(name: str, most: int, as_json: bool) -> None:
    """Measure one set."""
    pools = blas.check()
    try:
        found = tables(name, most)
    except UsageError as error:
        click.echo(f"submerge: {error}", err=True)
        sys.exit(2)
    if as_json:
        click.echo(json.dumps({"blas": pools, "tables": [asdict(table) for table in found]}))
    else:
        click.echo("\n\n".join(table.markdown for table in found))


if __name__ == "__main__":
    main()
