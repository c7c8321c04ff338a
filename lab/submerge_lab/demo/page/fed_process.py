"""FedProcess: one client process of a demo without an end, as the demo that feeds it sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from submerge_lab.demo.feed import Stint

MOST_CLAIMS = 64
"""Reports of one incarnation whose sizes are remembered: far more than are ever under way."""


@dataclass(slots=True, eq=False)
class FedProcess(Stint):
    """A client process; it counts its rows, and keeps none.

    claims : What the client says that its parent holds: readings by incarnation and report.
        Readings that it declares as lost are among them.
    unread, not_kept : Rows that it did not read before it ended, and those that it read and did not
        keep, by its own last line; 0 while it runs, and if it was killed.
    """

    claims: dict[str, dict[int, int]] = field(default_factory=dict)
    unread: int = 0
    not_kept: int = 0
    _rows: int = 0
    _newest: dict[str, int] = field(default_factory=dict)

    @property
    def given(self) -> int:
        """Number of rows that were written to it."""
        return self._rows

    def give(self, snapshot: int, now: float) -> None:
        """Note that it gets a snapshot."""
        self._rows += 1
        self._given_at = now

    def claim(self, incarnation: str, seq: int, readings: int) -> None:
        """Note that by the client's words its parent holds so many readings at a report.

        Where they have not become more, the words are of an earlier report than they name: the
        answer came when the next report was already under way.
        """
        before, self._newest[incarnation] = self._newest.get(incarnation, 0), readings
        if readings <= before:
            return
        claims = self.claims.setdefault(incarnation, {})
        claims[seq] = readings
        if len(claims) > MOST_CLAIMS:
            del claims[next(iter(claims))]

    def end_by_its_words(self, rows: int, lost: int) -> None:
        """Note its last line: rows that it read, and those that it could not keep."""
        self.unread, self.not_kept = self._rows - rows, lost

    @property
    def claimed(self) -> int:
        """Readings that by the client's words its parent holds, of all its incarnations."""
        return sum(max(claims.values(), default=0) for claims in self.claims.values())
