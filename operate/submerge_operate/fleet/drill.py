"""`submerge drill`: what would raise an alarm, and what would not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from submerge.drill.drill import BLIND, FOUND, LARGEST
from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminCommand, value_in
from submerge_files.console.options import (
    FILE,
    QUANTITY,
    RANK,
    ZERO_IS_MISSING,
    AggregatorOptions,
    aggregator_options,
    check_picture,
    default_option,
    flag_option,
    json_option,
    skip_option,
)
from submerge_files.console.tables import Column, say_notes, table
from submerge_files.console.units import duration, figure, moment, name_text
from submerge_operate.fleet.node_places import when_applied

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.questions.survey import DrillView
    from submerge_files.drill import FileAnswer
    from submerge_files.score.model import Normal

SIZES = ("bias", "drift", "noise")

LEGEND = (
    "bias, drift, noise: the smallest that raises an alarm in 9 of 10 tries (a drift: what it"
    " reaches by then); stuck, swap: the share of tries in which one is found. R2: the share of"
    f" its variance that the other channels explain; below {BLIND:g} it is blind: only a fault that"
    " takes the channel out of its own range is found."
)


SEVERAL = "Of several nodes: the median, and in brackets the worst."

NONE = f"none: no fault of up to {LARGEST:g} standard deviations of the channel is found"


def print_table(channels: Sequence[dict[str, Any]], *, several: bool) -> None:
    """Print the objects of `in_units`, and what the table means; `several`: of several nodes."""
    from rich.console import Console

    Console(highlight=False).print(table_of(channels, several=several))
    click.echo(LEGEND)
    if several:
        click.echo(SEVERAL)
    # Some node finds no size of some fault.
    if any(each[kind]["worst"] is None for each in channels for kind in SIZES):
        click.echo(NONE)


def table_of(channels: Sequence[dict[str, Any]], *, several: bool) -> Table:
    """Return the objects of `in_units` as a table; `several`: with the worst node."""

    def size(kind: str) -> Column[dict[str, Any]]:
        def cell(channel: dict[str, Any]) -> str:
            median, worst = (
                "none" if size is None else figure(size)
                for size in (channel[kind]["median"], channel[kind]["worst"])
            )
            return f"{median} ({worst})" if several else median

        return Column(kind, cell, right=True)

    def share(kind: str) -> Column[dict[str, Any]]:
        return Column(
            kind, lambda each: "-" if each[kind] is None else f"{each[kind]:.0%}", right=True
        )

    columns: list[Column[dict[str, Any]]] = [
        Column("channel", _channel, folds=True),
        *map(size, SIZES),
        *map(share, ("stuck", "swap")),
        Column("R2", lambda each: f"{each['r2']:.2f}", right=True),
        Column("", _remark, folds=True),
    ]
    if any(each.get("missed") for each in channels):
        columns.insert(-1, Column("missed", lambda each: str(each["missed"] or ""), right=True))
    return table(channels, columns)


def _channel(channel: dict[str, Any]) -> str:
    unit = f" [{name_text(channel['unit'])}]" if channel["unit"] else ""
    return name_text(channel["channel"]) + unit


def _remark(channel: dict[str, Any]) -> str:
    blind, nodes = channel["blind"], channel["nodes"]
    if not blind:
        return ""
    return "blind" if nodes == blind else f"blind at {blind} of {nodes}"


def draw(path: Path, channels: Sequence[dict[str, Any]]) -> None:
    """Write a picture to `path`, a PNG: the smallest faults of each channel that are found."""
    from submerge_files.console.figures import Figure, save

    figure = Figure(figsize=(9, 1.2 + 0.22 * len(channels)), layout="constrained")
    chart = figure.subplots()
    rows = np.arange(len(channels))
    for i, kind in enumerate(SIZES):
        shift, color = 0.25 * (i - 1), f"C{i}"
        spreads = [[_drawn(each, size) for size in each[kind].values()] for each in channels]
        best, median, worst = np.array(spreads).T
        chart.hlines(rows + shift, best, worst, color=color, lw=1.2)
        chart.plot(median, rows + shift, "o", ms=3.5, color=color, label=kind)
    for row, each in zip(rows.tolist(), channels, strict=True):
        if each["blind"]:
            chart.axhspan(row - 0.5, row + 0.5, color="C3", alpha=0.12, lw=0)
    chart.set_xscale("log", base=2)
    chart.axvline(LARGEST, color="0.7", lw=0.8)
    chart.set_yticks(rows, [each["channel"] for each in channels], fontsize="small")
    chart.invert_yaxis()
    chart.set_xlabel(
        "smallest fault that is found, in standard deviations (of nodes: scales) of the channel"
        f" (at {LARGEST:g}: none); shaded: blind"
    )
    figure.legend(fontsize="small", loc="outside upper center", ncols=3)
    save(figure, path, dpi=130)


def _drawn(channel: dict[str, Any], size: float | None) -> float:
    return LARGEST if size is None else min(size / channel["deviation"], LARGEST)


def ask_nodes(at: AggregatorOptions, nodes: Sequence[str], *, anyway: bool) -> None:
    """Ask nodes for a drill; print when that reaches them."""
    admin = at.admin(instead="FILEs with --model, or ")
    group = admin.group(at.group)
    for node in nodes:
        answer = admin.post("nodes", group, node, "drill", **({"anyway": "1"} if anyway else {}))
        click.echo(f"{node} of group {group} is to drill. {when_applied(answer)}")


def show_answers(at: AggregatorOptions, plot: Path | None, *, as_json: bool) -> None:
    """Print what nodes have found out, merged."""
    from submerge_aggregator.questions.survey import DrillView

    admin = at.admin(instead="FILEs with --model, or ")
    answer = admin.get("drills", admin.group(at.group))
    view = value_in(answer, DrillView)
    if as_json:
        click.echo(json.dumps(json.loads(answer), indent=2))
    elif not view.nodes:
        click.echo(
            f"No node of group {view.group} has answered a drill yet: ask one with --ask NODE"
        )
    else:
        _print(view)
    if view.nodes:
        _draw(plot, view.channels)


def _draw(plot: Path | None, channels: list[dict[str, Any]]) -> None:
    if plot is not None:
        draw(plot, channels)
        click.echo(f"picture {plot}", err=True)


def _print(view: DrillView) -> None:
    print_table(view.channels, several=len(view.nodes) > 1)
    some = view.missed_elsewhere
    if some or any(each["missed"] for each in view.channels):
        elsewhere = f"; {some} of no channel in particular" if some else ""
        click.echo(f"missed: faults that raised no alarm, as people say{elsewhere}")
    for node in view.nodes:
        by = "" if node.reported_by == node.node else f", by {node.reported_by}"
        click.echo(
            f"{node.node}{by}: {moment(node.at)}, {node.rows} rows, {node.tries} tries within"
            f" {node.within} rows, {node.at_most_per_s * 604800:.3g} false a week"
        )


@click.command(
    cls=AdminCommand,
    epilog="""\b
