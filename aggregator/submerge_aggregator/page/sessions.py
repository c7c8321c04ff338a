"""Sessions: a token that was typed in, or a link that is good once, becomes a cookie that ends.

    name "." digest "." until "." number "." mac

1. The cookie holds the token's name and a part of its hash, never the token. It is signed with a
   key that is kept beside the store, and is good for as long as that token is.
2. Orders carry a second text, `proof`, that only the page's own scripts can read (against requests
   that other sites have a browser send).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from submerge import UsageError
from submerge_aggregator.operators.access import FailedAttempts, OrderLog
from submerge_aggregator.operators.identify import NOT_ACCEPTED, Denial, Operator, Peer
from submerge_aggregator.operators.scopes import Scope
from submerge_aggregator.operators.tokens import FORM, Token, find
from submerge_client.files import PRIVATE, refuse_link

LENGTH = 32


def key_path(store: Path) -> Path:
    return Path(f"{os.path.realpath(store)}.page-key")


def read_key(path: Path) -> bytes:
    """Return the key, or a new one where there is none, or one that a crash has cut short."""
    refuse_link(path, what="the key of the page's sessions")
    try:
        if path.exists():
            key = path.read_bytes()
            if len(key) == LENGTH:
                return key
        key = secrets.token_bytes(LENGTH)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
            os.fchmod(file.fileno(), PRIVATE)
            file.write(key)
    except OSError as error:
        raise UsageError(
            f"expected to read or write the key of the page's sessions, {path}, got:"
            f" {error.strerror}"
        ) from error
    return key


LASTS_S: dict[Scope, float] = {"read": 365 * 86400.0, "judge": 12 * 3600.0, "operate": 12 * 3600.0}
"""How long a session lasts: a shift, and on a wall, where nothing can be ordered, a year."""

LINK_S = 3600.0
"""How long the link is good while nobody follows it."""

LINK_SCOPE: Scope = "judge"
LINK_LASTS_S = 30 * 86400.0
"""What a session may do that began with the link, and how long it lasts."""

LINK = "link"
"""In place of a token's name and of its hash, which has other letters."""

MOST_ENDED = 4096
"""Sessions that are remembered as ended by their user; a restart forgets them."""

DIGITS = 16
"""Of a token's hash: enough to tell two tokens of one name apart."""


class Session(NamedTuple):
    """A person who has shown a token."""

    # of the token; groups empty: all
    name: str
    scope: Scope
    groups: tuple[str, ...]
    until: int  # when it ends, Unix seconds
    number: str  # tells it from others of the same token
    who: str

    def operator(self, address: str) -> Operator:
        return Operator(self.who, address, self.scope, self.groups)


class Sessions:
    """Begins sessions, and knows those that hold; `link` begins one, and is empty after that."""

    def __init__(
        self,
        key: bytes,
        tokens: Callable[[], Iterable[Token]],
        wall: Callable[[], float],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key, self._tokens, self._wall, self._steady = key, tokens, wall, steady
        self._ended: dict[str, int] = {}
        self.link, self._link_until = secrets.token_urlsafe(24), steady() + LINK_S
        self._text = self.link

    def begin(self, secret: str) -> str | None:
        """Return the cookie of a new session; None if the token is not accepted."""
        token = find(self._tokens(), secret, self._wall())
        if token is None or not FORM.fullmatch(secret):
            return None
        return self._cookie(token.name, token.digest[:DIGITS], LASTS_S[token.scope])

    def follow(self, link: str) -> str | None:
        """Return the cookie of a new session; None if it is not the link, or is so no more."""
        if not self.link or not self.was_link(link):
            return None
        self.link = ""
        return self._cookie(LINK, LINK, LINK_LASTS_S) if self._steady() < self._link_until else None

    def was_link(self, link: str) -> bool:
        """Return whether it is the link of this process, good or not any more."""
        return hmac.compare_digest(link.encode(), self._text.encode())

    def _cookie(self, name: str, digest: str, lasts_s: float) -> str:
        until = int(self._wall() + lasts_s)
        known = ".".join((name, digest, str(until), secrets.token_hex(16)))
        return f"{known}.{self._signed('session', known)}"

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it does not hold, or not any more."""
        known, _, mac = cookie.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._signed("session", known).encode()):
            return None
        # A token's name may have points in it, too.
        name, digest, until, number = known.rsplit(".", 3)
        now = self._wall()
        if now >= int(until) or number in self._ended:
            return None
        if digest == LINK:
            return Session(name, LINK_SCOPE, (), int(until), number, "page link")
        for token in self._tokens():
            if token.name == name and token.digest.startswith(digest) and not token.has_ended(now):
                who = f"token {name}"
                return Session(name, token.scope, token.groups, int(until), number, who)
        return None

    def proof(self, session: Session) -> str:
        """Return what an order of this session carries beside the cookie."""
        return self._signed("proof", session.number)

    def proves(self, session: Session, proof: str) -> bool:
        return hmac.compare_digest(self.proof(session).encode(), proof.encode())

    def end(self, session: Session) -> None:
        now = self._wall()
        self._ended = {each: until for each, until in self._ended.items() if until > now}
        if len(self._ended) >= MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[session.number] = session.until

    def _signed(self, purpose: str, text: str) -> str:
        data = f"{purpose}\n{text}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, data, hashlib.sha256).hexdigest()


MOST_BODY = 4096
"""Bytes of what the login form sends."""

FOLLOWED = "this link was followed before, or is over an hour old: log in with a token"


class Entering:
    """Begins and ends sessions."""

    def __init__(self, sessions: Sessions, cookie: str, log: OrderLog, *, here: bool) -> None:
        self._sessions, self._cookie, self._log = sessions, cookie, log
        # Where only this machine can connect there is no TLS, and not every browser takes that.
        self._secure = not here
        self._attempts = FailedAttempts(time.monotonic)

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
        return self._begun(request, self._sessions.begin(secret), NOT_ACCEPTED)

    def follow(self, request: Request, link: str) -> tuple[str | None, str]:
        """Return the cookie of a new session, or None and why; who has one may follow it again."""
        cookie = self._sessions.follow(link)
        if cookie is None and self._sessions.find(request.cookies.get(self._cookie, "")):
            return None, ""
        if not self._sessions.was_link(link):
            return None, FOLLOWED  # no refusal is counted: any site can have browsers ask so
        return self._begun(request, cookie, FOLLOWED)

    def _begun(self, request: Request, cookie: str | None, why: str) -> tuple[str | None, str]:
        peer: Peer = request.scope.get("state", {}).get("peer", Peer())
        session = None if cookie is None else self._sessions.find(cookie)
        if session is not None:
            self._log.note(session.operator(peer.address), "login")
            return cookie, ""
        denial = self._attempts.answer(Denial(401, "wrong_token", why), peer.address)
        self._log.deny(denial, peer.address, f"{request.method} /login")
        return None, denial.why

    def give(self, answer: Response, cookie: str) -> None:
        most = int(max(LASTS_S.values()))  # the cookie itself says when it ends
        answer.set_cookie(
            self._cookie,
            cookie,
            max_age=most,
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )

    def leave(self, session: Session, answer: Response) -> None:
        self._sessions.end(session)
        answer.delete_cookie(self._cookie, secure=self._secure, httponly=True, samesite="strict")
