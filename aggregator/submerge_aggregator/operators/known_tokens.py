"""KnownTokens: the tokens of a running aggregator, by their file as it is now."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from submerge_aggregator.admission.watched_file import WatchedFile
from submerge_aggregator.audit.log import Record
from submerge_aggregator.operators.tokens import Token, parse_tokens


class KnownTokens:
    """Tokens that are accepted; which come and go is recorded.

    path : A file that is not there holds none.
    record : Of the audit log.
    steady : A clock that is never set back, in seconds.

    Raises UsageError if the file is there, and cannot be read or is wrong.
    """

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
        """Return them."""
        now, seen = self._file.current(), self._seen
        if now is not seen:
            self._seen = now
            # A name that was given to another token is in both.
            added = [f"{each.name} ({each.words})" for each in now if each not in seen]
            revoked = [each.name for each in seen if each not in now]
            if added or revoked:
                self._record("tokens", added=added, revoked=revoked)
        return now
