"""The admin API for jobs and landmarks; `admin` has the rest of it, and what holds for both.

GET  /jobs?group=G              jobs that run, and those that are over, the newest first
POST /jobs/G                    open one: JSON in the body (`jobs.order.JobOrder`); at a root
GET  /jobs/G/ID                 one of them, with the names of its nodes once it is over
GET  /jobs/G/ID/answer/FIRST    its file (`jobs.record`), from the byte with that number on,
                                at most 1 MiB; the answer is behind a header
POST /jobs/G/ID/cancel          end it as failed
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge.errors import SubmergeError, UsageError
from submerge_aggregator.http.serving import as_json, ask, note_order, path_names, query_names
from submerge_aggregator.jobs.board import MOST_ORDER_BYTES, job_of, read_order, schema_of
from submerge_aggregator.jobs.views import JobView
from submerge_aggregator.questions.survey import Missing, group_of
from submerge_aggregator.server import Server


def landmark_routes(server: Server) -> list[Route]:
    async def chosen_again(request: Request) -> Response:
        (group,) = path_names(request, "group")
        job = await server.landmarks.choose_again(group)
        note_order(server, request, "choose landmarks", job=job, group=group)
        return as_json(server.board.view(job))

    return [Route("/landmarks/{group}", chosen_again, methods=["POST"])]


def routes(server: Server) -> list[Route]:
    board = server.board

    async def listed(request: Request) -> Response:
        (group,) = query_names(request, "group")
        if group is not None:
            await ask(server, lambda node, _: group_of(node, group))
        return as_json(board.views(group))

    async def opened(request: Request) -> Response:
        (group,) = path_names(request, "group")
        order = read_order(await _body(request))
        schema = await ask(server, lambda node, _: schema_of(node, group))
        job = job_of(order, group, schema)
        board.announce(job, schema.canonical)
        try:
            await server.jobs.open(job)
        finally:
            board.withdraw(job)
        settings = " ".join(f"{name}={value}" for name, value in order.settings.items())
        facts = {"job": job.id, "group": group, "kind": job.kind, "settings": settings}
        note_order(server, request, "open job", **facts)
        return as_json(board.view(job.id))

    async def one(request: Request) -> Response:
        return as_json(await asyncio.to_thread(board.details, _found(request)))

    async def answer(request: Request) -> Response:
        view = _found(request)
        if view.state != "done":
            why = view.failure or "it is under way"
            raise UsageError(f"{view.id} has no answer: {why}")
        try:
            data = await asyncio.to_thread(board.piece, view.id, request.path_params["first"])
        except OSError as error:
            raise SubmergeError(f"the file of {view.id} cannot be read: {error}") from error
        return Response(data, media_type="application/octet-stream")

    async def cancel(request: Request) -> Response:
        view = _found(request)
        if not await server.jobs.cancel(view.id):
            raise UsageError(f"{view.id} is over: only a job that is under way can be cancelled")
        note_order(server, request, "cancel job", job=view.id, group=view.group, kind=view.kind)
        return as_json(_found(request))

    def _found(request: Request) -> JobView:
        group, name = path_names(request, "group", "id")
        view = board.view(name)
        if view is None or view.group != group:
            raise Missing(f"group {group} has no job {name} here: `submerge jobs` lists them")
        return view

    return [
        Route("/jobs", listed, methods=["GET"]),
        Route("/jobs/{group}", opened, methods=["POST"]),
        Route("/jobs/{group}/{id}", one, methods=["GET"]),
        Route("/jobs/{group}/{id}/answer/{first:int}", answer, methods=["GET"]),
        Route("/jobs/{group}/{id}/cancel", cancel, methods=["POST"]),
    ]


async def _body(request: Request) -> bytes:
    """Return the body of a request, if it is not too large."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_ORDER_BYTES:
            raise UsageError(f"expected a job of at most {MOST_ORDER_BYTES:,} bytes, got more")
    return bytes(data)
