"""forwarding(): the admin API of another process, as an app of this one.

It has the routes of the table of scopes and no others. Who gives an order is said to the
aggregator, which records it beside the user of this process.
"""

from __future__ import annotations

import asyncio
import http.client
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge_aggregator.http.serving import unknown_path
from submerge_aggregator.operators.identify import FOR
from submerge_aggregator.operators.scopes import ROUTES
from submerge_files.console.ways import UnixSocket


def forwarding(way: UnixSocket) -> Starlette:
    """Return the app.

    way : to the aggregator
    """

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
    if not only or about.status_code != 200:
        return about
    said = msgspec.json.decode(about.body, type=dict[str, Any])
    said["groups"] = [group for group in said["groups"] if group in only]
    said["shown"] = {group: rank for group, rank in said["shown"].items() if group in only}
    return Response(msgspec.json.encode(said), media_type="application/json")


def _ask(way: UnixSocket, method: str, target: str, for_whom: str) -> Response:
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
