"""`submerge jobs`: open a job, in a running fleet or on files; show, answer or cancel one."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from submerge.errors import UsageError
from submerge.jobs.job import LONGEST_S, Settings
from submerge.jobs.kind import JobSetting
from submerge.jobs.kinds import KINDS, settings_of
from submerge.jobs.roster import MOST_MEMBERS
from submerge_aggregator.jobs.views import JobView
from submerge_files.console.admin_client import (
    AdminCommand,
    ListedFirst,
    confirm,
    say_back,
    say_value,
)
from submerge_files.console.options import (
    FILE,
    QUIET,
    AggregatorOptions,
    Decorator,
    aggregator_options,
    check_picture,
    flag_option,
    json_option,
    together,
)
from submerge_files.console.reading_options import READING, reading_options
from submerge_files.console.units import duration, in_words, printable, share
from submerge_operate.fleet.jobs.file_jobs import check_rows_file

if TYPE_CHECKING:
    from submerge_aggregator.jobs.record import JobRecord
    from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs

ITS_GROUP = aggregator_options("Of this group only.")
NAME = click.argument("name", metavar="ID")
OUT = click.option(
    "--out",
    type=FILE,
    multiple=True,
    help="Write the answer: .npz all arrays, .csv a table, else a model, for kinds that have one."
    " May be repeated.",
)
PLOT = click.option("--plot", type=FILE, help="Draw the answer into this PNG.")
ANSWER = together(OUT, PLOT)

PICTURES = ("kmeans",)  # kinds whose answer can be drawn


class JobGroup(ListedFirst):
    """The kinds of jobs as commands, made of what each kind says of itself, and the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*KINDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in KINDS:
            return super().get_command(ctx, cmd_name)
        return kind_command(cmd_name)


@click.group(
    cls=JobGroup,
    epilog="""\b
Example: submerge jobs kmeans --clusters 8 --config root.toml --out centers.csv
         submerge jobs kmeans --clusters 8 --files plant/*.csv --out centers.csv
         submerge jobs --config root.toml""",
)
def command() -> None:
    """Compute something of all rows of a fleet, in rounds: rows stay where they are.

    A job is opened at the root, by an operator. Without a command: list, with its options.
    """


@command.command(epilog="Example: submerge jobs show job-3f1c9a0b77 --config root.toml")
@NAME
@ITS_GROUP
@json_option()
def show(at: AggregatorOptions, name: str, as_json: bool) -> None:
    """Show job ID: how far it is, or how it ended, and which nodes took part."""
    from submerge_operate.fleet.jobs.tables import job_lines

    jobs = _jobs(at)
    details = jobs.details(jobs.find(name, at.group))
    if as_json:
        say_value(details)
        return
    say_lines(job_lines(details, now=time.time()))


@command.command(epilog="Example: submerge jobs answer job-3f1c9a0b77 --out a.csv --store root.db")
@NAME
@ITS_GROUP
@ANSWER
@json_option("Print the answer as one JSON object.")
def answer(
    at: AggregatorOptions, name: str, out: tuple[Path, ...], plot: Path | None, as_json: bool
) -> None:
    """Get the answer of job ID, which is over.

    Status 1 if it failed.
    """
    jobs = _jobs(at)
    view = jobs.find(name, at.group)
    output = AnswerOutput(out, plot, as_json)
    output.check(view.kind)
    output.finish(jobs, view)


@command.command(epilog="Example: submerge jobs cancel job-3f1c9a0b77 --config root.toml")
@NAME
@ITS_GROUP
@flag_option("--yes", "Do not ask first.")
@json_option("Print the job, as JSON.")
def cancel(at: AggregatorOptions, name: str, yes: bool, as_json: bool) -> None:
    """End job ID as failed: it has no answer then."""
    from submerge_operate.fleet.jobs.tables import state_of

    jobs = _jobs(at)
    view = jobs.find(name, at.group)
    if not yes and view.state == "running":
        confirm(f"{view.id}, {view.kind} of group {view.group}: {state_of(view)}.", "Cancel it?")
    say_back(jobs.cancel(view), f"{view.id} is cancelled", as_json=as_json)


