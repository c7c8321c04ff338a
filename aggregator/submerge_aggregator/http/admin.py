"""The admin API, for `submerge nodes` and `model`: HTTP on a Unix socket beside the store.

The socket's mode is the authentication. With [operators] it is HTTPS as well; `operators.scopes`
lists every route and what it needs, docs/operators.md, docs/jobs.md and docs/backup.md say how to
use some. A change is answered after it is committed. What goes down to aggregators below (forget,
quarantine, release) may with `anyway=1` be of a node that is unknown here.

    GET  /nodes?group=G&node=NODE        every node that reports here, or the named ones
    GET  /model/G?whole=1                the newest model, as protobuf; whole: a model file
    POST /nodes/G/NODE/forget?ban=1      remove it for good; ban: and refuse it, in all groups
    POST /nodes/G/NODE/drop              what is of old schemas (?old=1), or a row (?incarnation=ID)
    POST /nodes/G/NODE/certificate       have it put a new certificate, PEM, into its kit
    POST /nodes/G/NODE/release           end its quarantine, and its ban in all groups
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import PeerError, SubmergeError, UsageError
from submerge.aggregator.node import AggregatorNode
from submerge.history.knowledge import Learnt
from submerge.protocol.alarm_status import parse_alarm_name
from submerge.protocol.desired_state import MOST_CERTIFICATE, Missed
from submerge.protocol.history import History
from submerge.protocol.machine import (
    Drop,
    Forget,
    ForgetHistory,
    Now,
    PushHistory,
    SetBan,
    SetDesired,
    SetQuarantine,
)
from submerge.protocol.messages import Incarnation
from submerge_aggregator.backup import BackupJobs, CopyIdentity
from submerge_aggregator.http import admin_tree
from submerge_aggregator.http.serving import (
    Busy,
    as_json,
    ask,
    body_of,
    flag,
    moment,
    note_order,
    path_names,
    query_names,
    route_of,
    unknown_path,
)
from submerge_aggregator.jobs.board import MOST_ORDER_BYTES, job_of, read_order, schema_of
from submerge_aggregator.jobs.views import JobView
from submerge_aggregator.questions import alarm_survey, health, histories, survey
from submerge_aggregator.questions.histories import MOST_PUSHED_BYTES
from submerge_aggregator.questions.survey import Missing, group_of
from submerge_aggregator.questions.views import About, AlarmView, GroupWatch, NodeView, ShownRank
from submerge_aggregator.server import Server
from submerge_proto.files import learnt as learnt_file
from submerge_proto.kept import aggregator as kept
from submerge_proto.wire import codec


def landmark_routes(server: Server) -> list[Route]:
    async def chosen_again(request: Request) -> Response:
        (group,) = path_names(request, "group")
        job = await server.landmarks.choose_again(group)
        note_order(server, request, "choose landmarks", job=job, group=group)
        return as_json(server.board.view(job))

    return [Route("/landmarks/{group}", chosen_again, methods=["POST"])]


def job_routes(server: Server) -> list[Route]:
    board = server.board

    async def listed(request: Request) -> Response:
        (group,) = query_names(request, "group")
        if group is not None:
            await ask(server, lambda node, _: group_of(node, group))
        return as_json(board.views(group))

    async def opened(request: Request) -> Response:
        (group,) = path_names(request, "group")
        order = read_order(await body_of(request, "a job", MOST_ORDER_BYTES))
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


# GET  /histories/G                      what group G merges beside the rows of its nodes
# POST /histories/G?weight=ROWS&anyway=1  take the model file in the request's body, for so many
#                                        rows at most; anyway: also rows that a node may report
# POST /histories/G/NAME/forget          remove one
# A file is read beside the event loop, and the machine is asked whether it would take it before it
# is ordered to.


def histories_routes(server: Server) -> list[Route]:
    async def push(request: Request) -> Response:
        (group,) = path_names(request, "group")
        most_rows, anyway = _weight(request), flag(request, "anyway")
        data = await body_of(request, "a model file", MOST_PUSHED_BYTES)
        history = await asyncio.to_thread(_history, data, most_rows)
        order = PushHistory(group, history, anyway)
        taken, wall = await ask(server, lambda node, now: histories.check_push(node, now, order))
        # As the store will: what cannot be kept is refused, and not found out at the commit.
        await asyncio.to_thread(kept.HISTORY.made, taken)
        before = await ask(server, lambda node, _: frozenset(node.histories(group)))
        order = order._replace(history=replace(history, pushed=wall))
        after = await ask(
            server, lambda node, now: histories.pushed(node, now, order, before), order
        )
        facts = {"group": group, "history": history.name, "rows": after.history.rows}
        if math.isfinite(most_rows):
            facts["weight"] = most_rows
        note_order(server, request, "push", **facts, anyway=anyway)
        return as_json(after)

    async def forget(request: Request) -> Response:
        group, name = path_names(request, "group", "name")
        gone = await ask(server, lambda node, now: histories.one(node, now, group, name))
        await ask(server, lambda *_: None, ForgetHistory(group, name))
        note_order(server, request, "forget", group=group, history=name, rows=gone.rows)
        return as_json(gone)

    return [
        route_of(
            server,
            "/histories/{group}",
            lambda node, now, said: histories.histories(node, now, *path_names(said, "group")),
        ),
        Route("/histories/{group}", push, methods=["POST"]),
        Route("/histories/{group}/{name}/forget", forget, methods=["POST"]),
    ]


def _history(data: bytes, most_rows: float) -> History:
    return kept.history_from(learnt_file.unpacked(data).learnt, most_rows=most_rows)


def _weight(request: Request) -> float:
    """Return the most rows that a history is to count for; infinite if that is not said."""
    given = request.query_params.get("weight")
    if given is None:
        return math.inf
    try:
        rows = float(given)
    except ValueError:
        rows = math.nan
    if not (rows >= 1 and math.isfinite(rows)):
        raise UsageError(f"weight is a number of rows, 1 or more, got {given!r}")
    return rows


def alarm_routes(server: Server) -> list[Route]:
    def alarms(node: AggregatorNode, now: Now, said: Request) -> list[AlarmView]:
        group, name = query_names(said, "group", "node")
        return alarm_survey.alarms(node, now, group, name, open_only=flag(said, "open"))

    def mark(node: AggregatorNode, now: Now, said: Request) -> str:
        return alarm_survey.mark(node, now, *query_names(said, "group"))

    def alarm_status(node: AggregatorNode, now: Now, said: Request) -> list[GroupWatch]:
        return alarm_survey.group_watches(node, now, *query_names(said, "group"))

    async def set_verdict(request: Request) -> Response:
        (group,), verb = path_names(request, "group"), request.path_params["verb"]
        if verb not in ("accept", "reject"):
            raise HTTPException(404, f"expected accept or reject, got {verb!r}")
        name, number = parse_alarm_name(request.path_params["id"])
        verdict = (number, verb == "accept")
        return await _set_desired(server, request, verb, SetDesired(group, name, verdict=verdict))

    async def set_state(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        # Not by `request.url`, which is built with the Host header.
        verb = request.scope["path"].rpartition("/")[2]
        paused = None if verb == "drill" else verb == "pause"
        event = SetDesired(group, name, paused=paused, drill=verb == "drill")
        return await _set_desired(server, request, verb, event)

    async def set_missed(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        channel = request.query_params.get("channel", "")
        began, ended = moment(request, "from"), moment(request, "to")
        if not 0 <= began < ended < math.inf:
            raise UsageError("expected a fault that begins before it ends")
        missed = Missed(began, ended, channel, flag(request, "withdrawn"))
        return await _set_desired(server, request, "missed", SetDesired(group, name, missed=missed))

    async def set_certificate(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        sent = await body_of(request, "a certificate", MOST_CERTIFICATE)
        return await _set_desired(
            server, request, "certify", SetDesired(group, name, certificate=sent)
        )

    return [
        route_of(server, "/alarms", alarms),
        route_of(server, "/alarms/mark", mark),
        Route("/alarms/{group}/{id}/{verb}", set_verdict, methods=["POST"]),
        *(
            Route(f"/nodes/{{group}}/{{node}}/{verb}", set_state, methods=["POST"])
            for verb in ("pause", "resume", "drill")
        ),
        Route("/nodes/{group}/{node}/missed", set_missed, methods=["POST"]),
        Route("/nodes/{group}/{node}/certificate", set_certificate, methods=["POST"]),
        route_of(server, "/alarm-status", alarm_status),
    ]


async def _set_desired(server: Server, request: Request, verb: str, event: SetDesired) -> Response:
    group, name, anyway = event.group, event.node, flag(request, "anyway")
    await ask(server, lambda node, now: alarm_survey.check(node, now, event, anyway=anyway))
    after = await ask(
        server, lambda node, now: alarm_survey.desired_state(node, now, group, name), event
    )
    facts = {} if event.missed is None else event.missed._asdict()
    facts |= {"node": name, "group": group}
    if event.verdict is not None:
        facts["alarm"] = f"{name}-{event.verdict[0]:x}"
    note_order(server, request, verb, **facts)
    return as_json(after)


def backup_routes(server: Server) -> list[Route]:
    jobs = BackupJobs(server)

    async def begin(request: Request) -> Response:
        if not server.ready:
            raise Busy("the aggregator is starting or stopping: try again")

        def done(identity: CopyIdentity) -> None:
            learnt = sum(each.learnt for each in identity.groups.values())
            note_order(server, request, "backup", bytes=identity.bytes, learnt=learnt)

        return as_json(await jobs.begin(done))

    async def state(request: Request) -> Response:
        return as_json(await jobs.state(request.path_params["name"]))

    async def piece(request: Request) -> Response:
        name, first = request.path_params["name"], request.path_params["first"]
        return Response(await jobs.piece(name, first), media_type="application/octet-stream")

    async def end(request: Request) -> Response:
        await jobs.end(request.path_params["name"])
        return as_json({})

    return [
        Route("/backup", begin, methods=["POST"]),
        Route("/backup/{name}", state, methods=["GET"]),
        Route("/backup/{name}/{first:int}", piece, methods=["GET"]),
        Route("/backup/{name}/end", end, methods=["POST"]),
    ]


def ban_routes(server: Server) -> list[Route]:
    async def set_ban(request: Request) -> Response:
        (name,), verb = path_names(request, "node"), request.path_params["verb"]
        if verb not in ("ban", "unban"):
            raise HTTPException(404, f"expected ban or unban, got {verb!r}")
        banned = verb == "ban"
        await ask(server, lambda node, _: survey.check_ban(node, name, banned=banned))
        after = await ask(server, lambda node, _: survey.ban(node, name), SetBan(name, banned))
        note_order(server, request, verb, node=name)
        return as_json(after)

    return [
        route_of(server, "/bans", lambda node, *_: survey.bans(node)),
        Route("/bans/{node}/{verb}", set_ban, methods=["POST"]),
    ]


OTHERS = (
    alarm_routes,
    ban_routes,
    histories_routes,
    backup_routes,
    admin_tree.routes,
    admin_tree.asked_routes,
    admin_tree.history_routes,
    job_routes,
    landmark_routes,
)
"""What returns the other routes."""

MOST_PATH = 100  # Most bytes in a socket's path: Linux takes 107, others 103.


def api(server: Server) -> Starlette:
    """Return the admin API for all who may: `OperatorAccess` stands before it."""
    app = Starlette(
        routes=routes(server),
        exception_handlers={HTTPException: unknown_path, SubmergeError: _refuse},
    )
    # A redirect would send the client to the host that its own header names.
    app.router.redirect_slashes = False
    return app


def routes(server: Server) -> list[Route]:
    def about(node: AggregatorNode, _: Now, said: Request) -> About:
        return survey.about(node, said.scope["operator"].groups)

    async def healthy(_: Request) -> Response:
        return as_json(health.health(server))

    def nodes(node: AggregatorNode, now: Now, said: Request) -> list[NodeView]:
        return survey.nodes(node, now, *query_names(said, "group", "node"))

    async def model(request: Request) -> Response:
        (group,) = path_names(request, "group")
        if flag(request, "whole"):
            found = await ask(server, lambda node, now: histories.learnt(node, now, group))
            ranks = await ask(server, lambda node, _: survey.about(node).shown.get(group))
            file = await asyncio.to_thread(_file, found, ranks)
            return Response(file, media_type="application/octet-stream")
        body = await ask(server, lambda node, _: codec.encode(survey.newest_model(node, group)))
        return Response(body, media_type="application/x-protobuf")

    async def unlike(request: Request) -> Response:
        (group,) = path_names(request, "group")
        compared = await ask(server, lambda node, _: survey.relations_of(node, group))
        return as_json(await asyncio.to_thread(compared))

    def drills(node: AggregatorNode, _: Now, said: Request) -> survey.DrillView:
        return survey.drills(node, *path_names(said, "group"))

    def one(node: AggregatorNode, now: Now, said: Request) -> NodeView:
        return survey.one(node, now, *path_names(said, "group", "node"))

    async def change(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        event = _event(request, group, name)
        anyway = flag(request, "anyway") and not isinstance(event, Drop)

        await ask(server, lambda node, now: survey.one(node, now, group, name, anyway=anyway))
        if isinstance(event, Drop):
            await ask(server, lambda node, _: survey.has(node, event))
        after = await ask(
            server, lambda node, now: survey.one(node, now, group, name, anyway=True), event
        )
        note_order(server, request, request.path_params["verb"], **_facts(event))
        return as_json(after)

    return [
        route_of(server, "/", about),
        Route("/health", healthy),
        route_of(server, "/nodes", nodes),
        route_of(server, "/nodes/{group}/{node}", one),
        Route("/model/{group}", model),
        Route("/unlike/{group}", unlike),
        route_of(server, "/drills/{group}", drills),
        *(route for each in OTHERS for route in each(server)),
        Route("/nodes/{group}/{node}/{verb}", change, methods=["POST"]),
    ]


def listen(path: Path) -> socket.socket:
    """Return a socket at a path that only this user can open; a dead one there is replaced."""
    if len(os.fsencode(path)) > MOST_PATH:
        raise UsageError(
            f"a socket's path has at most {MOST_PATH} bytes, got {len(os.fsencode(path))} for"
            f" {path}: give the store a shorter path"
        )
    _make_room(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        # No process can connect before it listens, so it is never open to others.
        path.chmod(0o600)
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(
            f"expected a place for a socket at {path}, got: {error.strerror}; put the store"
            " where sockets can be"
        ) from error
    return listener


def _make_room(path: Path) -> None:
    """Remove the socket of a process that has ended."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UsageError(f"expected nothing or a socket at {path}, got another file: move it away")
    if not _is_dead(path):
        raise UsageError(f"another aggregator answers on {path}: stop it, or name another store")
    path.unlink(missing_ok=True)


