"""SelfCheck: a message is read before it is sent, as its receivers will read it.

Nodes are left out until it is readable; as many as possible are taken in again, by halves. The
others are quarantined, also if the search was cut at `MOST_TRIALS`: so the next has fewer to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from submerge.aggregator.plan import Objection
from submerge.aggregator.rows.ledger import Ledger
from submerge.errors import SubmergeError
from submerge.protocol.machine import Note
from submerge.protocol.messages import Model, Report

MOST_TRIALS = 64  # Messages that are made to find culprits. One among a thousand nodes takes 20.

UNSENT = {Model: "model rejected", Report: "own report rejected"}
"""What a note says; a person has to act."""


Said = TypeVar("Said", Model, Report)

MERGE_ERRORS = (SubmergeError, ValueError, ArithmeticError)
"""What merging raises for numbers that it cannot merge: `LinAlgError` is a ValueError."""


class CheckResult(NamedTuple):
    """The result of a check: what can be read, without the culprits; `why` all nodes' could not."""

    made: Any
    why: str | None
    culprits: tuple[str, ...] = ()


class SelfCheck:
    """Reads what one group is about to send; without an `objection` it reads nothing."""

    def __init__(self, objection: Objection | None) -> None:
        self._objection = objection
        self.changed: set[str] = set()  # nodes whose rows changed since the last readable message

    def made(
        self,
        make: Callable[[], Any],
        leave_out: Callable[[frozenset[str]], None],
        ledger: Ledger | None,
    ) -> CheckResult:
        """Return a message that can be read, and whose rows were left out; the caller ends that."""
        made, why = self._attempt(make)
        if why is None:
            self.changed.clear()
            return CheckResult(made, None)
        known = set() if ledger is None else {node for node, _ in [*ledger.rows, *ledger.sealed]}
        for candidates in (sorted(self.changed & known), sorted(known)):
            search = _Search(lambda: self._attempt(make), leave_out, candidates)
            if search.readable:
                self.changed.clear()
                search.narrow()
                return CheckResult(search.made, why, tuple(search.culprits))
        return CheckResult(None, why)

    def _attempt(self, make: Callable[[], Any]) -> tuple[Any, str | None]:
        """Return a message, and why it cannot be read."""
        if self._objection is None:
            return make(), None
        try:
            made = make()
        except MERGE_ERRORS as error:
            return None, f"{type(error).__name__}: {error}"
        return made, None if made is None else self._objection(made)


class _Search:
    """Looks for the fewest nodes without which a message is `readable`; `made` is the newest."""

    def __init__(
        self,
        attempt: Callable[[], tuple[Any, str | None]],
        leave_out: Callable[[frozenset[str]], None],
        candidates: Sequence[str],
    ) -> None:
        self._attempt, self._leave_out = attempt, leave_out
        self._out, self._trials = frozenset(candidates), MOST_TRIALS
        self.culprits: list[str] = []
        self.made: Any = None
        self.readable = bool(candidates) and self._try(self._out)

    def narrow(self) -> None:
        """Take in again all candidates that can be."""
        self._halve(sorted(self._out))
        if self._trials <= 0:
            # Not all were tried: no message is made of some of the innocent only.
            self.made = None

    def _halve(self, names: Sequence[str]) -> None:
        """Take in some of the names, which cannot all be taken in together."""
        if len(names) == 1:
            self.culprits += names
            return
        middle = len(names) // 2
        for half in (names[:middle], names[middle:]):
            if self._trials > 0 and not self._try(self._out - set(half)):
                self._halve(half)

    def _try(self, out: frozenset[str]) -> bool:
        """Leave these nodes out; return whether the message can be read then."""
        self._trials -= 1
        self._leave_out(out)
        made, why = self._attempt()
        if why is None:
            self._out, self.made = out, made
        return why is None


def rejection_note(group: str, kind: type[Model | Report], finding: CheckResult) -> Note:
    """Return the note on a message that was not sent: whose rows it was, and what to do."""
    facts: dict[str, Any] = {"group": group, "why": finding.why}
    if finding.culprits:
        facts["nodes"] = finding.culprits
        facts["meaning"] = "no node could have read it; their rows are kept, and leave the model"
        facts["todo"] = "look at these nodes, and report this to the maintainers of submerge"
    else:
        facts["meaning"] = "no node could read it, whichever rows are left out; the last one stays"
        facts["todo"] = "please report it to the maintainers of submerge"
    return Note(UNSENT[kind], facts, "error")
