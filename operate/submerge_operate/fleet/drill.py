"""`submerge drill`: what would raise an alarm, and what would not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge.drill.drill import FOUND
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
from submerge_files.console.units import duration, moment, printable
from submerge_files.drill.table import draw, print_table
from submerge_operate.fleet.node_places import when_applied

if TYPE_CHECKING:
    from submerge_aggregator.questions.survey import DrillView
    from submerge_files.drill.files import FileAnswer
    from submerge_files.score.model import Normal


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
    from submerge.history.knowledge import Learnt
    from submerge_files import model_file
    from submerge_files.console.progress import advancing
    from submerge_files.drill.files import DrillRequest, drill_files
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
    request = DrillRequest(
        settings=_settings(at_most, period),
        within=rows,
        reading=asked,
        highest=(saved.learnt or Learnt(saved.model)).highest,
    )
    notes = dict.fromkeys(normal.notes)
    with advancing("drill", len(files) * normal.channels) as advance:
        answers = list(drill_files(saved.model, request, note=notes.setdefault, advance=advance))
    for note in notes:
        click.echo(printable(f"note: {note}"), err=True)
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


def _settings(at_most: str, period: str | None) -> Any:
    """Return the alarm settings of the options, read as a client's configuration reads them."""
    from submerge_client.config.alarms import AlarmsConfig, LearnConfig

    settings = AlarmsConfig(at_most=at_most).settings(
        LearnConfig(), 0.0 if period is None else duration(period)
    )
    if settings is None:
        raise UsageError("--at-most off raises no alarms: give a rate")
    return settings