def _is_dead(path: Path) -> bool:
    """Return whether no process listens on a socket's file; a slow one does listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(str(path)) in (errno.ECONNREFUSED, errno.ENOENT)


def _file(found: Learnt, shown: ShownRank | None) -> bytes:
    if shown is None:
        return learnt_file.packed(found)
    return learnt_file.packed(found, rank=shown.rank, linear_rank=shown.linear_rank or 0)


def _event(request: Request, group: str, name: str) -> Forget | Drop | SetQuarantine:
    verb, ban = request.path_params["verb"], flag(request, "ban")
    match verb:
        case "forget":
            return Forget(group, name, ban=ban)
        case "drop":
            return _drop(request, group, name)
        case "quarantine":
            return SetQuarantine(group, name)
        case "release":
            return SetQuarantine(group, name, quarantined=False)
    verbs = "forget, drop, quarantine, release, pause or resume"
    raise HTTPException(404, f"expected {verbs}, got {verb!r}")


def _facts(event: Forget | Drop | SetQuarantine) -> dict[str, Any]:
    """Return what the operator ordered, so that it can be found later."""
    facts: dict[str, Any] = {"node": event.node, "group": event.group}
    match event:
        case Forget():
            facts["ban"] = event.ban
        case Drop():
            facts |= {"old": True} if event.old else {"incarnation": str(event.incarnation)}
    return facts


def _drop(request: Request, group: str, name: str) -> Drop:
    incarnation, old = (request.query_params.get(each) for each in ("incarnation", "old"))
    if (incarnation is None) == (old is None) or old not in (None, "1"):
        raise UsageError("drop takes either an incarnation or old=1")
    if incarnation is None:
        return Drop(group, name, None, old=True)
    return Drop(group, name, Incarnation.parse(incarnation))


async def _refuse(_: Request, error: Exception) -> Response:
    """Answer in one line; the status tells bad input from a failure here."""
    if isinstance(error, survey.Missing):
        status = 404
    else:
        status = 400 if isinstance(error, UsageError | PeerError) else 503
    return as_json({"error": str(error)}, status)
