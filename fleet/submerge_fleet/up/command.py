"""`submerge up`: one machine watches its own sensors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command(epilog="Example: submerge up --config box.toml")
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Its settings, as TOML. SUBMERGE__SECTION__KEY in the environment overrides one.",
)
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line.")
def command(path: Path, log_json: bool) -> None:
    """Watch this machine's sensors: learn what is normal, and raise alarms, in one program.

    It is a client and its root in one process. Their files are those of a fleet, so that other
    machines may join later. A line a minute says how it is. SIGTERM and Ctrl-C keep all readings,
    and end with status 0.
    """
    try:
        from submerge_fleet.up.box import run
    except ImportError as error:
        raise click.UsageError(
            f"a root needs {error.name}, which is not installed: pip install 'submerge[aggregator]'"
        ) from error
    from submerge_client import logs
    from submerge_fleet.up.config import load

    logs.begin("warning", as_json=log_json)  # for warnings about the configuration
    config = load(path, os.environ)
    logs.begin(config.log, as_json=log_json)
    sys.exit(run(config, click.echo))
