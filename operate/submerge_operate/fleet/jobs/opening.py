"""kind_command(): the command of one kind of job, with an option for each of its settings."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from submerge.errors import UsageError
from submerge.jobs.job import LONGEST_S, Settings
from submerge.jobs.kinds import KINDS
from submerge.jobs.roster import MOST_MEMBERS
from submerge_aggregator.jobs.views import JobView
from submerge_files.console.admin_client import AdminCommand
from submerge_files.console.options import (
    FILE,
    QUIET,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
    together,
)
from submerge_files.console.reading_options import READING, reading_options
from submerge_files.console.units import duration, in_words
from submerge_operate.fleet.jobs.command import ANSWER, check_targets, deliver, finish
from submerge_operate.fleet.jobs.kind_options import option_of, setting_options, settings_given
from submerge_operate.fleet.jobs.progress import rounds_shown
from submerge_operate.fleet.jobs.row_clusters import check_rows_file

WITHIN_S, LEAST = 3600.0, 1
"""What holds where nothing is said."""

IN_A_FLEET = together(
    click.option(
        "--wait/--no-wait",
        default=None,
        help="Wait for the answer, or end once the job is open.  [default: wait]",
    ),
    click.option(
        "--exact/--no-exact",
        default=None,
        help="Begin again without a node that leaves, or go on: what it gave to earlier rounds"
        " stays in.  [default: exact]",
    ),
    click.option(
        "--least",
        type=click.IntRange(1, MOST_MEMBERS),
        help=f"Fewer nodes than this are a failure.  [default: {LEAST}]",
    ),
    click.option(
        "--within",
        type=duration,
        metavar="TIME",
        help="The job fails without an answer within so long: 90s, 2h.  [default: 1h]",
    ),
)
ON_FILES = together(
    flag_option("--files", "FILEs are the nodes: it runs on them, in this process.", "on_files"),
    READING,
    flag_option("--unscaled", "Files: take channels in their units; else all spreads are made 1."),
    click.option(
        "--rows",
        type=FILE,
        help="Files: write the cluster of each row into this CSV, for kinds with clusters.",
    ),
)

OTHERS = together(
    aggregator_options("Of whose rows; needed where there are several groups."),
    IN_A_FLEET,
    ON_FILES,
    ANSWER,
    QUIET,
    json_option("Print the answer as one JSON object."),
)
"""All options that are no settings."""

FLEET_ONLY = ("wait", "exact", "least", "within")


def kind_command(kind: str) -> click.Command:
    """Return the command that opens jobs of a kind."""
    summary = (KINDS[kind].__doc__ or kind).partition("\n")[0]
    text = f"""{summary}

    At a running root the job is opened in its fleet, over the rows that devices hold for jobs, and
    its answer waited for. With FILEs it runs in this process over all rows, and each file is a
    node; channels are scaled by their means and standard deviations, as a fleet's are. Answers are
    in the channels' units.

    Status 1 if the job fails.
    """
    others = _other_options()
    needed = "".join(
        f" {option_of(kind, each, others)} 8" for each in KINDS[kind].listed if not each.default
    )
    options = together(
        click.argument("files", nargs=-1, metavar="[FILE]..."),
        setting_options(kind, others),
        OTHERS,
    )
    made: click.Command = click.command(
        kind,
        cls=AdminCommand,
        help=text,
        short_help=summary,
        epilog=f"\b\nExample: submerge jobs {kind}{needed} --config root.toml\n"
        f"         submerge jobs {kind}{needed} --files plant/*.csv --out answer.npz",
    )(options(partial(_run, kind)))
    return made


def _run(kind: str, **given: Any) -> None:
    settings = settings_given(given)
    paths, on_files = given.pop("files"), given.pop("on_files")
    at, unscaled, rows = given.pop("at"), given.pop("unscaled"), given.pop("rows")
    fleet = {name: given.pop(name) for name in FLEET_ONLY}
    output = {name: given.pop(name) for name in ("out", "plot", "quiet", "as_json")}
    read = tuple(map(Path, paths))
    check_targets(kind, output["out"], output["plot"], rows=rows, inputs=read)
    if paths or on_files:
        if not paths:
            raise UsageError("expected FILEs behind --files, got none")
        said = {
            f"no_{name}" if value is False else name: value is not None
            for name, value in fleet.items()
        }
        _refuse("--{} is for a running fleet, got FILEs as well", at._asdict() | said)
        if rows is not None:
            check_rows_file(kind, rows)
        _on_files(kind, settings, paths, given, scales=not unscaled, rows=rows, **output)
        return
    _refuse("--{} is for FILEs, got none", {**given, "unscaled": unscaled, "rows": rows})
    _in_fleet(kind, settings, at, fleet, **output)


def _other_options() -> frozenset[str]:
    """Return the names of all options that are no settings."""
    probe: click.Command = click.command("probe")(OTHERS(lambda: None))
    return frozenset(each for option in probe.params for each in option.opts)


def _refuse(why: str, options: dict[str, Any]) -> None:
    """Refuse options that would have no effect."""
    for name, value in options.items():
        if value not in (None, False, ()):
            raise UsageError(why.format(name.replace("_", "-")))


def _on_files(
    kind: str,
    settings: Settings,
    files: tuple[str, ...],
    reading: dict[str, Any],
    *,
    scales: bool,
    rows: Path | None,
    out: tuple[Path, ...],
    plot: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    from submerge_files.reader.formats.remote_path import path_of
    from submerge_operate.fleet.jobs.on_files import JobOnFiles, run_on_files
    from submerge_operate.fleet.jobs.row_clusters import write_rows

    paths = [path_of(file) for file in files]
    asked = JobOnFiles(kind, settings, paths, reading_options(**reading), scales)
    notes: list[str] = []
    with rounds_shown(shown=not quiet and sys.stderr.isatty()) as say:
        record = run_on_files(
            asked,
            note=notes.append,
            began=lambda phase, number: say(f"round {number:,} ({phase})"),
            shown=not quiet,
        )
    for note in notes:
        click.echo(f"note: {note}", err=True)
    deliver(record, out, plot, as_json=as_json)
    if rows is not None:
        write_rows(record, asked, rows)


def _in_fleet(
    kind: str,
    settings: Settings,
    at: AggregatorOptions,
    fleet: dict[str, Any],
    *,
    out: tuple[Path, ...],
    plot: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    from submerge_aggregator.jobs.order import JobOrder
    from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs
    from submerge_operate.fleet.jobs.words import stage_of

    waits = fleet["wait"] in (None, True)
    if not waits and (out or plot is not None):
        raise UsageError("--out and --plot need the answer, got --no-wait: leave it out")
    within = WITHIN_S if fleet["within"] is None else fleet["within"]
    if not 0 < within <= LONGEST_S:
        raise UsageError(
            f"--within is over 0 and at most {LONGEST_S / 86400:g}d, got {in_words(within)}"
        )
    order = JobOrder(
        kind=kind,
        settings=dict(settings),
        exact=fleet["exact"] in (None, True),
        least=fleet["least"] or LEAST,
        job_s=within,
    )
    jobs = FleetJobs(at.admin(instead="FILEs, "))
    view = jobs.open(jobs.admin.group(at.group), order)
    if not waits:
        say_open(view, as_json=as_json)
        return
    try:
        with rounds_shown(shown=not quiet) as say:
            ended = jobs.follow(view, lambda now: say(f"{now.id}: {stage_of(now)}"))
    except KeyboardInterrupt:
        click.echo(f"{view.id} goes on: `submerge jobs cancel {view.id}` ends it", err=True)
        raise
    finish(jobs, ended, out, plot, as_json=as_json)


def say_open(view: JobView, *, as_json: bool) -> None:
    """Print a job that is open, and is not waited for."""
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode(view).decode())
    else:
        click.echo(f"{view.id} is open: `submerge jobs show {view.id}` says how far it is")
