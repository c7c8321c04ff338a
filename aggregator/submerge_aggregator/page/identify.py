"""PageIdentities: who sends a request from a browser, by its cookie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from submerge_aggregator.operators.identify import Denial, Operator, Peer
from submerge_aggregator.page.hosts import Hosts, is_loopback
from submerge_aggregator.page.sessions import Session, Sessions

Headers = Sequence[tuple[bytes, bytes]]

NOT_LOGGED_IN = "log in with an operator's token"

PASSED_ON = (b"forwarded", b"via", b"x-forwarded", b"x-real-ip", b"x-original", b"x-client-ip")
"""How headers begin that say of a request that another machine may have sent it."""


@dataclass(frozen=True, slots=True)
class PageIdentities:
    """Who asks.

    cookie : The name of the cookie.
    local : Whether only this machine can connect, and no proxy is configured that does so for
        others.
    """

    sessions: Sessions
    hosts: Hosts
    cookie: str
    local: bool

    def __call__(self, peer: Peer, headers: Headers) -> Operator | Denial:
        """Return who sends a request, or why it is refused."""
        session = self.session(headers)
        if session is not None:
            return Operator(f"token {session.name}", peer.address, session.scope, session.groups)
        passed_on = any(name.startswith(PASSED_ON) for name, _ in headers)
        if self.local and not passed_on and is_loopback(one_of(headers, b"host")):
            return Operator("page", peer.address, "read")
        return Denial(401, "no_credential", NOT_LOGGED_IN)

    def session(self, headers: Headers) -> Session | None:
        """Return the session of a request; None without one that holds."""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(one_of(headers, b"cookie"))
        except CookieError:
            return None
        known = cookies.get(self.cookie)
        return None if known is None else self.sessions.find(known.value)


def one_of(headers: Headers, name: bytes) -> str:
    """Return a header's value; empty if it is missing, or there are two."""
    values = [value for key, value in headers if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""
