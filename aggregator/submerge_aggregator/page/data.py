"""Data of the page that the admin API has not in this form, and the stream of what changes.

GET  /data/fleet/G                      every node below
GET  /data/node/G?path=site-1&node=N    one node: how it is, and what its aggregator shows of it
GET  /data/scores/G?hours=24             how close they came to alarms, over time, the worst first
GET  /data/model/G                      a group's model, for charts
GET  /events                            what has changed, as server-sent events
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import lru_cache

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from submerge_aggregator.http.params import path_names, query_names, whole
from submerge_aggregator.http.serving import as_json
from submerge_aggregator.operators.scopes import ApiCall, objection
from submerge_aggregator.page.calls import CallRefused
from submerge_aggregator.page.model_view import model_view
from submerge_aggregator.page.one_node import one_node
from submerge_aggregator.page.watched import Watched

HOURS = 24
"""How far back scores are shown, unless a page asks otherwise."""

LEAST_COMPRESSED = 1024
"""Bytes of an answer that is worth compressing."""

MOST_COMPRESSED = 4
"""Answers that are kept compressed: one of 20,000 nodes takes 0.1 s, and many pages ask for it."""


def routes(watched: Watched) -> list[Route]:
    """Return the routes."""

    async def fleet(request: Request) -> Response:
        body = await watched.trees.body(_group(request, "/tree/{group}"))
        return _json(request, body, compressed=_kept_compressed)

    async def node(request: Request) -> Response:
        group = _group(request, "/tree/{group}")
        (name,) = query_names(request, "node")
        if name is None:
            raise CallRefused(400, "expected the name of a node, got none")
        path = request.query_params.get("path", "")  # the admin API looks at it
        found = await one_node(watched.calls, group, path, name, watched.wall())
        return _json(request, msgspec.json.encode(found))

    async def scores(request: Request) -> Response:
        group = _group(request, "/scores/{group}")
        body = await watched.scores.body(group, whole(request, "hours", HOURS))
        return _json(request, body, compressed=_kept_compressed)

    async def model(request: Request) -> Response:
        group = _group(request, "/model/{group}")
        data = await watched.calls.get(f"/model/{group}")
        return _json(request, msgspec.json.encode(model_view(data)))

    async def events(_: Request) -> Response:
        if watched.changes.is_full:
            return as_json({"error": "too many pages are open: close one"}, 503)
        # A proxy would keep events until there are many.
        headers = {"x-accel-buffering": "no"}
        stream = watched.changes.stream()
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")

    return [
        Route("/data/fleet/{group}", fleet),
        Route("/data/node/{group}", node),
        Route("/data/scores/{group}", scores),
        Route("/data/model/{group}", model),
        Route("/events", events),
    ]


def _group(request: Request, like: str) -> str:
    """Return the group in a path, if this operator may see it.

    like : the admin API's route to the same

    Raises CallRefused if not.
    """
    (group,) = path_names(request, "group")
    operator = request.scope["operator"]
    call = ApiCall("GET", like, {"group": group}, {})
    why = objection(operator.scope, operator.groups, call)
    if why is not None:
        raise CallRefused(403, why)
    return group


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, 5, mtime=0)


_kept_compressed = lru_cache(MOST_COMPRESSED)(_compressed)
"""For bodies that all who look at once get."""


def _json(
    request: Request, body: bytes, *, compressed: Callable[[bytes], bytes] = _compressed
) -> Response:
    """Return JSON, compressed for those who take it so."""
    if len(body) < LEAST_COMPRESSED or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(body, media_type="application/json")
    headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(compressed(body), 200, headers, "application/json")
