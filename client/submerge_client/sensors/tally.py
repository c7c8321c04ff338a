"""ProblemTally: counts problems, and logs three of a kind, then the 10th, the 100th and so on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from submerge.protocol.machine import Level


class SensorLog(Protocol):
    """Takes a remark for the log, from any thread."""

    def __call__(self, what: str, /, *, level: Level = "info", **facts: object) -> None:
        """Log what happened and its facts."""


def no_log(what: str, /, *, level: Level = "info", **facts: object) -> None:
    """Drop a remark."""


class ProblemTally:
    """Counts problems by kind; each starts at 0, so that a reader sees what is counted."""

    def __init__(self, note: SensorLog, *kinds: str) -> None:
        self.counts = dict.fromkeys(kinds, 0)
        self._note = note

    def add(self, kind: str, what: str = "", *, level: Level = "info", **facts: object) -> None:
        """Count a problem of a kind, and log `what` and its facts if it is due."""
        self.counts[kind] += 1
        if what and worth_logging(self.counts[kind]):
            self._note(what, level=level, **{kind: self.counts[kind]}, **facts)


FIRST_NAMES_S, NAMES_S = 5.0, 60.0
"""Seconds until the first log line with names that the schema lacks, and between two of them."""

MOST_NAMED = 20  # names in such a line


class UnlistedNames:
    """Logs names that the schema lacks, a few at a time; times are of a steady clock."""

    def __init__(self, note: SensorLog, now: float) -> None:
        self._note, self._at = note, now + FIRST_NAMES_S

    def is_due(self, now: float) -> bool:
        """Return whether it is time for a line; the next one follows `NAMES_S` later."""
        if now < self._at:
            return False
        self._at = now + NAMES_S
        return True

    def write(self, names: Sequence[str], what: str = "no channels of the schema, ignored") -> None:
        if names:
            some = ", ".join(names[:MOST_NAMED]) + ", …" * (len(names) > MOST_NAMED)
            self._note(what, names=some)


def worth_logging(nth: int) -> bool:
    """Return whether the nth problem of a kind is logged: the first three, then powers of ten."""
    return nth <= 3 or str(nth).rstrip("0") == "1"
