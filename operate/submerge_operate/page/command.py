"""`submerge aggregator page`: the page of a running aggregator, from a process of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge_files.console.admin_client import AdminCommand

if TYPE_CHECKING:
    from submerge_aggregator.config import AggregatorConfig
    from submerge_aggregator.http.serving import Serving


@click.command(
    cls=AdminCommand, epilog="Example: submerge aggregator page --config root.toml --open"
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The aggregator's. Its [page] says where the page is; left out, http://127.0.0.1:8473/.",
)
@click.option("--open", "shows", is_flag=True, help="Show it in this machine's browser.")
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line.")
def command(path: Path, shows: bool, log_json: bool) -> None:
    """Serve the page of an aggregator that runs on this machine.

    The page is that of [page] in the aggregator's own configuration, without a part in its
    process. It runs as the aggregator's user, until Ctrl-C.
    """
    from submerge_aggregator.config import load
    from submerge_client import logs

    logs.begin("info", as_json=log_json)
    config = load(path, os.environ)
    asyncio.run(_serve(config, shows=shows))


async def _serve(config: AggregatorConfig, *, shows: bool) -> None:
    from submerge_client.command import ending_signals

    serving, url = _serving(config)
    ends, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, ends.set)
    serving.start()
    if shows:
        import webbrowser

        webbrowser.open(url)
    await ends.wait()
    await serving.stop()


def _serving(config: AggregatorConfig) -> tuple[Serving, str]:
    from submerge_aggregator.audit.log import record_nothing
    from submerge_aggregator.operators.order_log import OrderLog
    from submerge_aggregator.page.config import PageConfig
    from submerge_aggregator.page.opening import page_serving
    from submerge_aggregator.questions.views import socket_of
    from submerge_client import clock
    from submerge_files.console.ways import UnixSocket
    from submerge_operate.page.forwarding import forwarding

    api = forwarding(UnixSocket(socket_of(config.store)))
    # Orders are recorded by the aggregator. Who may not give them is in this process's log.
    log = OrderLog(record_nothing, lambda: clock.now().steady)
    return page_serving(api, log, config, config.page or PageConfig(), record=record_nothing)
