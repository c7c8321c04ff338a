"""The admin API for nodes further down; `admin` has the rest of it, and what holds for both.

    GET  /tree/G?path=site-1/room-2&node=NODE&after=NAME    a page of the nodes that report there

The path names the aggregators below this one, the last of which is asked; without it, this one
is. A page has `more`: the next one comes after its last name. Pages are shared for two seconds
(`SharedAnswers`), so that many who look cost no more than one.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError
from submerge.protocol.messages import Incarnation, Question
from submerge_aggregator.http.params import path_names, query_names, tree_path
from submerge_aggregator.http.serving import as_json, ask
from submerge_aggregator.http.shared_answers import SharedAnswers
from submerge_aggregator.inquiring import NoReply
from submerge_aggregator.questions.consulted import nodes_page
from submerge_aggregator.questions.foreign_pages import read_page
from submerge_aggregator.server import Server

MOST_PAGES = 256
"""Pages that are kept, or under way: as many as questions may be open."""


def routes(server: Server) -> list[Route]:
    """Return the routes."""
    pages = SharedAnswers(most=MOST_PAGES)

    async def nodes(request: Request) -> Response:
        (group,) = path_names(request, "group")
        about, after = query_names(request, "node", "after")
        path = tree_path(request)
        if not path:
            asked = Question("", group, Incarnation(0, 0), 0, (), "nodes", about or "", after or "")
            return as_json(await ask(server, lambda node, now: nodes_page(node, now, asked)))

        async def below() -> bytes:
            said = await server.inquire(group, path, "nodes", about=about or "", after=after or "")
            try:
                return msgspec.json.encode(read_page(said, group, after or ""))
            except PeerError as error:
                raise NoReply(f"{'/'.join(path)} replied what is no page: {error}") from error

        body = await pages.get((group, path, about, after), below)
        return Response(body, media_type="application/json")

    return [Route("/tree/{group}", nodes)]
