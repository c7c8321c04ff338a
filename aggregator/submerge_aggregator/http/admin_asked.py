"""The admin API for one node, wherever it is in the tree: it is asked while a person looks.

    GET  /settings/G?path=site-1/pump-3     what it is configured with, without secrets
    GET  /recent/G?path=site-1/pump-3       scores of its newest rows, limits, channels to blame
    GET  /values/G?path=site-1/pump-3       readings of these rows, and what is expected; only of
                                            a node whose configuration says share_values

The path names the nodes on the way, the last of which is asked; without it, this aggregator is.
Answers are shared for two seconds (`SharedAnswers`); nothing of them is in a store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError, UsageError
from submerge_aggregator.http.params import path_names, tree_path
from submerge_aggregator.http.serving import ask
from submerge_aggregator.http.shared_answers import SharedAnswers
from submerge_aggregator.inquiring import NoReply
from submerge_aggregator.questions import survey
from submerge_aggregator.questions.foreign_replies import read_recent, read_settings, read_values
from submerge_aggregator.server import Server

Reader = Callable[[bytes, str, str], Any]
"""Checks the bytes of a reply; takes the name of the node and of the group as well."""

READERS: dict[str, Reader] = {
    "settings": read_settings,
    "recent": read_recent,
    "values": read_values,
}

FRESH = {"Cache-Control": "no-store"}


def routes(server: Server) -> list[Route]:
    """Return the routes."""
    answers = SharedAnswers()

    def route(topic: str) -> Route:
        async def asked(request: Request) -> Response:
            (group,) = path_names(request, "group")
            path = tree_path(request)
            body = await answers.get((topic, group, path), lambda: _answer(group, path, topic))
            return Response(body, media_type="application/json", headers=FRESH)

        return Route(f"/{topic}/{{group}}", asked)

    async def _answer(group: str, path: tuple[str, ...], topic: str) -> bytes:
        if path:
            return checked(await server.inquire(group, path, topic), topic, group, path)
        await ask(server, lambda node, _: survey.group_of(node, group))
        if topic != "settings":
            raise UsageError("an aggregator has no rows of its own: name the path of a client")
        return server.worker.settings()

    return [route(topic) for topic in READERS]


def checked(body: bytes, topic: str, group: str, path: tuple[str, ...]) -> bytes:
    """Return a reply as it is passed on; raises NoReply if it is not what was asked for."""
    try:
        return msgspec.json.encode(READERS[topic](body, path[-1], group))
    except PeerError as error:
        raise NoReply(f"{'/'.join(path)} replied what cannot be shown: {error}") from error
