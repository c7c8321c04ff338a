"""OperatorAccess: stands before the admin API, and lets through what is allowed.

1. Who asks is settled first, then what they may do; only then is the path looked at by anything
   else, and the body read. So a refusal says nothing of which nodes, groups or tokens there are.
2. Failed attempts are bounded by address: over the bound each is refused in the same words. What is
   right is let in at any time: behind a proxy all have one address.
3. The Host header is not used for anything.
4. A page in a browser may give no orders: a browser shows a certificate to every site that asks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from submerge_aggregator.audit import Record
from submerge_aggregator.limits import RateLimit
from submerge_aggregator.operators.identify import DENIALS, Denial, Operator, Peer, place_of
from submerge_aggregator.operators.scopes import ApiCall, objection
from submerge_aggregator.refusals import Refusals
from submerge_client.logs import say

# A flood of refusals must not push the rest out of the audit log.

PER_S, BURST = 1 / 6, 60  # entries on refusals: so many at once, and then ten a minute


class OrderLog:
    """What operators ordered, and what was refused, counted by reason (`DENIALS`) and logged."""

    def __init__(self, record: Record, steady: Callable[[], float]) -> None:
        self._record, self._steady = record, steady
        self.denials = Refusals(steady, reasons=DENIALS, sender="by")
        self._pace = RateLimit(PER_S, BURST)
        self._unrecorded = 0

    def note(self, operator: Operator, verb: str, **facts: Any) -> None:
        given: dict[str, Any] = {"by": operator.who, "address": operator.whence}
        say("operator command", verb=verb, **facts, **given)
        shuts_out = verb in ("ban", "unban") or bool(facts.get("ban"))
        self._record("ban" if shuts_out else "order", **given, verb=verb, **facts)

    def deny(self, denial: Denial, address: str, what: str) -> None:
        """Count, log and record a request that was not allowed; never its query."""
        known: dict[str, Any] = {"address": address, "what": what, "why": denial.why}
        self.denials.count(
            denial.reason,
            denial.who or address,
            what="operator refused",
            request=what,
            why=denial.why,
        )
        self._record_some(
            denial.who if denial.reason == "scope" else "",
            by=denial.who or "unknown",
            reason=denial.reason,
            **known,
        )

    def refuse(self, operator: Operator, what: str, why: str) -> None:
        """Record an order that was allowed, and that the aggregator did not carry out."""
        known = {"by": operator.who, "address": operator.whence, "what": what, "why": why}
        self._record_some(operator.who, **known)

    def _record_some(self, pace: str, **facts: object) -> None:
        if not self._pace.takes(pace, self._steady()):
            self._unrecorded += 1
            return
        left, self._unrecorded = self._unrecorded, 0
        self._record("denied", **facts, **({"unrecorded": left} if left else {}))


Headers = Sequence[tuple[bytes, bytes]]
Identify = Callable[[Peer, Headers], Operator | Denial]

FAILED_PER_S, FAILED_BURST = 1 / 6, 10
"""Failed attempts of one address: ten at once, and then ten a minute."""

MOST_WHY = 4096  # bytes of an answer in which the reason of a refusal is looked for

TOO_MANY = Denial(429, "too_many", "too many failed attempts from this address: wait a minute")
TWO_LENGTHS = Denial(400, "shape", "a request has one length, got two")
FROM_A_PAGE = Denial(403, "shape", "pages in browsers give no orders: there is an Origin header")


class FailedAttempts:
    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady, self._limit = steady, RateLimit(FAILED_PER_S, FAILED_BURST)

    def answer(self, denial: Denial, address: str) -> Denial:
        return denial if self._limit.takes(place_of(address), self._steady()) else TOO_MANY


class OperatorAccess:
    def __init__(
        self,
        app: Starlette,
        identify: Identify,
        log: OrderLog,
        *,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._identify, self._log = app, identify, log
        self._attempts = FailedAttempts(steady)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer: Peer = scope.get("state", {}).get("peer", Peer())
        what = f"{scope['method']} {scope['path']}"
        found = self._identified(scope["headers"], peer)
        if isinstance(found, Operator):
            why = objection(found.scope, found.groups, call_of(self._app.routes, scope))
            if why is not None:
                found = Denial(403, "scope", why, found.who)
        if isinstance(found, Denial):
            self._log.deny(found, peer.address or "socket", what)
            await _answer(found)(scope, receive, send)
            return
        scope["operator"] = found
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, self._noting(found, what, send))

    def _identified(self, headers: Headers, peer: Peer) -> Operator | Denial:
        named = {name for name, _ in headers}
        if {b"content-length", b"transfer-encoding"} <= named:
            return TWO_LENGTHS
        if b"origin" in named:
            return FROM_A_PAGE
        guessed = bool(peer.address) and (peer.certificate is None or b"authorization" in named)
        found = self._identify(peer, headers)
        if guessed and isinstance(found, Denial):
            return self._attempts.answer(found, peer.address)
        return found

    def _noting(self, operator: Operator, what: str, send: Send) -> Send:
        """Return a `send` that records an order that is refused, with the reason."""
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif status >= 400:
                self._log.refuse(operator, what, why_of(message.get("body", b""), status))
                status = 0  # once, if the answer has several parts
            await send(message)

        return noting


def call_of(routes: Sequence[BaseRoute], scope: Scope) -> ApiCall:
    """Return what a request asks for: the route is the one that the app will take."""
    query = dict(QueryParams(scope["query_string"]))
    for route in routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            path = str(getattr(route, "path", ""))
            return ApiCall(scope["method"], path, found.get("path_params", {}), query)
    return ApiCall(scope["method"], "", {}, query)


def _answer(denial: Denial) -> Response:
    """Return the answer to what is refused; the connection ends: its body was not read."""
    headers = {"connection": "close"}
    if denial.status == 401:
        headers["www-authenticate"] = "Bearer"
    body = json.dumps({"error": denial.why}, ensure_ascii=False)
    return Response(body, denial.status, headers, media_type="application/json")


def why_of(body: bytes, status: int) -> str:
    """Return the reason in an answer that is a refusal."""
    try:
        return str(json.loads(body[:MOST_WHY])["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {status}"
