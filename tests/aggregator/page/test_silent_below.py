"""Aggregators that do not reply do not keep the rest of a fleet from being shown."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from submerge_aggregator.history.file import NodeLevels, ScoresPage
from submerge_aggregator.page import fleet_tree
from submerge_aggregator.page.fleet_tree import NOT_ASKED, FleetTrees
from submerge_aggregator.page.watched import ScoreTrees
from submerge_aggregator.questions.views import NodesPage, NodeView

NOON = 1_700_000_000.0
BELOW = [f"a{i}" for i in range(3)]


class Calls:
    """A root that says that aggregators report to it; they are asked in vain."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(self, path: str, /, **query: str) -> bytes:
        if path == "/alarm-status":
            return b"[]"
        self.asked.append(query["path"])
        if path.startswith("/tree"):
            nodes = [NodeView("g", each, "aggregator", (), (), False, False) for each in BELOW]
            return msgspec.json.encode(NodesPage("root", "g", nodes, more=False))
        step = int(query["step"])
        levels = [NodeLevels("n", b"\x09")]
        since = int(query["since"]) // step * step
        return msgspec.json.encode(ScoresPage("root", "g", step, since, levels))


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """No time is left once the root has said what it has."""
    monkeypatch.setattr(fleet_tree, "ASKS_S", 0.0)
    return Calls()


def test_no_aggregator_is_asked_after_a_while(late: Calls) -> None:
    """What is known is shown, and who was not asked is named."""
    tree = asyncio.run(FleetTrees(late, lambda: NOON).tree("g"))

    assert [""] == late.asked
    assert BELOW == [row.node for row in tree.rows]
    assert [f"{each}: {NOT_ASKED}" for each in BELOW] == tree.silent


def test_no_aggregator_is_asked_for_scores_after_a_while(late: Calls) -> None:
    trees = FleetTrees(late, lambda: NOON)
    body = asyncio.run(ScoreTrees(late, trees, lambda: NOON).body("g", 24))
    found = msgspec.json.decode(body)

    assert ["", ""] == late.asked
    assert ["n"] == [each["node"] for each in found["nodes"]]
    assert [f"{each}: {NOT_ASKED}" for each in BELOW] == found["silent"]
