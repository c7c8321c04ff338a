"""The admin API for landmarks; `admin` has the rest of it, and what holds for both.

POST /landmarks/G    have the fleet choose the group's landmarks again; at a root
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge_aggregator.http.orders import note_order
from submerge_aggregator.http.params import path_names
from submerge_aggregator.http.serving import as_json
from submerge_aggregator.server import Server


def routes(server: Server) -> list[Route]:
    """Return the routes."""

    async def chosen_again(request: Request) -> Response:
        (group,) = path_names(request, "group")
        job = await server.landmarks.choose_again(group)
        note_order(server, request, "choose landmarks", job=job, group=group)
        return as_json(server.board.view(job))

    return [Route("/landmarks/{group}", chosen_again, methods=["POST"])]