class AnswerOutput(NamedTuple):
    out: tuple[Path, ...]
    plot: Path | None
    as_json: bool

    def check(self, kind: str, *, rows: Path | None = None, inputs: tuple[Path, ...] = ()) -> None:
        """Refuse files that cannot be written, or would cost what is read, before the work."""
        from submerge_operate.fleet.jobs.answer_files import check_apart, check_outputs

        targets = [*self.out, *(each for each in (self.plot, rows) if each is not None)]
        check_apart(targets, inputs)
        check_outputs(kind, self.out)
        if self.plot is not None:
            if kind not in PICTURES:
                drawn = ", ".join(PICTURES)
                raise UsageError(f"--plot draws answers of {drawn}, got {kind}: leave it out")
            check_picture(self.plot)

    def finish(self, jobs: FleetJobs, view: JobView) -> None:
        """Fetch and deliver the answer of a job that is over; end with status 1 if it failed."""
        from submerge_operate.fleet.jobs.tables import state_of

        if view.state == "failed":
            if self.as_json:
                say_value(jobs.details(view))
            click.echo(f"submerge: {view.id} {state_of(view)}", err=True)
            sys.exit(1)
        self.deliver(jobs.record(view))

    def deliver(self, record: JobRecord) -> None:
        from submerge_operate.fleet.jobs.answer_files import draw, save
        from submerge_operate.fleet.jobs.results import JobResult
        from submerge_operate.fleet.jobs.tables import answer_lines, record_lines

        result = JobResult(record)
        sizes = {path: save(result, path) for path in self.out}
        if self.plot is not None:
            draw(result, self.plot)
        if self.as_json:
            click.echo(json.dumps(result.as_object()))
            return
        files = [("answer", f"{path}, {size:,} bytes") for path, size in sizes.items()]
        say_lines([*record_lines(record), *answer_lines(result), *files])
        if self.plot is not None:
            click.echo(f"{'picture':<10} {self.plot}", err=True)


def say_lines(lines: list[tuple[str, str]]) -> None:
    width = max((10, *(len(name) for name, _ in lines)))
    for name, value in lines:
        click.echo(printable(f"{name:<{width}} {value}"))


def _jobs(at: AggregatorOptions) -> FleetJobs:
    from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs

    return FleetJobs(at.admin())


@contextmanager
def rounds_shown(*, shown: bool) -> Iterator[Callable[[str], None]]:
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(escape(printable(text)))
    else:
        yield lambda text: click.echo(printable(text), err=True)


TYPES: dict[str, Any] = {"whole": int, "number": float, "text": str}

PREFIX = "setting_"  # of the names under which a command is given settings: they are no others'


def settings_given(given: dict[str, Any]) -> Settings:
    """Take the settings of a kind out of what a command was given; those left out have none."""
    values = {name: given.pop(name) for name in [*given] if name.startswith(PREFIX)}
    return {n.removeprefix(PREFIX): value for n, value in values.items() if value is not None}


def option_of(kind: str, setting: JobSetting, taken: Collection[str]) -> str:
    name = f"--{setting.name.replace('_', '-')}"
    return f"--{kind}-{name[2:]}" if name in taken else name


def _option(setting: JobSetting, named: str) -> Decorator:
    text = f"{setting.meaning}  [default: {setting.default}]" if setting.default else ""
    dest = f"{PREFIX}{setting.name}"
    if setting.form == "flag":
        return click.option(f"{named}/--no-{named[2:]}", dest, default=None, help=text)
    return click.option(
        *(named, dest),
        type=share if setting.name == "held_out" else TYPES[setting.form],
        required=not setting.default,
        help=text or setting.meaning,  # click says itself that it is required
    )


