"""`submerge aggregator page`: the page of a running aggregator, from a process of its own."""

from __future__ import annotations

import asyncio
import http.client
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge_aggregator.operators.scopes import ROUTES
from submerge_files.console.admin_client import AdminCommand
from submerge_files.console.options import config_option
from submerge_files.console.ways import UnixSocket

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from submerge_aggregator.config import AggregatorConfig
    from submerge_aggregator.http.serving import Serving


def forwarding(way: UnixSocket) -> Starlette:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    from submerge_aggregator.http.serving import unknown_path

    async def forward(request: Request) -> Response:
        target = request.scope["raw_path"].decode("latin-1")
        query = request.scope["query_string"].decode("latin-1")
        operator = request.scope["operator"]
        for_whom = "" if request.method == "GET" else operator.who
        answer = await asyncio.to_thread(
            _ask, way, request.method, f"{target}?{query}" if query else target, for_whom
        )
        return _of_groups(answer, operator.groups) if target == "/" else answer

    app = Starlette(
        routes=[Route(path, forward, methods=[method]) for method, path in ROUTES],
        exception_handlers={HTTPException: unknown_path},
    )
    app.router.redirect_slashes = False
    return app


def _of_groups(about: Response, only: tuple[str, ...]) -> Response:
    """Return what the aggregator says it is, with those of its groups that an operator may see."""
    import msgspec
    from starlette.responses import Response

    if not only or about.status_code != 200:
        return about
    said = msgspec.json.decode(about.body, type=dict[str, Any])
    said["groups"] = [group for group in said["groups"] if group in only]
    said["shown"] = {group: rank for group, rank in said["shown"].items() if group in only}
    return Response(msgspec.json.encode(said), media_type="application/json")


def _ask(way: UnixSocket, method: str, target: str, for_whom: str) -> Response:
    import msgspec
    from starlette.responses import Response

    from submerge_aggregator.operators.identify import FOR

    connection, headers = way.connect()
    if for_whom:
        headers[FOR] = for_whom
    try:
        connection.request(method, target, None, headers)
        answer = connection.getresponse()
        body, kind = answer.read(), answer.headers.get("content-type")
    except (OSError, http.client.HTTPException) as error:
        body = msgspec.json.encode({"error": str(way.failure(error))})
        return Response(body, 503, media_type="application/json")
    finally:
        connection.close()
    return Response(body, answer.status, media_type=kind)


@click.command(
    cls=AdminCommand, epilog="Example: submerge aggregator page --config root.toml --open"
)
@config_option(
    "The aggregator's. Its [page] says where the page is; left out, http://127.0.0.1:8473/."
)
@click.option("--open", "shows", is_flag=True, help="Show it in this machine's browser.")
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line.")
def command(config: Path, shows: bool, log_json: bool) -> None:
    """Serve the page of an aggregator that runs on this machine.

    The page is that of [page] in the aggregator's own configuration, without a part in its
    process. It runs as the aggregator's user, until Ctrl-C.
    """
    from submerge_client import logs
    from submerge_operate.root_config import root_config

    logs.begin("info", as_json=log_json)
    asyncio.run(_serve(root_config(config), shows=shows))


async def _serve(config: AggregatorConfig, *, shows: bool) -> None:
    from submerge_client.command import signal_actions

    serving, link = _serving(config)
    ends, loop = asyncio.Event(), asyncio.get_running_loop()
    for number, act in signal_actions(ends.set).items():
        loop.add_signal_handler(number, act)
    serving.start()
    if shows:
        from submerge_files.console.browser import show

        show(link)
    await ends.wait()
    await serving.stop()


def _serving(config: AggregatorConfig) -> tuple[Serving, str]:
    from submerge_aggregator.audit import record_nothing
    from submerge_aggregator.operators.access import OrderLog
    from submerge_aggregator.page.config import PageConfig
    from submerge_aggregator.page.opening import page_serving
    from submerge_aggregator.questions.views import socket_of
    from submerge_client import clock

    api = forwarding(UnixSocket(socket_of(config.store)))
    # Orders are recorded by the aggregator. Who may not give them is in this process's log.
    log = OrderLog(record_nothing, lambda: clock.now().steady)
    return page_serving(api, log, config, config.page or PageConfig(), record=record_nothing)
