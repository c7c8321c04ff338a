"""The admin API for nodes further down; `admin` has the rest of it, and what holds for both.

    GET  /tree/G?path=site-1/room-2&node=NODE&after=NAME    a page of the nodes that report there

The path names the aggregators below this one, the last of which is asked; without it, this one
is. A page has `more`: the next one comes after its last name. Pages are kept for `KEPT_S`, so that
many who look cost no more than one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError
from submerge.protocol.messages import Incarnation
from submerge.protocol.questions import Question
from submerge_aggregator.http.params import path_names, query_names, tree_path
from submerge_aggregator.http.serving import as_json, ask
from submerge_aggregator.inquiring import NoReply
from submerge_aggregator.questions.consulted import nodes_page
from submerge_aggregator.questions.foreign_pages import read_page
from submerge_aggregator.server import Server

KEPT_S, MOST_KEPT = 2.0, 256
"""How long a page is shown again, and how many pages are kept."""


class Pages:
    """The newest pages, by what was asked."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pages: dict[tuple[object, ...], tuple[float, bytes]] = {}

    def get(self, key: tuple[object, ...]) -> bytes | None:
        """Return a page that is new enough."""
        at, page = self._pages.get(key, (-KEPT_S, b""))
        return page if page and self._clock() < at + KEPT_S else None

    def put(self, key: tuple[object, ...], page: bytes) -> None:
        """Keep a page; of too many the oldest goes."""
        self._pages.pop(key, None)
        self._pages[key] = self._clock(), page
        if len(self._pages) > MOST_KEPT:
            del self._pages[next(iter(self._pages))]


def routes(server: Server) -> list[Route]:
    """Return the routes."""
    pages = Pages()

    async def nodes(request: Request) -> Response:
        (group,) = path_names(request, "group")
        about, after = query_names(request, "node", "after")
        path = tree_path(request)
        if not path:
            asked = Question("", group, Incarnation(0, 0), 0, (), "nodes", about or "", after or "")
            return as_json(await ask(server, lambda node, now: nodes_page(node, now, asked)))
        key = group, path, about, after
        body = pages.get(key)
        if body is None:
            said = await server.inquire(group, path, "nodes", about=about or "", after=after or "")
            try:
                body = msgspec.json.encode(read_page(said, group, after or ""))
            except PeerError as error:
                raise NoReply(f"{'/'.join(path)} replied what is no page: {error}") from error
            pages.put(key, body)
        return Response(body, media_type="application/json")

    return [Route("/tree/{group}", nodes)]
