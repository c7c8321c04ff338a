"""Tokens of operators: random texts of which only hashes are kept (docs/operators.md, "Tokens").

    # submerge tokens 1
    token night-shift scope judge created 2026-11-24T02:10:00Z until never sha256 9F86...

Who may write to the file may add a token: it belongs to its owner alone.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.names import NAME_RULE, is_name
from submerge_aggregator.admission.watched_file import WatchedFile
from submerge_aggregator.audit import Record
from submerge_aggregator.operators.scopes import SCOPES, Scope

PREFIX = "submerge_"  # programs that look for secrets in files know a token by it

FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
HEAD = "# submerge tokens 1"
TIME = "%Y-%m-%dT%H:%M:%SZ"
MOST = 1000  # tokens of one aggregator: each request is compared with all of them
MOST_GROUPS = 64  # that a token is limited to


class Token(NamedTuple):
    name: str
    scope: Scope
    # Unix seconds; until None: it does not end
    created: float
    until: float | None
    digest: str  # SHA-256 of its text, hexadecimal
    groups: tuple[str, ...] = ()  # which it is for; empty: all

    @property
    def line(self) -> str:
        until = "never" if self.until is None else time_text(self.until)
        return (
            f"token {self.name} scope {self.scope} created {time_text(self.created)} until {until}"
            f" sha256 {self.digest}" + (f" groups {','.join(self.groups)}" if self.groups else "")
        )

    @property
    def words(self) -> str:
        """What it allows, for people: `judge`, or `judge, in pumps`."""
        return f"{self.scope}, in {', '.join(self.groups)}" if self.groups else self.scope

    def has_ended(self, now: float) -> bool:
        return self.until is not None and now >= self.until


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def find(tokens: Iterable[Token], secret: str, now: float) -> Token | None:
    """Return the token with this text, compared in constant time; None if it has ended."""
    digest, found = digest_of(secret), None
    for token in tokens:
        same = hmac.compare_digest(token.digest, digest)
        found = token if same and not token.has_ended(now) else found
    return found


def parse_tokens(text: str) -> tuple[Token, ...]:
    tokens: dict[str, Token] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            token = _token(words)
            if token.name in tokens:
                raise UsageError(f"a second token {token.name}")
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from error
        tokens[token.name] = token
    if len(tokens) > MOST:
        raise UsageError(f"expected at most {MOST} tokens, got {len(tokens)}")
    return tuple(tokens.values())


def tokens_text(tokens: Iterable[Token]) -> str:
    return "".join(f"{line}\n" for line in (HEAD, *(token.line for token in tokens)))


def check_token_name(name: str) -> str:
    """Return a token's name; raises UsageError if it is no name."""
    if not is_name(name):
        raise UsageError(f"a token's name is {NAME_RULE}, got {name[:80]!r}")
    return name


def check_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """Return the groups that a token is for, each once."""
    named = tuple(dict.fromkeys(groups))
    for group in named:
        if not is_name(group):
            raise UsageError(f"a group's name is {NAME_RULE}, got {group[:80]!r}")
    if len(named) > MOST_GROUPS:
        raise UsageError(
            f"a token is for {MOST_GROUPS} groups at most, or for all: got {len(named)}"
        )
    return named


def _token(words: list[str]) -> Token:
    groups = tuple[str, ...]()
    # Without groups it is for all, as those of earlier versions are.
    if len(words) > 2 and words[-2] == "groups":
        groups, words = check_groups(words[-1].split(",")), words[:-2]
    match words:
        case ["token", name, "scope", scope, "created", at, "until", end, "sha256", digest]:
            named = next((each for each in SCOPES if each == scope), None)
            if named is None:
                raise UsageError(f"a scope is {', '.join(SCOPES)}, got {scope[:80]!r}")
            if not re.fullmatch(r"[0-9A-Fa-f]{64}", digest):
                raise UsageError("expected 64 hexadecimal digits after sha256")
            until = None if end == "never" else _seconds(end)
            return Token(check_token_name(name), named, _seconds(at), until, digest.lower(), groups)
    raise UsageError("expected a line as `submerge aggregator token new` writes it")


def time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(TIME)


def _seconds(text: str) -> float:
    try:
        return datetime.strptime(text, TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise UsageError(f"expected a time like 2026-11-24T02:10:00Z, got {text[:80]!r}") from None


class KnownTokens:
    """Tokens that are accepted; which come and go is recorded; no file at `path`: none."""

    def __init__(
        self, path: Path, record: Record, *, steady: Callable[[], float] = time.monotonic
    ) -> None:
        none: tuple[Token, ...] = ()
        self._record = record
        self._file = WatchedFile(
            path, parse_tokens, setting="operators.tokens", missing=none, steady=steady
        )
        self._seen = self._file.current()

    def __call__(self) -> tuple[Token, ...]:
        now, seen = self._file.current(), self._seen
        if now is not seen:
            self._seen = now
            # A name that was given to another token is in both.
            added = [f"{each.name} ({each.words})" for each in now if each not in seen]
            revoked = [each.name for each in seen if each not in now]
            if added or revoked:
                self._record("tokens", added=added, revoked=revoked)
        return now
