"""PageGate: what each request of a browser has to show before anything looks at it.

1. It comes under one of our names (`Host`), and from one of our pages: `Origin`, if there is one,
   and for data what the browser says of who asks (`Sec-Fetch-Site`).
2. It has a session: other users of this machine may not look, either.
3. What changes something needs an `Origin`, too, and the session's proof in a header.

Then `/api/...` is the admin API, behind the same table of scopes as everywhere.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import msgspec
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from submerge_aggregator.operators.access import OrderLog
from submerge_aggregator.operators.identify import Denial, Operator, Peer
from submerge_aggregator.page.sessions import Session, Sessions


class Hosts(NamedTuple):
    """The names of a page."""

    own: frozenset[str]
    configured: frozenset[str]

    @classmethod
    def of(cls, own: Iterable[str], configured: Iterable[str]) -> Hosts:
        """Return names, however they are written."""
        return cls(
            frozenset(each.lower() for each in ("localhost", *own)),
            frozenset(each.lower() for each in configured),
        )

    def knows(self, host: str) -> bool:
        """Return whether a request may come under the name in its `Host` header."""
        name = _name(host)
        return self.is_configured(host) or name in self.own or _is_address(name)

    def is_configured(self, host: str) -> bool:
        """Return whether it is a configured name: that of a proxy, or of a certificate."""
        name = _name(host)
        return bool(name) and bool({host.lower(), name} & self.configured)

    def is_own(self, origin: str, host: str, *, secure: bool) -> bool:
        """Return whether a page that sends a request is one of these."""
        # Before a configured name a proxy may have taken TLS off.
        schemes = {"https" if secure else "http"}
        if self.is_configured(host):
            schemes.add("https")
        return origin.lower() in {f"{scheme}://{host.lower()}" for scheme in schemes}


def _name(host: str) -> str:
    """Return a host without its port; empty if it is not written as browsers do."""
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    shown = f"[{name}]" if ":" in name else name
    # What else was there would be read in another way elsewhere: a user, a path, "[::1]evil.com".
    return name if host.lower() in (shown, f"{shown}:{port}") else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


Headers = Sequence[tuple[bytes, bytes]]

NOT_LOGGED_IN = "log in with an operator's token"


@dataclass(frozen=True, slots=True)
class PageIdentities:
    """Who asks."""

    sessions: Sessions
    hosts: Hosts
    cookie: str

    def __call__(self, peer: Peer, headers: Headers) -> Operator | Denial:
        """Return who sends a request, or why it is refused."""
        session = self.session(headers)
        if session is None:
            return Denial(401, "no_credential", NOT_LOGGED_IN)
        return session.operator(peer.address)

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


PROOF = b"x-submerge-proof"
"""The header with a session's proof."""

DATA = ("/api/", "/data/")
"""Paths that only scripts of the page ask for. No link of another site leads there."""

POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'"
)

ALWAYS = {
    b"content-security-policy": POLICY.encode(),
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    # Not "no-referrer": a browser's form would have the origin null then, and open no session.
    b"referrer-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}

FOREIGN_HOST = "expected an address or a name of this machine, got another name: see [page] names"
FOREIGN_ORIGIN = "orders and questions come from this page alone, not from another site"
NO_PROOF = "an order comes with the proof of its session: load the page again"


@dataclass(frozen=True, slots=True)
class PageGate:
    """The page and the admin API, for browsers."""

    page: ASGIApp
    api: ASGIApp
    identify: PageIdentities
    log: OrderLog
    secure: bool  # whether browsers come by TLS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        peer: Peer = scope.get("state", {}).get("peer", Peer())
        guarded = _guarded(send)
        denial = self._objection(scope, headers)
        # Where a session begins, and what that is drawn with.
        needs_none = scope["path"] == "/login" or scope["path"].startswith("/static/")
        if denial is None and not needs_none:
            found = self.identify(peer, headers)
            if isinstance(found, Denial):
                denial = found
            else:
                scope["operator"] = found
        if denial is not None:
            await self._refuse(denial, peer, scope)(scope, receive, guarded)
            return
        if scope["path"].startswith("/api/"):
            await self.api(_inner(scope), receive, guarded)
            return
        session = self.identify.session(headers)
        scope["session"] = session
        scope["proof"] = "" if session is None else self.identify.sessions.proof(session)
        await self.page(scope, receive, guarded)

    def _objection(self, scope: Scope, headers: Headers) -> Denial | None:
        hosts, host = self.identify.hosts, one_of(headers, b"host")
        # A path that does not begin so is a whole address, which may name another host.
        if not hosts.knows(host) or not scope["path"].startswith("/"):
            return Denial(403, "shape", FOREIGN_HOST)
        origin, changes = one_of(headers, b"origin"), scope["method"] not in ("GET", "HEAD")
        sent = any(name == b"origin" for name, _ in headers)
        if (sent or changes) and not hosts.is_own(origin, host, secure=self.secure):
            return Denial(403, "shape", FOREIGN_ORIGIN)
        # A picture or a script of another site has no origin; it would have us ask the whole fleet.
        site = one_of(headers, b"sec-fetch-site")
        if site in ("cross-site", "same-site") and scope["path"].startswith(DATA):
            return Denial(403, "shape", FOREIGN_ORIGIN)
        if not changes or scope["path"] == "/login":
            return None
        session = self.identify.session(headers)
        if session is None:
            return Denial(401, "no_credential", NOT_LOGGED_IN)
        proof = one_of(headers, PROOF)
        if not self.identify.sessions.proves(session, proof):
            return Denial(403, "shape", NO_PROOF, session.who)
        return None

    def _refuse(self, denial: Denial, peer: Peer, scope: Scope) -> Response:
        """Return the answer to what is refused: a person who has to log in is led there."""
        path, method = scope["path"], scope["method"]
        looks = not path.startswith(DATA)
        if denial.status == 401 and method == "GET" and looks:
            query = scope["query_string"].decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="")
            return RedirectResponse(f"/login?back={back}", 303)
        # A page that is left open asks on when its session is over: that is no attempt.
        if method != "GET" or denial.status != 401:
            self.log.deny(denial, peer.address, f"{method} {path}")
        body = msgspec.json.encode({"error": denial.why})
        # The body of what is refused was not read: the connection ends.
        headers = {"connection": "close", "cache-control": "no-store"}
        return Response(body, denial.status, headers, media_type="application/json")


def _guarded(send: Send) -> Send:
    """Return a `send` that adds what every answer says to browsers."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message.get("headers", ())}
            more = [(name, value) for name, value in ALWAYS.items() if name not in named]
            if b"cache-control" not in named:
                more.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return guarded


def _inner(scope: Scope) -> Scope:
    """Return a request to the admin API as it is without the page."""
    path = scope["path"].removeprefix("/api")
    raw = scope.get("raw_path", path.encode()).removeprefix(b"/api")
    kept = [(name, value) for name, value in scope["headers"] if name != b"origin"]
    return {**scope, "path": path, "raw_path": raw, "headers": kept}
