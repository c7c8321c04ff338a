"""`submerge aggregator`: the aggregator's program; without a parent it is the root."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.group(
    invoke_without_command=True,
    epilog="Example: submerge aggregator init > root.toml, then"
    " submerge aggregator --config root.toml",
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Its settings, as TOML. SUBMERGE__SECTION__KEY in the environment overrides one.",
)
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line.")
@click.pass_context
def command(context: click.Context, path: Path | None, log_json: bool) -> None:
    """Run an aggregator: reports of its children in, a model or its own report out.

    SIGTERM and Ctrl-C send a last report to the parent, and end with status 0 (twice: without
    waiting for its answer). Look at it with `submerge nodes`, `submerge model`, and the addresses
    /healthz, /readyz and /metrics.
    """
    if context.invoked_subcommand is not None:
        return
    if path is None:
        raise click.UsageError("expected --config FILE; submerge aggregator init prints a sample")
    try:
        from submerge_aggregator.assembly import serve
    except ImportError as error:
        raise click.UsageError(
            f"an aggregator needs {error.name}, which is not installed:"
            " pip install 'submerge[aggregator]'"
        ) from error
    from submerge_aggregator.config import load
    from submerge_client import logs

    logs.begin("warning", as_json=log_json)  # for warnings about the configuration
    config = load(path, os.environ)
    logs.begin(config.log, as_json=log_json)
    serve(config)


@command.command(epilog="Example: submerge aggregator init > root.toml")
def init() -> None:
    """Print a sample configuration: every setting, and what raising it does."""
    from submerge_aggregator.sample import SAMPLE

    click.echo(SAMPLE, nl=False)
