"""The status endpoints: /healthz, /readyz and /metrics.

Nothing here changes anything, and the first two are answered whatever the store's disk does.
There is no authentication: by default it listens on this machine only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import SubmergeError
from submerge_aggregator.http.metrics import Numbers, exposition
from submerge_aggregator.http.serving import as_json, ask, unknown_path
from submerge_aggregator.questions.group_metrics import metrics_of_groups
from submerge_aggregator.questions.health import not_ready
from submerge_aggregator.server import Server
from submerge_proto.wire.parts import SOFTWARE


def app(server: Server, steady: Callable[[], float] = time.monotonic) -> Starlette:
    """Return the ASGI app.

    steady : A clock that is never set back, in seconds.
    """
    began = steady()

    async def health(_: Request) -> Response:
        return as_json({"uptime_s": round(steady() - began, 3), "software": SOFTWARE})

    async def readiness(_: Request) -> Response:
        why = not_ready(server)
        if why is not None:
            return as_json({"ready": False, "why": why}, 503)
        return as_json({"ready": True})

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        body, content_type = exposition(await _numbers(server), accept)
        return Response(body, headers={"content-type": content_type})

    return Starlette(
        routes=[
            Route("/healthz", health),
            Route("/readyz", readiness),
            Route("/metrics", metrics),
        ],
        exception_handlers={HTTPException: unknown_path},
    )


async def _numbers(server: Server) -> Numbers:
    worker = server.worker
    groups = None
    # Without the groups too: the counters say that the store fails, and matter most then.
    with suppress(SubmergeError):
        groups = await ask(server, metrics_of_groups)
    return Numbers(
        worker.tallies,
        server.audit.dropped,
        server.refusals.counts,
        not_ready(server),
        server.parted,
        server.broker,
        0.0 if worker.credentials is None else worker.credentials.until,
        groups,
        worker.admission.legacy_kits,
        server.unanswered,
        server.order_log.denials.counts,
        (server.history.bytes, server.history.dropped) if server.history.is_kept else None,
        server.last_backup.made_s,
        server.jobs.metrics,
    )