Example: submerge model save monday.model --config root.toml
         submerge drill pump-*.csv --model monday.model --period 30s --plot drill.png
         submerge drill --ask pump-3 --config root.toml
         submerge drill --config root.toml""",
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE...]")
@click.option(
    "--model", type=FILE, help="A file of `submerge fit` or `submerge model save`; with FILEs."
)
@aggregator_options("config, store: the group; needed if there are several groups.")
@click.option("--ask", multiple=True, metavar="NODE", help="config, store: have NODE drill.")
@flag_option("--anyway", "ask: also a node that never reported here.")
@RANK
@default_option(
    "--at-most",
    "1 false per week",
    "The rate of false alarms that is promised, as in a client's [alarms].",
)
@click.option(
    "--period",
    metavar="TIME",
    help="Time that a row stands for, such as 30s: faults have to be found within an hour.",
)
@click.option(
    "--rows",
    type=click.IntRange(8),
    help="Find faults within so many rows instead.  [default, without --period: 60]",
)
@click.option("--when", metavar="CONDITION", help='Only rows like "rpm > 50 and load >= 0.2".')
@ZERO_IS_MISSING
@QUANTITY
@skip_option("Leave a column out, by name; needed if columns go by place.")
@json_option("Print one JSON object.")
@click.option("--plot", type=FILE, help="Draw the sizes into this PNG.")
def command(
    at: AggregatorOptions,
    files: tuple[Path, ...],
    model: Path | None,
    ask: tuple[str, ...],
    anyway: bool,
    plot: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say which faults would raise an alarm, and which channels are blind.

    Bias, drift, noise, stuck and exchanged sensors are tried on copies of rows, at many places,
    and judged as nodes judge rows: by the model, and by its limits of alarms at the promised
    rate. Nothing is learnt, and no alarm is raised.

    For each channel it prints the smallest bias, drift and noise that is found in 9 of 10 tries,
    in the channel's unit. A channel is blind if the others say little about it.

    With FILEs and --model, the newest rows of FILEs are tried; they are read as `submerge score`
    reads them: each is a node. With --config or --store of a running aggregator, nodes try their
    own newest rows: --ask NODE asks one, and without --ask the answers are shown.
    """
    check_picture(plot, inputs=files if model is None else (*files, model))
    if files:
        at.refuse("FILEs")
        if model is None:
            raise UsageError(
                "expected --model FILE, as `submerge fit` wrote it, with FILEs, got none"
            )
        _on_files(files, model, plot, as_json=as_json, **options)
        return

    if ask:
        ask_nodes(at, ask, anyway=anyway)
    else:
        show_answers(at, plot, as_json=as_json)


