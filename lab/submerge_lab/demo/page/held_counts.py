"""What aggregators say that they hold, as the demo's books read it from their admin API."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from submerge import SubmergeError
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import UnixSocket

EVERY_S = 1.0
"""Between two rounds of questions."""


class HeldRow(msgspec.Struct, frozen=True):
    """The newest report of one incarnation."""

    incarnation: str
    seq: int
    learnt: int
    withheld: int
    lost: int

    @property
    def readings(self) -> int:
        """Readings that it counts."""
        return self.learnt + self.withheld

    @property
    def generated(self) -> int:
        """Those, and what it declares as lost."""
        return self.readings + self.lost


class HeldPast(msgspec.Struct, frozen=True):
    """The sum over incarnations that are over."""

    learnt: int
    withheld: int
    lost: int

    @property
    def readings(self) -> int:
        """Readings that it counts."""
        return self.learnt + self.withheld


class HeldNode(msgspec.Struct, frozen=True):
    """A child, as its aggregator holds it."""

    node: str
    rows: tuple[HeldRow, ...] = ()
    sealed: tuple[HeldPast, ...] = ()

    @property
    def readings(self) -> int:
        """Readings of all its incarnations."""
        return sum(row.readings for row in self.rows) + sum(old.readings for old in self.sealed)

    @property
    def lost(self) -> int:
        """Readings that it has declared as lost."""
        return sum(row.lost for row in self.rows) + sum(old.lost for old in self.sealed)


read_nodes = msgspec.json.Decoder(list[HeldNode]).decode

Answers = Mapping[str, dict[str, HeldNode] | None]
"""By aggregator: its children by their names; None if it did not answer."""


class Round(NamedTuple):
    """One round of questions.

    number : counts from 1
    answers : Answers
    """

    number: int
    answers: Answers


class AuditThread(threading.Thread):
    """Asks all aggregators, the one that is to be compared with the others first.

    sockets : The aggregators' sockets by name, the root first: what it holds, others hold already
        when they are asked.

    rounds : Answers.
    """

    def __init__(self, sockets: Mapping[str, Path], group: str) -> None:
        super().__init__(name="audit", daemon=True)
        self.rounds: queue.SimpleQueue[Round] = queue.SimpleQueue()
        self._sockets, self._group = dict(sockets), group
        self._wanted: queue.SimpleQueue[int] = queue.SimpleQueue()

    def ask(self, number: int) -> None:
        """Begin a round; 0 ends the thread."""
        self._wanted.put(number)

    def run(self) -> None:
        """Answer until the end."""
        while number := self._wanted.get():
            answers = {name: self._held(path) for name, path in self._sockets.items()}
            self.rounds.put(Round(number, answers))

    def _held(self, path: Path) -> dict[str, HeldNode] | None:
        try:
            answer = AdminClient(UnixSocket(path)).get("nodes", group=self._group)
            return {each.node: each for each in read_nodes(answer)}
        except (SubmergeError, msgspec.MsgspecError):
            return None