WITHIN_S = 3600.0  # what holds where nothing is said

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
        help="Fewer nodes than this are a failure.  [default: more than half have to stay]",
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
    summary = (KINDS[kind].__doc__ or kind).partition("\n")[0]
    text = f"""{summary}

    At a running root the job is opened in its fleet, over the rows that devices hold for jobs, and
    its answer waited for. With FILEs it runs in this process over all rows, and each file is a
    node; channels are scaled by their means and standard deviations, as a fleet's are. Answers are
    in the channels' units.

    Status 1 if the job fails.
    """
    probe: click.Command = click.command("probe")(OTHERS(lambda: None))
    others = {each for option in probe.params for each in option.opts}
    needed = "".join(
        f" {option_of(kind, each, others)} 8" for each in KINDS[kind].listed if not each.default
    )
    options = together(
        click.argument("files", nargs=-1, metavar="[FILE]..."),
        *(_option(each, option_of(kind, each, others)) for each in settings_of(kind)),
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


def _run(
    kind: str,
    *,
    at: AggregatorOptions,
    files: tuple[str, ...],
    on_files: bool,
    unscaled: bool,
    rows: Path | None,
    out: tuple[Path, ...],
    plot: Path | None,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    settings = settings_given(given)
    fleet = {name: given.pop(name) for name in FLEET_ONLY}
    output = AnswerOutput(out, plot, as_json)
    output.check(kind, rows=rows, inputs=tuple(map(Path, files)))
    if not (files or on_files):
        _refuse("--{} is for FILEs, got none", {**given, "unscaled": unscaled, "rows": rows})
        _in_fleet(kind, settings, at, fleet, output, quiet=quiet)
        return
    if not files:
        raise UsageError("expected FILEs behind --files, got none")
    said = {
        f"no_{name}" if value is False else name: value is not None for name, value in fleet.items()
    }
    _refuse("--{} is for a running fleet, got FILEs as well", at._asdict() | said)
    _on_files(kind, settings, files, given, output, scales=not unscaled, rows=rows, quiet=quiet)


def _refuse(why: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value not in (None, False, ()):
            raise UsageError(why.format(name.replace("_", "-")))


def _on_files(
    kind: str,
    settings: Settings,
    files: tuple[str, ...],
    reading: dict[str, Any],
    output: AnswerOutput,
    *,
    scales: bool,
    rows: Path | None,
    quiet: bool,
) -> None:
    if rows is not None:
        check_rows_file(kind, settings, rows)
    from submerge_files.reader.formats.remote_path import path_of
    from submerge_operate.fleet.jobs.file_jobs import JobOnFiles, run_on_files, write_rows

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
    output.deliver(record)
    if rows is not None:
        write_rows(record, asked, rows)


def _in_fleet(
    kind: str,
    settings: Settings,
    at: AggregatorOptions,
    fleet: dict[str, Any],
    output: AnswerOutput,
    *,
    quiet: bool,
) -> None:
    from submerge_aggregator.jobs.board import JobOrder
    from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs
    from submerge_operate.fleet.jobs.tables import stage_of

    waits = fleet["wait"] in (None, True)
    if not waits and (output.out or output.plot is not None):
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
        least=fleet["least"] or 0,
        job_s=within,
    )
    jobs = FleetJobs(at.admin(instead="FILEs, "))
    view = jobs.open(jobs.admin.group(at.group), order)
    if not waits:
        if output.as_json:
            say_value(view)
        else:
            click.echo(f"{view.id} is open: `submerge jobs show {view.id}` says how far it is")
        return
    try:
        with rounds_shown(shown=not quiet) as say:
            ended = jobs.follow(view, lambda now: say(f"{now.id}: {stage_of(now)}"))
    except KeyboardInterrupt:
        click.echo(f"{view.id} goes on: `submerge jobs cancel {view.id}` ends it", err=True)
        raise
    output.finish(jobs, ended)
