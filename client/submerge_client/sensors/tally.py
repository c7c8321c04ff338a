"""Tally: counts what goes wrong, and says so less and less often.

A broken sensor breaks on every line. The first three mishaps of a kind are said, then
the tenth, the hundredth and so on; the counts have them all.
"""

from __future__ import annotations

from typing import Protocol


class SensorLog(Protocol):
    """Takes a remark for the log: what it is about, and its facts. Any thread may call it."""

    def __call__(self, what: str, /, **facts: object) -> None:
        """Take one."""


def unheard(what: str, /, **facts: object) -> None:
    """Take a remark, and tell nobody."""


class ProblemTally:
    """Counts by kind.

    Parameters
    ----------
    note : Note
    *kinds : str
        What is counted; each starts at 0, so that a reader sees what could have been.

    Attributes
    ----------
    counts : dict of str to int
    """

    def __init__(self, note: SensorLog, *kinds: str) -> None:
        self.counts = dict.fromkeys(kinds, 0)
        self._note = note

    def add(self, kind: str, what: str = "", **facts: object) -> None:
        """Count one of a kind, and perhaps note `what` and its facts."""
        self.counts[kind] += 1
        if what and worth_saying(self.counts[kind]):
            self._note(what, **{kind: self.counts[kind]}, **facts)


def worth_saying(nth: int) -> bool:
    """Whether the nth mishap of a kind is noted: the first three, then the powers of ten."""
    return nth <= 3 or str(nth).rstrip("0") == "1"
