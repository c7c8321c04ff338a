"""Entering: how a person with a token gets a session, and leaves it."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from submerge_aggregator.operators.access import FAILED_BURST, FAILED_PER_S, TOO_MANY
from submerge_aggregator.operators.identify import NOT_ACCEPTED, Denial, Operator, Peer, place_of
from submerge_aggregator.operators.order_log import OrderLog
from submerge_aggregator.page.sessions import LASTS_S, Session, Sessions
from submerge_aggregator.rate_limit import RateLimit

MOST_BODY = 4096
"""Bytes of what the login form sends."""


class Entering:
    """Begins and ends sessions.

    cookie : The name of the cookie.
    log : Records who enters, and who tries to.
    steady : A clock that is never set back, in seconds.
    """

    def __init__(
        self,
        sessions: Sessions,
        cookie: str,
        log: OrderLog,
        *,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sessions, self._cookie, self._log, self._steady = sessions, cookie, log, steady
        self._attempts = RateLimit(FAILED_PER_S, FAILED_BURST)

    async def body(self, request: Request) -> bytes:
        """Return what a form sends; nothing of one that is too long."""
        parts, size = list[bytes](), 0
        async for part in request.stream():
            size += len(part)
            if size > MOST_BODY:
                return b""
            parts.append(part)
        return b"".join(parts)

    def enter(self, request: Request, secret: str) -> tuple[str | None, str]:
        """Return the cookie of a new session, or None and why there is none."""
        peer: Peer = request.scope.get("state", {}).get("peer", Peer())
        place, now = place_of(peer.address), self._steady()
        denial = TOO_MANY
        if self._attempts.has(place, now):
            cookie = self._sessions.begin(secret)
            session = None if cookie is None else self._sessions.find(cookie)
            if session is not None:
                who = Operator(f"token {session.name}", peer.address, session.scope, session.groups)
                self._log.note(who, "login")
                return cookie, ""
            self._attempts.takes(place, now)
            denial = Denial(401, "wrong_token", NOT_ACCEPTED)
        self._log.deny(denial, peer.address, "POST /login")
        return None, denial.why

    def give(self, answer: Response, cookie: str) -> None:
        """Have a browser keep a session."""
        answer.set_cookie(
            self._cookie,
            cookie,
            max_age=int(LASTS_S),
            secure=True,
            httponly=True,
            samesite="strict",
        )

    def leave(self, session: Session, answer: Response) -> None:
        """End a session."""
        self._sessions.end(session)
        answer.delete_cookie(self._cookie, secure=True, httponly=True, samesite="strict")
