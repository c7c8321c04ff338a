"""Figure: curves under axes and tables, with what they were measured with; and its command.

A figure's module has a `figure(quick)` that returns one, and ends in `command(figure)`:

    python benchmarks/papers/ny_kpca.py --quick --json out.json --png out.png

The JSON holds the commit, the machine, versions, the date, and a hash of the files that the figure
measures. So a page can say whether they have changed since.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

import blas
from recorded import circumstances
from report import Table

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Curve:
    """One line of a panel; `low` and `high` are error bars.

    whose : "ours", "theirs" (a rival that ran here), "printed" (of the paper), or "dots" (rows)
    """

    label: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    whose: str = "ours"


@dataclass(frozen=True)
class Panel:
    """Curves under one pair of axes.

    tabled : whether the text has a table of them; the picture shows them anyway
    x_names : what x = 1, 2, ... stand for
    least : on a log axis smaller values are drawn here: they are rounding
    """

    title: str
    x_label: str
    y_label: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False
    tabled: bool = True
    x_names: list[str] | None = None
    least: float = 0.0


@dataclass(frozen=True)
class Figure:
    """What was measured.

    name : Of its JSON and its picture: the module's place in this folder, as `federated/synth`.
    paper, what : The paper and its figure; what ours shows, and where it departs from the paper.
    data : Rows, and whether they are the paper's own or generated.
    measures : Files and folders of the repository that the figures depend on.
    verdict : Whether our measurement agrees with what the paper claims, and where not, why.
    """

    name: str
    paper: str
    what: str
    data: str
    measures: tuple[str, ...]
    panels: list[Panel] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    verdict: str = ""


def about(document: str | None) -> str:
    """Return what a module says of itself below its first line, for the notes of a table."""
    return (document or "").partition("\n\n")[2].strip()


def record(figure: Figure, *, quick: bool, pools: Sequence[str]) -> dict[str, object]:
    """Return a figure with what it was measured with, as values of JSON."""
    return {
        **asdict(figure),
        "command": f"python benchmarks/papers/{figure.name}.py",
        **circumstances(figure.measures, quick=quick, pools=pools),
    }


def command(figure: Callable[[bool], Figure]) -> None:
    """Run a figure from the command line."""

    @click.command(help=sys.modules[figure.__module__].__doc__)
    @click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
    @click.option("--json", "json_to", type=click.Path(path_type=Path), help="Write JSON here.")
    @click.option("--png", "png_to", type=click.Path(path_type=Path), help="Draw a picture here.")
    def main(quick: bool, json_to: Path | None, png_to: Path | None) -> None:
        pools = blas.check()
        made = record(figure(quick), quick=quick, pools=pools)
        if json_to is not None:
            json_to.write_text(json.dumps(made, indent=1) + "\n")
        if png_to is not None:
            from papers.drawing import draw  # late: matplotlib is slow to import

            draw(made, png_to)
        click.echo(markdown(made))

    main()


def markdown(made: dict) -> str:
    """Return a record as text: what it is, where it was measured, and its tables."""
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    head = [
        f"* paper: {made['paper']}",
        f"* data: {made['data']}",
        f"* command: `{made['command']}`{' --quick' if made['quick'] else ''}",
        f"* {made['date']}, commit {made['commit']}, {made['machine']}; {versions}",
    ]
    if verdict := made.get("verdict"):  # the first paper's are in verdicts.toml
        head.append(f"* verdict: {verdict}")
    tables = [Table.of_record(each).markdown for each in made["tables"]]
    # A record from before there was a choice has all of them.
    shown = [panel for panel in made["panels"] if panel.get("tabled", True)]
    tables += [_of_panel(panel).markdown for panel in shown]
    return "\n\n".join([made["what"], "\n".join(head), *tables])


def _of_panel(panel: dict) -> Table:
    """Return a panel's curves as a table: a row for each x, or for each point if no x is shared."""
    title = f"{panel['title']}: {panel['y_label']}"
    held = [x for curve in panel["curves"] for x in curve["x"]]
    if len(panel["curves"]) > 1 and len(set(held)) == len(held):
        columns = {"curve": "", panel["x_label"]: ",.0f", panel["y_label"]: ".4g"}
        points = [
            (curve["label"], x, y)
            for curve in panel["curves"]
            for x, y in zip(curve["x"], curve["y"], strict=True)
        ]
        return Table(title, columns, points)
    xs = sorted({x for curve in panel["curves"] for x in curve["x"]})
    columns = {panel["x_label"]: "g"} | {curve["label"]: ".4g" for curve in panel["curves"]}
    rows: list[tuple[object, ...]] = []
    for x in xs:
        cells = [dict(zip(curve["x"], curve["y"], strict=True)).get(x) for curve in panel["curves"]]
        rows.append((x, *cells))
    return Table(title, columns, rows)
