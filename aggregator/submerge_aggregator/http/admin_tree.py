"""The admin API for nodes further down, for one node wherever it is, and for the history.

    GET  /tree/G?path=site-1/room-2&node=NODE&after=NAME    a page of the nodes that report there

The path names the aggregators below this one, the last of which is asked; without it, this one
is. A page has `more`: the next one comes after its last name. Pages are shared for two seconds
(`SharedAnswers`), so that many who look cost no more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError, SubmergeError, UsageError
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.messages import Incarnation, Question
from submerge_aggregator.history.answers import (
    SCORES,
    ScoresAsked,
    ScoreSteps,
    past_alarms,
    read,
    scores_page,
    versions,
)
from submerge_aggregator.http.serving import (
    as_json,
    ask,
    moment,
    path_names,
    query_names,
    tree_path,
    whole,
)
from submerge_aggregator.questions import survey
from submerge_aggregator.questions.foreign_replies import (
    read_page,
    read_recent,
    read_scores,
    read_settings,
    read_values,
)
from submerge_aggregator.questions.survey import group_of, nodes_page
from submerge_aggregator.server import NoReply, Server

KEPT_S = 2.0
"""How long an answer is shown again."""

MOST_KEPT = 64
"""Answers, where nothing else is said."""

Key = tuple[object, ...]


class AskedTooMuch(SubmergeError):
    """So much is asked at once that one more has to wait."""


class SharedAnswers:
    """The newest answers, by what was asked; on one event loop."""

    def __init__(self, kept_s: float = KEPT_S, most: int = MOST_KEPT) -> None:
        self._kept_s, self._most = kept_s, most
        self._asked: dict[Key, asyncio.Task[bytes]] = {}

    async def get(self, key: Key, ask: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """Return the answer to a question, which is asked now unless it was just asked."""
        asked = self._asked.get(key)
        if asked is None:
            if len(self._asked) >= self._most:
                raise AskedTooMuch("nodes are asked too much at once: try again in two seconds")
            asked = self._asked[key] = asyncio.create_task(ask())
            asked.add_done_callback(lambda task: self._forget_soon(key, task))
        # Who hangs up does not take the answer from the others.
        return await asyncio.shield(asked)

    def _forget_soon(self, key: Key, task: asyncio.Task[bytes]) -> None:
        if not task.cancelled():
            task.exception()  # seen: all who asked may have hung up
        task.get_loop().call_later(self._kept_s, self._asked.pop, key, None)


Reader = Callable[[bytes, str, str], Any]
"""Checks the bytes of a reply; takes the name of the node and of the group as well."""

READERS: dict[str, Reader] = {
    "settings": read_settings,
    "recent": read_recent,
    "values": read_values,
}

FRESH = {"Cache-Control": "no-store"}


def asked_routes(server: Server) -> list[Route]:
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


MOST_PAGES = 256
"""Pages that are kept, or under way: as many as questions may be open."""


def routes(server: Server) -> list[Route]:
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


# GET /scores/G?path=site-1/room-2&node=NODE&after=NAME&since=UNIX_S&step=S
#                                          how close nodes there came to alarms, step by step
# GET /past-alarms/G?before=UNIX_S&after=ID  alarms that are over or judged, the newest first
# GET /versions/G                          versions of the group's model, the newest first
# The path names the aggregators below this one, the last of which is asked, as for `/tree`.


DAY_S, STEP_S = 86_400, 900
"""What is shown unless a request says otherwise."""


def history_routes(server: Server) -> list[Route]:
    pages = SharedAnswers(most=MOST_PAGES)

    async def scores(request: Request) -> Response:
        (group,) = path_names(request, "group")
        node, after = query_names(request, "node", "after")
        wall = server.clock().wall
        steps = ScoreSteps(
            whole(request, "since", max(0, int(wall) - DAY_S)), whole(request, "step", STEP_S)
        )
        steps.count(wall)  # it checks it, before others are asked
        asked = ScoresAsked(group, steps, node or "", after or "")
        path = tree_path(request)
        if path:
            body = await pages.get((asked, path), lambda: _below(asked, path))
            return Response(body, media_type="application/json")
        me = await ask(server, lambda machine, _: name_of(machine, group))
        return as_json(await read(server.history, lambda file: scores_page(file, me, asked, wall)))

    async def _below(asked: ScoresAsked, path: tuple[str, ...]) -> bytes:
        said = await server.inquire(
            *(asked.group, path, SCORES), about=asked.node, after=asked.after, span=asked.steps
        )
        try:
            return msgspec.json.encode(read_scores(said, asked))
        except PeerError as error:
            raise NoReply(f"{'/'.join(path)} replied what is no page: {error}") from error

    async def past(request: Request) -> Response:
        (group,) = path_names(request, "group")
        await ask(server, lambda machine, _: name_of(machine, group))
        before, (after,) = moment(request, "before"), query_names(request, "after")
        return as_json(
            await read(server.history, lambda file: past_alarms(file, group, before, after or ""))
        )

    async def model_versions(request: Request) -> Response:
        (group,) = path_names(request, "group")
        await ask(server, lambda machine, _: name_of(machine, group))
        return as_json(await read(server.history, lambda file: versions(file, group)))

    return [
        Route("/scores/{group}", scores),
        Route("/past-alarms/{group}", past),
        Route("/versions/{group}", model_versions),
    ]


def name_of(machine: AggregatorNode, group: str) -> str:
    """Return the aggregator's name, if it serves the group."""
    group_of(machine, group)
    return machine.settings.node
