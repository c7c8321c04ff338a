"""`submerge aggregator`: the aggregator's program; without a parent it is the root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge_client.command import FROM_HISTORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from submerge_client.config.from_history import LearntSettings

AGGREGATOR = """\
# A root of submerge: channels, scaling and rank of its group are those of {source}.
# `submerge aggregator --config FILE` starts from this file; `submerge aggregator init` prints a
# sample with every setting.

# Its name: the same for ever, and no other node's.
node = "{node}"
# The database of all that it has acknowledged: keep it on a disk that lasts.
store = "{node}.db"

# How children reach it. Without TLS, others on the network can read and forge messages: between
# machines, say kit = "FILE" above and address = "0.0.0.0:8470", and delete insecure.
[listen.grpc]
address = "127.0.0.1:8470"
insecure = true

{sections}"""


def aggregator_text(learnt: LearntSettings) -> str:
    from submerge_client.config.from_history import PARENT
    from submerge_client.config.sections import written
    from submerge_client.config.tomlfile import quoted

    return AGGREGATOR.format(
        source=quoted(learnt.source),
        node=PARENT,
        sections=learnt.sections(under=f"{written(('groups', learnt.group))}."),
    )


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
    waiting for its answer). SIGHUP does so in a terminal; a service reads its lists and
    certificates again. Look at it with `submerge nodes`, `submerge model`, and the
    addresses /healthz, /readyz and /metrics.
    """
    if context.invoked_subcommand is not None:
        return
    if path is None:
        raise click.UsageError("expected --config FILE; submerge aggregator init prints a sample")
    from submerge_aggregator.assembly import serve
    from submerge_aggregator.config import load
    from submerge_client import logs

    logs.begin("warning", as_json=log_json)  # for warnings about the configuration
    config = load(path, os.environ)
    logs.begin(config.log, as_json=log_json)
    serve(config)


@command.command(
    epilog="""\b
Example: submerge aggregator init > root.toml
         submerge aggregator init --from plant.model > root.toml"""
)
@FROM_HISTORY
@click.pass_obj
def init(learnt: Callable[[str], LearntSettings], history: str | None) -> None:
    """Print a sample configuration: every setting, and what raising it does."""
    if history is not None:
        settings = learnt(history)

        click.echo(aggregator_text(settings), nl=False)
        return
    from submerge_aggregator.config import AggregatorConfig
    from submerge_client.config.sample import sample

    click.echo(sample(AggregatorConfig), nl=False)