def _on_files(
    files: tuple[Path, ...],
    model: Path,
    plot: Path | None,
    *,
    as_json: bool,
    rank: int | None,
    at_most: str,
    period: str | None,
    rows: int | None,
    when: str | None,
    quantity: str,
    **reading: Any,
) -> None:
    from submerge_files import model_file
    from submerge_files.console.progress import advancing
    from submerge_files.detect.run import alarms_at
    from submerge_files.drill import FaultsToTry, drill_files
    from submerge_files.reader import ReadingOptions
    from submerge_files.score.model import of_file
    from submerge_files.score.run import ScoreRequest, chosen_rows

    saved, normal = model_file.read(model), of_file(model, rank)
    options, condition, remembered = chosen_rows(
        normal, ReadingOptions(quantity=quantity, **reading), when
    )
    asked = ScoreRequest(
        normal, files, when=condition, reading=options, allow_missing=True, remembered=remembered
    )
    faults = FaultsToTry(alarms_at(at_most, 0.0 if period is None else duration(period)), rows)
    given = saved.model, asked, faults, saved.known.highest
    notes = dict.fromkeys(normal.notes)
    with advancing("drill", len(files) * normal.channels) as advance:
        answers = list(drill_files(*given, note=notes.setdefault, advance=advance))
    say_notes(notes)
    _show(answers, normal, at_most, plot, as_json=as_json)


def _show(
    answers: list[FileAnswer], normal: Normal, at_most: str, plot: Path | None, *, as_json: bool
) -> None:
    from submerge.drill.merged import in_units, merged

    together = merged([each.channels for each in answers])
    channels = in_units(together, normal.schema)
    files = [
        {"file": str(each.path), "rows": each.rows, "tries": 2 * each.spans, "within": each.within}
        for each in answers
    ]
    if as_json:
        said = {"model": normal.about, "at_most": at_most, "found": FOUND}
        click.echo(json.dumps({**said, "files": files, "channels": channels}, indent=2))
    else:
        print_table(channels, several=len(answers) > 1)
        tries = sorted({2 * each.spans for each in answers})
        within = sorted({each.within for each in answers})
        click.echo(
            f"Within {_span(within)} rows, in {_span(tries)} tries a file, at {at_most}:"
            f" {normal.about}"
        )
    _draw(plot, channels)


def _span(numbers: list[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
