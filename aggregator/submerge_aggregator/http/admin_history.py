"""The admin API for the history; `admin` has the rest of it, and what holds for both.

    GET  /scores/G?path=site-1/room-2&node=NODE&after=NAME&since=UNIX_S&step=S
                               how close the nodes that report there came to alarms, step by step
    GET  /past-alarms/G?before=UNIX_S&after=ID
                                            alarms that have ended or are judged, the newest first
    GET  /versions/G                        versions of the group's model, one in five minutes,
                                            the newest first

The path names the aggregators below this one, the last of which is asked, as for `/tree`. Alarms go
up the tree by themselves: those of all nodes below are in the history here.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError
from submerge.aggregator.node import AggregatorNode
from submerge_aggregator.history.answers import SCORES, read
from submerge_aggregator.history.past import past_alarms, versions
from submerge_aggregator.history.scores import ScoresAsked, ScoreSteps, scores_page
from submerge_aggregator.http.admin_tree import MOST_PAGES
from submerge_aggregator.http.params import moment, path_names, query_names, tree_path, whole
from submerge_aggregator.http.serving import as_json, ask
from submerge_aggregator.http.shared_answers import SharedAnswers
from submerge_aggregator.inquiring import NoReply
from submerge_aggregator.questions.foreign_scores import read_scores
from submerge_aggregator.questions.survey import group_of
from submerge_aggregator.server import Server

DAY_S, STEP_S = 86_400, 900
"""What is shown unless a request says otherwise."""


def routes(server: Server) -> list[Route]:
    """Return the routes."""
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
