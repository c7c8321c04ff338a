"""The admin API for bans; `admin` has the rest of it, and what holds for both.

    GET  /bans                 nodes that are banned in every group
    POST /bans/NODE/ban        refuse a node in every group, here and at aggregators below
    POST /bans/NODE/unban      take it in again

The orders go down with the answers to reports, as desired states do.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge.protocol.machine import SetBan
from submerge_aggregator.http.orders import note_order
from submerge_aggregator.http.params import path_names
from submerge_aggregator.http.serving import as_json, ask
from submerge_aggregator.questions import bans
from submerge_aggregator.server import Server


def routes(server: Server) -> list[Route]:
    """Return the routes."""

    async def listed(_: Request) -> Response:
        return as_json(await ask(server, lambda node, _: bans.bans(node)))

    async def set_ban(request: Request) -> Response:
        (name,), verb = path_names(request, "node"), request.path_params["verb"]
        if verb not in ("ban", "unban"):
            raise HTTPException(404, f"expected ban or unban, got {verb!r}")
        banned = verb == "ban"
        await ask(server, lambda node, _: bans.check_ban(node, name, banned=banned))
        after = await ask(server, lambda node, _: bans.ban(node, name), SetBan(name, banned))
        note_order(server, request, verb, node=name)
        return as_json(after)

    return [
        Route("/bans", listed),
        Route("/bans/{node}/{verb}", set_ban, methods=["POST"]),
    ]
