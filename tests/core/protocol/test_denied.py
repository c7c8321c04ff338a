"""A node that its parent denies says so in its log, loses nothing, and asks ever more rarely."""

from __future__ import annotations

from typing import Any

import pytest

from submerge.protocol.messages import Answer, Join, Joined, Reason, Report
from support.nodes import Inbound, Table

WHY = ("its role is client, and this message is an aggregator's",)
HOURS = 6 * 3600.0


class Denying(Table):
    """A table at which the root's worker denies what one node says, before the machine hears it."""

    denied: str = ""
    tries: list[float]

    def deliver(self, letter: Inbound) -> None:
        message = letter.message
        if letter.to != "r" or letter.source != self.denied:
            super().deliver(letter)
            return
        self.tries.append(self.time)
        root, fence = self.hosts["r"].node, message.fence  # type: ignore[union-attr]
        answer: Any = (
            Joined(message.stamp, Reason.DENIED, fence, root.incarnation, True, 0, b"", WHY)
            if isinstance(message, Join)
            else Answer(message.stamp, Reason.DENIED, fence, root.incarnation, True)  # type: ignore[union-attr]
        )
        super().deliver(Inbound("r", letter.source, answer))


def fleet() -> Denying:
    table = Denying()
    table.tries = []
    table.root("r")
    return table


@pytest.mark.parametrize("node", ["client", "aggregator"])
def test_a_join_that_is_denied_is_said_and_tried_ever_more_rarely(node):
    """With the lines of the answer; the wait grows to its longest."""
    table = fleet()
    table.denied = "c"
    host = table.client("c", under="r") if node == "client" else table.aggregator("c")
    table.passes(HOURS)
    waits = [later - before for before, later in zip(table.tries, table.tries[1:], strict=False)]
    notes = [note for note in host.notes if note.what == "join refused"]

    assert len(notes) == len(table.tries)
    assert ("DENIED", WHY) == (notes[0].facts["reason"], tuple(notes[0].facts["lines"]))
    assert Reason.DENIED.value == notes[0].facts["meaning"]
    assert len(table.tries) < HOURS / 120
    assert sum(waits[-3:]) > 3 * max(waits[:2])


def test_reports_that_are_denied_keep_their_readings_and_arrive_later():
    """A role that an operator takes away for hours, and gives back."""
    table = fleet()
    host = table.client("c", under="r")
    table.reads("c", 3)
    table.passes(600.0)
    table.denied = "c"
    table.reads("c", 4)
    table.passes(HOURS)
    tries = len(table.tries)
    assert "report refused" in [note.what for note in host.notes]
    assert 3 == table.hosts["r"].counted
    table.denied = ""
    table.passes(HOURS)

    assert 7 == table.hosts["r"].counted
    assert tries < HOURS / 120
    assert isinstance(table.reports("c")[-1], Report)
