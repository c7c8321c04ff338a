"""The admin API for nodes further down, for one node wherever it is, and for the history.

    GET  /tree/G?path=site-1/room-2&node=NODE&after=NAME    a page of the nodes that report there

The path names the aggregators below this one, the last of which is asked. Pages are shared for two
seconds (`SharedAnswers`), so that many who look cost no more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError, SubmergeError, UsageError
from submerge.aggregator.node import AggregatorNode
from submerge.client.monitor import MOST_ROWS
from submerge.client.recent_rows import BLAMED
from submerge.errors import Kind
from submerge.protocol.messages import Incarnation, Question
from submerge.protocol.names import LAST_SECOND, is_name
from submerge_aggregator.history.answers import (
    MOST_STEPS,
    SCORES,
    ScoresAsked,
    ScoreSteps,
    known_alarms,
    past_alarms,
    read,
    scores_page,
    versions,
)
from submerge_aggregator.history.file import ScoresPage
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
from submerge_aggregator.questions.alarm_survey import alarms, at_rate
from submerge_aggregator.questions.survey import group_of, nodes_page
from submerge_aggregator.questions.views import NodesPage
from submerge_aggregator.server import NoReply, Server
from submerge_client.replies import LETTERS, RecentReply, SettingsReply, ValuesReply
from submerge_proto.wire.fields import MOST

# read_settings(), read_recent(), read_values(): what a node below replied about itself, checked.
#
# It came as JSON inside a reply, whose bytes the border has not looked into. What passes can be
# shown in a table, on a page, and in a picture: names and shapes are right, numbers are finite,
# text can be printed in one line.


def read_scores(body: bytes, asked: ScoresAsked) -> ScoresPage:
    page = _decoded(body, ScoresPage, "a page of scores")
    steps = asked.steps
    if (page.group, page.step_s, page.first_s) != (asked.group, steps.step_s, steps.first_s):
        raise PeerError("expected the group and the steps that were asked for, got others")
    names = [each.node for each in page.nodes]
    _check_page(page.aggregator, names, after=asked.after, more=page.more)
    if asked.node and names not in ([], [asked.node]):
        raise PeerError(f"expected scores of {asked.node}, got others")
    lengths = {len(each.levels) for each in page.nodes}
    if len(lengths) > 1 or max(lengths, default=0) > MOST_STEPS:
        raise PeerError(f"expected {MOST_STEPS} levels of each node at most, got more, or uneven")
    return page


# What passes can be shown in a table, and page follows upon page: names rise, so that asking for
# the next one comes to an end.

LARGEST_PAGE = 2.0**63  # no time or share of ours is larger


def read_page(body: bytes, group: str, after: str) -> NodesPage:
    page = _decoded(body, NodesPage, "a page of nodes")
    names = [view.node for view in page.nodes]
    _check_page(page.aggregator, names, after=after, more=page.more)
    if {page.group, *(view.group for view in page.nodes)} != {group}:
        raise PeerError(f"expected nodes of group {group}, got others")
    if not all(abs(number) <= LARGEST_PAGE for number in _floats(msgspec.to_builtins(page))):
        raise PeerError("expected finite numbers, got others", kind="not_finite")
    if any(abs(view.since_s or 0.0) > LAST_SECOND for view in page.nodes):
        raise PeerError("expected a time that can be shown, got another", kind="range")
    return page


def _check_page(aggregator: str, names: list[str], *, after: str, more: bool) -> None:
    """Refuse names that are none, or do not rise from that after which they come."""
    ordered = all(before < name for before, name in pairwise([after, *names]))
    if not (ordered and all(map(is_name, [aggregator, *names]))):
        raise PeerError("expected nodes in the order of their names, got others")
    if more and not names:
        raise PeerError("expected nodes before there are more, got none")


def _floats(value: Any) -> Iterator[float]:
    """Yield all numbers with a fraction; NaN is over every bound."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _floats(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _floats(each)


DEEPEST = 12  # tables and lists inside each other
LARGEST = 2.0**1020  # no number of ours is larger: differences of two are finite

T = TypeVar("T")


def read_settings(body: bytes, node: str, _: str = "") -> SettingsReply:
    reply = _decoded(body, SettingsReply, "settings")
    _check(reply.node == node, f"settings of {node}", "name")
    _check_text([reply.software])
    return msgspec.structs.replace(reply, settings=_printable(reply.settings, DEEPEST))


def read_recent(body: bytes, node: str, group: str) -> RecentReply:
    reply, shares = _decoded(body, RecentReply, "scores"), list[float]()
    _check((reply.node, reply.group) == (node, group), f"scores of {node} in {group}", "name")
    _check_times(reply.at)
    _check(0 <= reply.version <= MOST, "a version of a model", "range")
    _check_text(reply.channels)
    kinds = [each.kind for each in reply.kinds]
    _check(len(set(kinds)) == len(kinds), "each kind of score once", "malformed")
    lengths = {len(reply.at), len(reply.blame), *(len(each.values) for each in reply.kinds)}
    _check(len(lengths) == 1, "as many scores as rows", "malformed")
    for blamed in reply.blame:
        named = [each.channel for each in blamed]
        fits = len(named) <= BLAMED and all(0 <= each < len(reply.channels) for each in named)
        _check(fits and len(set(named)) == len(named), "channels that are named", "range")
        shares += [each.share for each in blamed]
    _check(all(0.0 <= each <= 1.0 for each in shares), "shares from 0 to 1", "range")
    for kind in reply.kinds:
        _check_numbers([0.0 if kind.limit is None else kind.limit, *kind.values])
    return reply


