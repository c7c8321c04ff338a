"""The admin API, for `submerge nodes` and `model`: HTTP on a Unix socket beside the store.

Every user who may open the socket's file may do all of this: the file's mode is the
authentication. With [operators] it is HTTPS as well, and `operators.scopes` has what each route
needs. A change is answered after it is committed.

    GET  /                               which aggregator, and its groups
    GET  /health                         how it is: links, store, what it refused
    GET  /nodes?group=G&node=NODE        every node that reports here, or the named ones
    GET  /model/G?whole=1                the newest model, as protobuf; whole: as a model file,
                                         with what merges
    GET  /drills/G                       what drills here and below have found out
    GET  /nodes/G/NODE                   one of them, or 404 if it is unknown here
    POST /nodes/G/NODE/forget?ban=1      remove it for good; ban: and refuse it, in all groups
    POST /nodes/G/NODE/drop?old=1        remove what it reported under old schemas
    POST /nodes/G/NODE/drop?incarnation=ID    or one of its rows
    POST /nodes/G/NODE/quarantine        keep its rows out of the model
    POST /nodes/G/NODE/release           end its quarantine, and its ban in all groups

The last two, and forget, go down to aggregators below; with `anyway=1` also for a node that is
unknown here.

`admin_alarms` has the paths for alarms, `admin_bans` those for bans, `admin_histories` those for
histories, `admin_backup` those for copies of the store, `admin_history` those for what was,
`admin_jobs` those for jobs, `admin_landmarks` one for landmarks,
`admin_tree` and `admin_asked` those for nodes further down.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
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
from submerge.protocol.machine import Drop, Forget, Now, SetQuarantine
from submerge.protocol.messages import Incarnation
from submerge_aggregator.http import (
    admin_alarms,
    admin_asked,
    admin_backup,
    admin_bans,
    admin_histories,
    admin_history,
    admin_jobs,
    admin_landmarks,
    admin_tree,
)
from submerge_aggregator.http.orders import note_order
from submerge_aggregator.http.params import flag, path_names, query_names
from submerge_aggregator.http.serving import as_json, ask, unknown_path
from submerge_aggregator.questions import drill_survey, health, learnt, survey
from submerge_aggregator.questions.views import NodeView, ShownRank
from submerge_aggregator.server import Server
from submerge_proto.files import learnt as learnt_file
from submerge_proto.wire import codec

OTHERS = (
    admin_alarms,
    admin_bans,
    admin_histories,
    admin_backup,
    admin_tree,
    admin_asked,
    admin_history,
    admin_jobs,
    admin_landmarks,
)
"""The modules with the other routes."""

MOST_PATH = 100
"""Most bytes in a socket's path: Linux takes 107, others 103."""


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
    """Return the routes."""

    async def about(request: Request) -> Response:
        groups = request.scope["operator"].groups
        return as_json(await ask(server, lambda node, _: survey.about(node, groups)))

    async def healthy(_: Request) -> Response:
        return as_json(health.health(server))

    async def nodes(request: Request) -> Response:
        group, name = query_names(request, "group", "node")
        return as_json(await ask(server, lambda node, now: survey.nodes(node, now, group, name)))

    async def model(request: Request) -> Response:
        (group,) = path_names(request, "group")
        if flag(request, "whole"):
            found = await ask(server, lambda node, now: learnt.learnt(node, now, group))
            ranks = await ask(server, lambda node, _: survey.about(node).shown.get(group))
            file = await asyncio.to_thread(_file, found, ranks)
            return Response(file, media_type="application/octet-stream")
        body = await ask(server, lambda node, _: codec.encode(survey.newest_model(node, group)))
        return Response(body, media_type="application/x-protobuf")

    async def drills(request: Request) -> Response:
        (group,) = path_names(request, "group")
        return as_json(await ask(server, lambda node, _: drill_survey.drills(node, group)))

    async def one(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        return as_json(await ask(server, lambda node, now: survey.one(node, now, group, name)))

    async def change(request: Request) -> Response:
        group, name = path_names(request, "group", "node")
        event = _event(request, group, name)
        anyway = flag(request, "anyway") and not isinstance(event, Drop)

        def after_it(node: AggregatorNode, now: Now) -> NodeView:
            return survey.one(node, now, group, name, anyway=True)

        await ask(server, lambda node, now: survey.one(node, now, group, name, anyway=anyway))
        if isinstance(event, Drop):
            await ask(server, lambda node, _: survey.has(node, event))
        after = await ask(server, after_it, event)
        note_order(server, request, request.path_params["verb"], **_facts(event))
        return as_json(after)

    return [
        Route("/", about),
        Route("/health", healthy),
        Route("/nodes", nodes),
        Route("/nodes/{group}/{node}", one),
        Route("/model/{group}", model),
        Route("/drills/{group}", drills),
        *(route for each in OTHERS for route in each.routes(server)),
        Route("/nodes/{group}/{node}/{verb}", change, methods=["POST"]),
    ]


def listen(path: Path) -> socket.socket:
    """Return a socket at a path that only this user can open; a dead one there is replaced.

    Raises UsageError if another process listens there, another file is in the way, or no socket can
    be made.
    """
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
    """Return a model file."""
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
