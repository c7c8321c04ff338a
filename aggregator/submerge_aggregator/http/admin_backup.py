"""The admin API for copies of a root's store; `admin` has the rest of it, and what holds for both.

POST /backup                begin a copy: its name, and how far it is
GET  /backup/NAME           how far it is; waits up to a second
GET  /backup/NAME/FIRST     its bytes, from the byte with that number on, at most 1 MiB
POST /backup/NAME/end       free its room
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge_aggregator.backup.copy_file import CopyIdentity
from submerge_aggregator.backup.jobs import BackupJobs
from submerge_aggregator.http.orders import note_order
from submerge_aggregator.http.serving import Busy, as_json
from submerge_aggregator.server import Server


def routes(server: Server) -> list[Route]:
    """Return the routes."""
    jobs = BackupJobs(server)

    async def begin(request: Request) -> Response:
        if not server.ready:
            raise Busy("the aggregator is starting or stopping: try again")

        def done(identity: CopyIdentity) -> None:
            learnt = sum(each.learnt for each in identity.groups.values())
            note_order(server, request, "backup", bytes=identity.bytes, learnt=learnt)

        return as_json(await jobs.begin(done))

    async def state(request: Request) -> Response:
        return as_json(await jobs.state(request.path_params["name"]))

    async def piece(request: Request) -> Response:
        name, first = request.path_params["name"], request.path_params["first"]
        return Response(await jobs.piece(name, first), media_type="application/octet-stream")

    async def end(request: Request) -> Response:
        await jobs.end(request.path_params["name"])
        return as_json({})

    return [
        Route("/backup", begin, methods=["POST"]),
        Route("/backup/{name}", state, methods=["GET"]),
        Route("/backup/{name}/{first:int}", piece, methods=["GET"]),
        Route("/backup/{name}/end", end, methods=["POST"]),
    ]