def read_values(body: bytes, node: str, group: str) -> ValuesReply:
    reply = _decoded(body, ValuesReply, "readings")
    _check((reply.node, reply.group) == (node, group), f"readings of {node} in {group}", "name")
    _check_times(reply.at)
    _check_text(text for each in reply.channels for text in (each.name, each.unit))
    tables, channels = (reply.values, reply.expected), len(reply.channels)
    fits = all(len(each) == channels for each in (*tables, reply.sd))
    fits = fits and all(len(row) == len(reply.at) for table in tables for row in table)
    _check(fits, "a reading of each channel at each row", "malformed")
    for numbers in (*reply.values, *reply.expected, reply.sd):
        _check_numbers(each for each in numbers if each is not None)
    _check(all(each is None or each >= 0 for each in reply.sd), "sd of at least 0", "range")
    return reply


def _decoded(body: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise PeerError(f"expected {what}, got something else") from error


def _check(holds: bool, expected: str, kind: Kind) -> None:
    if not holds:
        raise PeerError(f"expected {expected}, got others", kind=kind)


def _check_times(at: list[float]) -> None:
    _check(len(at) <= MOST_ROWS, f"{MOST_ROWS} rows at most", "range")
    _check(all(0.0 <= each <= LAST_SECOND for each in at), "times that can be shown", "range")


def _check_numbers(numbers: Iterable[float]) -> None:
    # NaN is over every bound.
    _check(all(abs(each) <= LARGEST for each in numbers), "finite numbers", "not_finite")


def _check_text(texts: Iterable[str]) -> None:
    """Refuse control characters, marks of direction, and what is long."""
    fits = all(len(each) <= LETTERS and each.isprintable() for each in texts)
    _check(fits, "text of one line", "name")


def _printable(value: Any, deep: int) -> Any:
    """Return a setting with "?" for what cannot be printed, if it is no deeper than that."""
    if isinstance(value, str):
        return "".join(letter if letter.isprintable() else "?" for letter in value)
    _check(deep > 0, f"tables {DEEPEST} deep at most", "range")
    if isinstance(value, dict):
        return {_printable(key, 1): _printable(each, deep - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_printable(each, deep - 1) for each in value]
    if isinstance(value, int | float):
        _check_numbers([value])
    return value


KEPT_S = 2.0  # how long an answer is shown again
MOST_KEPT = 64  # answers, where nothing else is said

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
            body = await server.inquire(group, path, topic)
            return checked(lambda: READERS[topic](body, path[-1], group), path)
        await ask(server, lambda node, _: survey.group_of(node, group))
        if topic != "settings":
            raise UsageError("an aggregator has no rows of its own: name the path of a client")
        return server.worker.settings()

    return [route(topic) for topic in READERS]


def checked(read: Callable[[], Any], path: tuple[str, ...]) -> bytes:
    """Return a reply as it is passed on; raises NoReply if it is not what was asked for."""
    try:
        return msgspec.json.encode(read())
    except PeerError as error:
        raise NoReply(f"{'/'.join(path)} replied what cannot be shown: {error}") from error


MOST_PAGES = 256  # pages that are kept, or under way: as many as questions may be open


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
            return checked(lambda: read_page(said, group, after or ""), path)

        body = await pages.get((group, path, about, after), below)
        return Response(body, media_type="application/json")

    return [Route("/tree/{group}", nodes)]


# GET /scores/G?path=site-1/room-2&node=NODE&after=NAME&since=UNIX_S&step=S
#                                          how close nodes there came to alarms, step by step
# GET /past-alarms/G?before=UNIX_S&after=ID  alarms that are over or judged, the newest first
# GET /versions/G                          versions of the group's model, the newest first
# The path names the aggregators below this one, the last of which is asked, as for `/tree`.

DAY_S, STEP_S = 86_400, 900  # what is shown unless a request says otherwise


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
            *(asked.group, path, SCORES),
            about=asked.node,
            after=asked.after,
            **asked.steps._asdict(),
        )
        return checked(lambda: read_scores(said, asked), path)

    async def past(request: Request) -> Response:
        (group,) = path_names(request, "group")
        await ask(server, lambda machine, _: name_of(machine, group))
        before, (after,) = moment(request, "before"), query_names(request, "after")
        return as_json(
            await read(server.history, lambda file: past_alarms(file, group, before, after or ""))
        )

    async def what_if(request: Request) -> Response:
        (group,), per_s = path_names(request, "group"), moment(request, "per_s")
        if not 0 < per_s < 1:
            raise UsageError(f"per_s is a number of false alarms a second, got {per_s:g}")
        rated = await ask(server, lambda node, now: at_rate(node, now, group, per_s))
        listed = await ask(server, lambda node, now: alarms(node, now, group))
        wall = server.clock().wall
        known = await read(server.history, lambda file: known_alarms(file, group, listed, wall))
        return as_json(rated.view(group, *known))

    async def model_versions(request: Request) -> Response:
        (group,) = path_names(request, "group")
        await ask(server, lambda machine, _: name_of(machine, group))
        return as_json(await read(server.history, lambda file: versions(file, group)))

    return [
        Route("/scores/{group}", scores),
        Route("/past-alarms/{group}", past),
        Route("/versions/{group}", model_versions),
        Route("/what-if/{group}", what_if),
    ]


def name_of(machine: AggregatorNode, group: str) -> str:
    """Return the aggregator's name, if it serves the group."""
    group_of(machine, group)
    return machine.settings.node
