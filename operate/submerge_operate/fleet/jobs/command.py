"""`submerge jobs`: open a job, in a running fleet or on files; show, answer or cancel one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import ListedFirst, confirm, say_back
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
    together,
)

if TYPE_CHECKING:
    from submerge_aggregator.jobs.views import JobView
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

PICTURES = ("kmeans",)
"""Kinds whose answer can be drawn."""


class JobGroup(ListedFirst):
    """The kinds of jobs as commands, made of what each kind says of itself, and the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the kinds, then the other commands."""
        from submerge.jobs.kinds import KINDS

        return [*KINDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a kind's command, or another one; None for an unknown one."""
        from submerge.jobs.kinds import KINDS

        if cmd_name not in KINDS:
            return super().get_command(ctx, cmd_name)
        from submerge_operate.fleet.jobs.opening import kind_command

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
    import time

    import msgspec

    from submerge_operate.fleet.jobs.words import job_lines

    jobs = _jobs(at)
    details = jobs.details(jobs.find(name, at.group))
    if as_json:
        click.echo(msgspec.json.encode(details).decode())
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
    check_targets(view.kind, out, plot)
    finish(jobs, view, out, plot, as_json=as_json)


@command.command(epilog="Example: submerge jobs cancel job-3f1c9a0b77 --config root.toml")
@NAME
@ITS_GROUP
@flag_option("--yes", "Do not ask first.")
@json_option("Print the job, as JSON.")
def cancel(at: AggregatorOptions, name: str, yes: bool, as_json: bool) -> None:
    """End job ID as failed: it has no answer then."""
    from submerge_operate.fleet.jobs.words import state_of

    jobs = _jobs(at)
    view = jobs.find(name, at.group)
    if not yes and view.state == "running":
        confirm(f"{view.id}, {view.kind} of group {view.group}: {state_of(view)}.", "Cancel it?")
    say_back(jobs.cancel(view), f"{view.id} is cancelled", as_json=as_json)


def check_targets(
    kind: str,
    out: tuple[Path, ...],
    plot: Path | None,
    *,
    rows: Path | None = None,
    inputs: tuple[Path, ...] = (),
) -> None:
    """Refuse files that cannot be written, or would cost what is read, before the work."""
    from submerge_operate.fleet.jobs.saving import check_apart, check_outputs

    check_apart([*out, *(each for each in (plot, rows) if each is not None)], inputs)
    check_outputs(kind, out)
    if plot is not None:
        if kind not in PICTURES:
            drawn = ", ".join(PICTURES)
            raise UsageError(f"--plot draws answers of {drawn}, got {kind}: leave it out")
        from submerge_files.console.picture import check_target
        from submerge_operate.fleet.jobs import plot as _  # noqa: F401

        check_target(plot)


def finish(
    jobs: FleetJobs, view: JobView, out: tuple[Path, ...], plot: Path | None, *, as_json: bool
) -> None:
    """Fetch and deliver the answer of a job that is over; end with status 1 if it failed."""
    from submerge_operate.fleet.jobs.words import state_of

    if view.state == "failed":
        if as_json:
            import msgspec

            click.echo(msgspec.json.encode(jobs.details(view)).decode())
        click.echo(f"submerge: {view.id} {state_of(view)}", err=True)
        sys.exit(1)
    deliver(jobs.record(view), out, plot, as_json=as_json)


def deliver(record: Any, out: tuple[Path, ...], plot: Path | None, *, as_json: bool) -> None:
    """Write an answer, draw it, and print it."""
    from submerge_operate.fleet.jobs.results import JobResult
    from submerge_operate.fleet.jobs.saving import save
    from submerge_operate.fleet.jobs.tables import answer_lines
    from submerge_operate.fleet.jobs.words import record_lines

    result = JobResult(record)
    sizes = {path: save(result, path) for path in out}
    if plot is not None:
        from submerge_operate.fleet.jobs.plot import draw

        draw(result, plot)
    if as_json:
        click.echo(json.dumps(result.as_object()))
        return
    files = [("answer", f"{path}, {size:,} bytes") for path, size in sizes.items()]
    say_lines([*record_lines(record), *answer_lines(result), *files])
    if plot is not None:
        click.echo(f"{'picture':<10} {plot}", err=True)


def say_lines(lines: list[tuple[str, str]]) -> None:
    """Print lines with a name each."""
    from submerge_files.console.printable import printable

    width = max((10, *(len(name) for name, _ in lines)))
    for name, value in lines:
        click.echo(printable(f"{name:<{width}} {value}"))


def _jobs(at: AggregatorOptions) -> FleetJobs:
    from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs

    return FleetJobs(at.admin())
