"""RowAccount: what has become of each row that a process has read. Every row has one fate.

The counts of a report are for a parent, and of one incarnation. An account is for people: of all
incarnations of one process, and with the reason where a row was not learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class RowAccount:
    """Rows by their fate.

    learnt : Learnt, and a parent holds them.
    waiting : For a parent to hold them, or for the fleet to settle its schema. The next start of
        the node sends them.
    lost : Learnt here, and no parent gets them any more.
    withheld : Not learnt, because of an alarm or because an operator has paused learning.
    lead_in, other_state, gaps, too_large : Not learnt: too few rows before them for their lags;
        outside `learn when`; gaps that could not be filled; numbers too large.
    only_measured : They measured the fleet's scaling, and there was no memory to keep them.
    """

    learnt: int = 0
    waiting: int = 0
    lost: int = 0
    withheld: int = 0
    lead_in: int = 0
    other_state: int = 0
    gaps: int = 0
    too_large: int = 0
    only_measured: int = 0

    @property
    def rows(self) -> int:
        """All rows: the sum of all fates."""
        return sum(getattr(self, each.name) for each in fields(self))

    @property
    def shown(self) -> dict[str, int]:
        """The fates as a line shows them: the first three always, others if there are any."""
        known = {each.name: int(getattr(self, each.name)) for each in fields(self)}
        always = {"learnt", "waiting", "lost"}
        return {fate: n for fate, n in known.items() if n or fate in always}

    @property
    def given_up(self) -> RowAccount:
        """The same, where what waits is lost."""
        return replace(self, waiting=0, lost=self.lost + self.waiting)

    def __add__(self, other: Self) -> RowAccount:
        """Return the sum, fate by fate."""
        names = (each.name for each in fields(self))
        return RowAccount(**{name: getattr(self, name) + getattr(other, name) for name in names})


def advice(account: RowAccount, *, has_parent: bool, unsettled: int) -> str:
    """Return what a person may do about rows that are not learnt, in one line; empty if nothing.

    has_parent : whether the running incarnation has ever reached a parent
    unsettled : readings that wait for the fleet to settle its schema
    """
    if account.lost:
        if has_parent:
            return "see the lines above that begin with `lost`"
        return "check the way to the parent: what a client reads before it reaches one is lost"
    if unsettled:
        return (
            "the fleet still measures its scaling (scaling_rows at the root): what waits is learnt"
            " when the client is started again after that"
        )
    if account.waiting:
        return "start the client again when it can reach its parent: it then sends what waits"
    return ""
