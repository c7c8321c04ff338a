"""Scores of all nodes below, for all who look: asked for once, the worst first, in bounded size."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import msgspec
import pytest

from submerge_aggregator.history.file import NodeLevels, ScoresPage
from submerge_aggregator.page import watched
from submerge_aggregator.page.calls import CallRefused
from submerge_aggregator.page.fleet_tree import FleetRow, FleetTree, FleetTrees, row_of
from submerge_aggregator.page.watched import FRESH_SCORES_S, ScoreTrees, step_of
from submerge_aggregator.questions.views import NodeView

NOON = 1_699_999_980.0


def row(under: str, node: str, kind: str) -> FleetRow:
    view = NodeView("g", node, kind, (), (), banned=False, quarantined=False)  # type: ignore[arg-type]
    return row_of(view, under, NOON)


FLEET = [
    row("", "site", "aggregator"),
    row("site", "room", "aggregator"),
    row("site", "mute", "aggregator"),
    row("site/room", "c", "client"),
]


class Fleet:
    """A fleet that says what it is told to; `asked` has each request."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.at = NOON

    async def get(self, path: str, /, **query: str) -> bytes:
        self.asked.append({"topic": path.split("/")[1], **query})
        if query["path"] == "site/mute":
            raise CallRefused(503, "mute did not reply within 10 s")
        level = {"": 20, "site": 90, "site/room": 200}[query["path"]]
        step = int(query["step"])
        # A clock below may be a step ahead, or behind.
        steps = {"": 96, "site": 97, "site/room": 95}[query["path"]]
        first, more = f"n{level}", query["path"] == "site" and not query["after"]
        name = first if not query["after"] else "z"
        nodes = [NodeLevels(name, bytes([1, level]) + bytes(steps - 2))]
        since = int(query["since"]) // step * step
        return msgspec.json.encode(ScoresPage("who", "g", step, since, nodes, more))

    async def tree(self, group: str) -> FleetTree:
        return FleetTree(group, self.at, msgspec.Raw(b"[]"), FLEET)

    def wall(self) -> float:
        return self.at


def trees_of(fleet: Fleet) -> ScoreTrees:
    trees = FleetTrees(fleet, fleet.wall)
    trees.tree = fleet.tree  # type: ignore[method-assign]
    return ScoreTrees(fleet, trees, fleet.wall)


def body(trees: ScoreTrees, hours: int = 24) -> Any:
    return json.loads(asyncio.run(trees.body("g", hours)))


def test_all_levels_of_the_tree_are_asked_page_by_page() -> None:
    """Each aggregator for its own nodes; one that is mute is named, and the rest is shown."""
    fleet = Fleet()
    found = body(trees_of(fleet))

    assert [("site/room", "n200"), ("site", "n90"), ("site", "z"), ("", "n20")] == [
        (each["under"], each["node"]) for each in found["nodes"]
    ]
    assert ["site/mute: mute did not reply within 10 s"] == found["silent"]
    assert {96} == {len(base64.b64decode(each["levels"])) for each in found["nodes"]}
    assert (NOON, False) == (found["at"], found["more"])
    assert found["first_s"] <= NOON - 23 * 3600
    assert found["first_s"] + 96 * found["step_s"] > NOON


def test_many_who_look_cost_as_much_as_one() -> None:
    """A picture is kept for a minute, and asked for once by all who ask at one time."""
    fleet = Fleet()
    trees = trees_of(fleet)

    async def five() -> set[bytes]:
        return set(await asyncio.gather(*(trees.body("g", 24) for _ in range(5))))

    assert 1 == len(asyncio.run(five()))
    once = len(fleet.asked)
    fleet.at += FRESH_SCORES_S - 1
    body(trees)
    assert once == len(fleet.asked)
    fleet.at += 1
    body(trees)
    assert 2 * once == len(fleet.asked)


def test_the_worst_are_shown_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that there are more."""
    monkeypatch.setattr(watched, "MOST_SHOWN", 2)
    found = body(trees_of(Fleet()))

    assert ["n200", "n90"] == [each["node"] for each in found["nodes"]]
    assert found["more"]


@pytest.mark.parametrize("hours", [1, 2, 5, 24, 100, 168])
def test_a_picture_has_no_more_steps_than_it_can_draw(hours: int) -> None:
    """Steps are whole minutes; there are 96 at most, and they reach back far enough."""
    step = step_of(hours)

    assert 0 == step % 60
    assert hours * 3600 <= step * 96 < hours * 3600 + 96 * 60
