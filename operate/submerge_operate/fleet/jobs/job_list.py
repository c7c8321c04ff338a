"""`submerge jobs`: the jobs of a root."""

from __future__ import annotations

import time

import click

from submerge_files.console.admin_client import AdminCommand, console_of, say_value
from submerge_files.console.options import AggregatorOptions, aggregator_options, json_option


@click.command(cls=AdminCommand, epilog="Example: submerge jobs --config root.toml")
@aggregator_options("Of this group only.")
@json_option("Print one JSON array: all that is known.")
def command(at: AggregatorOptions, as_json: bool) -> None:
    """List the jobs of a root: those that run, then the newest that are over.

    `submerge jobs KIND` opens one, `submerge jobs show ID` shows one.
    """
    from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs
    from submerge_operate.fleet.jobs.tables import table_of

    views = FleetJobs(at.admin()).listed(at.group)
    if as_json:
        say_value(views)
    elif views:
        console_of(wide=False).print(table_of(views, now=time.time()))
    else:
        click.echo("no job has been opened here: `submerge jobs KIND` opens one")
