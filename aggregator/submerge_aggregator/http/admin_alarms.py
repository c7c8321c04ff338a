"""The admin API for alarms; `admin` has the rest of it, and what holds for both.

    GET  /alarms?group=G&node=NODE&open=1    alarms here and below; only open ones
    GET  /alarms/mark?group=G                a text that changes when an alarm does
    POST /alarms/G/ID/accept                 it is normal from now on, and learnt
    POST /alarms/G/ID/reject                 it is a fault, and never learnt
    POST /nodes/G/NODE/pause                 have it learn nothing
    POST /nodes/G/NODE/resume                have it learn again
    POST /nodes/G/NODE/drill                 have it try which faults it would find
    GET  /alarm-status?group=G               how groups are watched

Desired states go down with the answers to reports, so nodes further down get them too: nodes
with an alarm that was reported here, and with `anyway=1` any.
"""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge.protocol.alarm_status import parse_alarm_name
from submerge.protocol.machine import SetDesired
from submerge_aggregator.http.orders import note_order
from submerge_aggregator.http.params import flag, path_names, query_names
from submerge_aggregator.http.serving import as_json, ask
from submerge_aggregator.questions import alarm_survey
from submerge_aggregator.server import Server


def routes(server: Server) -> list[Route]:
    """Return the routes."""

    async def alarms(request: Request) -> Response:
        (group, name), open_only = query_names(request, "group", "node"), flag(request, "open")
        return as_json(
            await ask(
                server,
                lambda node, now: alarm_survey.alarms(node, now, group, name, open_only=open_only),
            )
        )

    async def mark(request: Request) -> Response:
        (group,) = query_names(request, "group")
        return as_json(await ask(server, lambda node, now: alarm_survey.mark(node, now, group)))

    async def alarm_status(request: Request) -> Response:
        (group,) = query_names(request, "group")
        return as_json(
            await ask(server, lambda node, now: alarm_survey.group_watches(node, now, group))
        )

    async def set_verdict(request: Request) -> Response:
        (group,), verb = path_names(request, "group"), request.path_params["verb"]
        if verb not in ("accept", "reject"):
            raise HTTPException(404, f"expected accept or reject, got {verb!r}")
        name, number = parse_alarm_name(request.path_params["id"])
        verdict = (number, verb == "accept")
        return await set_desired(request, verb, SetDesired(group, name, verdict=verdict))

    async def set_state(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        # Not by `request.url`, which is built with the Host header.
        verb = request.scope["path"].rpartition("/")[2]
        paused = None if verb == "drill" else verb == "pause"
        event = SetDesired(group, name, paused=paused, drill=verb == "drill")
        return await set_desired(request, verb, event)

    async def set_desired(request: Request, verb: str, event: SetDesired) -> Response:
        group, name, anyway = event.group, event.node, flag(request, "anyway")
        await ask(server, lambda node, now: alarm_survey.check(node, now, event, anyway=anyway))
        after = await ask(
            server, lambda node, now: alarm_survey.desired_state(node, now, group, name), event
        )
        facts: dict[str, Any] = {"node": name, "group": group}
        if event.verdict is not None:
            facts["alarm"] = f"{name}-{event.verdict[0]:x}"
        note_order(server, request, verb, **facts)
        return as_json(after)

    return [
        Route("/alarms", alarms),
        Route("/alarms/mark", mark),
        Route("/alarms/{group}/{id}/{verb}", set_verdict, methods=["POST"]),
        *(
            Route(f"/nodes/{{group}}/{{node}}/{verb}", set_state, methods=["POST"])
            for verb in ("pause", "resume", "drill")
        ),
        Route("/alarm-status", alarm_status),
    ]
