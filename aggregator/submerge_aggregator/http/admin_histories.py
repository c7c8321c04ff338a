"""The admin API for histories; `admin` has the rest of it, and what holds for both.

    GET  /histories/G                what group G merges beside the rows of its nodes
    POST /histories/G?weight=ROWS&anyway=1    take the model file in the request's body, so that it
                                     counts for so many rows at most; anyway: also rows that a
                                     node may have reported
    POST /histories/G/NAME/forget    remove one

A file is read beside the event loop, and the machine is asked whether it would take it before it
is ordered to.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import UsageError
from submerge.protocol.history import History
from submerge.protocol.machine import ForgetHistory, PushHistory
from submerge_aggregator.http.orders import note_order
from submerge_aggregator.http.params import flag, path_names
from submerge_aggregator.http.serving import as_json, ask
from submerge_aggregator.questions import histories
from submerge_aggregator.questions.history_views import MOST_PUSHED_BYTES
from submerge_aggregator.server import Server
from submerge_proto.files import learnt
from submerge_proto.kept import histories as kept


def routes(server: Server) -> list[Route]:
    """Return the routes."""

    async def listed(request: Request) -> Response:
        (group,) = path_names(request, "group")
        return as_json(await ask(server, lambda node, now: histories.histories(node, now, group)))

    async def push(request: Request) -> Response:
        (group,) = path_names(request, "group")
        most_rows, anyway = _weight(request), flag(request, "anyway")
        data = await _body(request)
        history = await asyncio.to_thread(_history, data, most_rows)
        order = PushHistory(group, history, anyway)
        taken, wall = await ask(server, lambda node, now: histories.check_push(node, now, order))
        # As the store will: what cannot be kept is refused, and not found out at the commit.
        await asyncio.to_thread(kept.history, taken)
        before = await ask(server, lambda node, _: frozenset(node.histories(group)))
        order = order._replace(history=replace(history, pushed=wall))
        after = await ask(
            server, lambda node, now: histories.pushed(node, now, order, before), order
        )
        facts = {"group": group, "history": history.name, "rows": after.history.rows}
        if math.isfinite(most_rows):
            facts["weight"] = most_rows
        note_order(server, request, "push", **facts, anyway=anyway)
        return as_json(after)

    async def forget(request: Request) -> Response:
        group, name = path_names(request, "group", "name")
        gone = await ask(server, lambda node, now: histories.one(node, now, group, name))
        await ask(server, lambda *_: None, ForgetHistory(group, name))
        note_order(server, request, "forget", group=group, history=name, rows=gone.rows)
        return as_json(gone)

    return [
        Route("/histories/{group}", listed, methods=["GET"]),
        Route("/histories/{group}", push, methods=["POST"]),
        Route("/histories/{group}/{name}/forget", forget, methods=["POST"]),
    ]


async def _body(request: Request) -> bytes:
    """Return the body of a request, if it is not too large."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_PUSHED_BYTES:
            raise UsageError(
                f"expected a model file of at most {MOST_PUSHED_BYTES:,} bytes, got more"
            )
    return bytes(data)


def _history(data: bytes, most_rows: float) -> History:
    return kept.history_from(learnt.unpacked(data).learnt, most_rows=most_rows)


def _weight(request: Request) -> float:
    """Return the most rows that a history is to count for; infinite if that is not said."""
    given = request.query_params.get("weight")
    if given is None:
        return math.inf
    try:
        rows = float(given)
    except ValueError:
        rows = math.nan
    if not (rows > 0 and math.isfinite(rows)):
        raise UsageError(f"weight is a number of rows above 0, got {given!r}")
    return rows
