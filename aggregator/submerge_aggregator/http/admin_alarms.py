"""The operator's door, as far as alarms go; `control` has the rest of it, and what holds for all.

    GET  /alarms?group=G&node=NODE&open=1    alarms here and below; those that are open
    GET  /alarms/mark?group=G                another one once an alarm has begun, or is over
    POST /alarms/G/ID/accept                 it is normal from now on, and learnt
    POST /alarms/G/ID/reject                 it is a fault, and never is
    POST /nodes/G/NODE/pause                 have it learn nothing
    POST /nodes/G/NODE/resume                have it learn again
    GET  /vigil?group=G                      how groups are watched

Orders go down with the answers to reports, so they are taken for nodes further down, too: those
that an alarm was ever told of, and with `anyway=1` any.
"""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge.protocol.alarm_status import parted
from submerge.protocol.machine import SetDesired
from submerge_aggregator.http.params import flag, named, params
from submerge_aggregator.http.serving import as_json, asked
from submerge_aggregator.questions import alarm_survey
from submerge_aggregator.server import Server
from submerge_client.logs import say


def routes(server: Server) -> list[Route]:
    """Return what answers."""

    async def alarms(request: Request) -> Response:
        (group, name), open_only = params(request, "group", "node"), flag(request, "open")
        return as_json(
            await asked(
                server,
                lambda node, now: alarm_survey.alarms(node, now, group, name, open_only=open_only),
            )
        )

    async def mark(request: Request) -> Response:
        (group,) = params(request, "group")
        return as_json(await asked(server, lambda node, now: alarm_survey.mark(node, now, group)))

    async def alarm_status(request: Request) -> Response:
        (group,) = params(request, "group")
        return as_json(
            await asked(server, lambda node, now: alarm_survey.watches(node, now, group))
        )

    async def judge(request: Request) -> Response:
        (group,), verb = named(request, "group"), request.path_params["verb"]
        if verb not in ("accept", "reject"):
            raise HTTPException(404, f"expected accept or reject, got {verb!r}")
        name, number = parted(request.path_params["id"])
        return await order(
            request, verb, SetDesired(group, name, verdict=(number, verb == "accept"))
        )

    async def learn(request: Request) -> Response:
        (group, name), verb = named(request, "group", "node"), request.url.path.rpartition("/")[2]
        return await order(request, verb, SetDesired(group, name, paused=verb == "pause"))

    async def order(request: Request, verb: str, set_desired: SetDesired) -> Response:
        group, name, anyway = set_desired.group, set_desired.node, flag(request, "anyway")
        await asked(
            server, lambda node, now: alarm_survey.check(node, now, set_desired, anyway=anyway)
        )
        after = await asked(
            server, lambda node, now: alarm_survey.desired(node, now, group, name), set_desired
        )
        facts: dict[str, Any] = {"node": name, "group": group}
        if set_desired.verdict is not None:
            facts["alarm"] = f"{name}-{set_desired.verdict[0]:x}"
        say("an operator's order", verb=verb, **facts)
        return as_json(after)

    return [
        Route("/alarms", alarms),
        Route("/alarms/mark", mark),
        Route("/alarms/{group}/{id}/{verb}", judge, methods=["POST"]),
        Route("/nodes/{group}/{node}/pause", learn, methods=["POST"]),
        Route("/nodes/{group}/{node}/resume", learn, methods=["POST"]),
        Route("/alarm-status", alarm_status),
    ]
