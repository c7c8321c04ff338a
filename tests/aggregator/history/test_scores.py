"""Scores over time: from a report's trail to the file, the admin API and the page."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from submerge.protocol.score_trail import ScoreTrail
from submerge_aggregator.http import admin
from submerge_aggregator.page.calls import InsideCalls
from submerge_aggregator.page.fleet_tree import FleetTrees
from submerge_aggregator.page.watched import ScoreTrees
from support.house import House
from support.nodes import GROUP
from support.paged import Paged

MIB = 1 << 20
ROWS = np.random.default_rng(0).normal(size=(50, 6))


def minute(house: House) -> int:
    return int(house.time().wall // 60)


def levels(house: House, *, since_min: int, step_s: int = 60, **query: str) -> dict[str, list[int]]:
    """Return what the admin API says of each node."""
    more = "".join(f"&{key}={value}" for key, value in query.items())
    page = house.asks("GET", f"/scores/{GROUP}?since={since_min * 60}&step={step_s}{more}")
    assert page.status == 200, page.body
    return {each["node"]: decoded(each) for each in page.json["nodes"]}


def decoded(each: Any) -> list[int]:
    return list(base64.b64decode(each["levels"]))


def test_the_trail_of_a_report_can_be_asked_for(tmp_path: Path) -> None:
    """A report's trail is in the history, minute by minute, up to now."""
    with House(tmp_path, history_bytes=MIB) as house:
        now = minute(house)
        house.hears("c", ROWS, trail=ScoreTrail(now, bytes([100, 120, 140])))

        assert {"c": [0, 100, 120, 140]} == levels(house, since_min=now - 3)


def test_trails_that_overlap_change_nothing_twice(tmp_path: Path) -> None:
    """Of a minute that two reports tell of, the higher level is kept."""
    with House(tmp_path, history_bytes=MIB) as house:
        now = minute(house)
        house.hears("c", ROWS, trail=ScoreTrail(now, bytes([100, 120, 140])))
        house.hears("c", ROWS, trail=ScoreTrail(now, bytes([120, 150])))
        house.hears("c", ROWS, trail=ScoreTrail(now, bytes([120, 150])))

        assert {"c": [100, 120, 150]} == levels(house, since_min=now - 2)


def test_a_step_has_the_highest_level_of_its_minutes(tmp_path: Path) -> None:
    """Longer steps hide no peak."""
    with House(tmp_path, history_bytes=MIB) as house:
        now = minute(house) // 5 * 5 - 1
        house.hears("c", ROWS, trail=ScoreTrail(now, bytes([9, 10, 200, 10, 10, 30, 20])))

        found = levels(house, since_min=now - 9, step_s=300)["c"]

        assert [10, 200] == found[:2]


def test_a_wild_clock_writes_only_near_now(tmp_path: Path) -> None:
    """A node whose clock is years off is shown by our clock; a trail of long ago is not."""
    with House(tmp_path, history_bytes=MIB) as house:
        now, ahead = minute(house), 10**6
        wrong = house.time().wall + ahead * 60
        trail = ScoreTrail(now + ahead, b"\x64\x78")
        house.hears("ahead", ROWS, trail=trail, as_of=wrong, synced=False)
        house.hears("synced", ROWS, trail=trail)
        house.hears("old", ROWS, trail=ScoreTrail(now - 500, b"\x64\x78"))

        assert {"ahead": [100, 120]} == levels(house, since_min=now - 1)


def test_pages_of_many_nodes_follow_one_another(tmp_path: Path) -> None:
    """A page has so many nodes as a reply has room for; the next one begins after its last."""
    with House(tmp_path, history_bytes=MIB) as house:
        now = minute(house)
        names = [f"n{i:03}" for i in range(40)]
        for name in names:
            house.hears(name, ROWS, trail=ScoreTrail(now, b"\x64"))
        found, after, pages = list[str](), "", 0
        while pages < 10:
            where = f"/scores/{GROUP}?since={(now - 1999) * 60}&step=60{after}"
            page = house.asks("GET", where)
            assert len(page.body) <= 64 << 10
            found += [each["node"] for each in page.json["nodes"]]
            pages, after = pages + 1, f"&after={found[-1]}"
            if not page.json["more"]:
                break

        assert names == found
        assert 1 < pages < 10
        assert ["n007"] == list(levels(house, since_min=now, node="n007"))


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("step=61", "multiple"),
        ("step=0", "multiple"),
        ("since=0&step=60", "2016"),
        ("since=-1", "whole"),
    ],
)
def test_what_no_page_can_have_is_refused(tmp_path: Path, query: str, word: str) -> None:
    """A question for too many steps, or for odd ones, is refused in one line."""
    with House(tmp_path, history_bytes=MIB) as house:
        answer = house.asks("GET", f"/scores/{GROUP}?{query}")

        assert 400 == answer.status
        assert word in answer.json["error"]


def test_without_a_history_it_is_said(tmp_path: Path) -> None:
    """An aggregator that keeps none says so."""
    with House(tmp_path) as house:
        answer = house.asks("GET", f"/scores/{GROUP}")

        assert 503 == answer.status
        assert "no history is kept here" == answer.json["error"]


def test_the_page_has_the_worst_first(tmp_path: Path) -> None:
    """The page's scores are of all nodes, in steps of 15 minutes for a day, the worst first."""
    with House(tmp_path, history_bytes=MIB) as house:
        now = minute(house)
        for node, level in {"a": 90, "b": 200, "c": 128}.items():
            house.hears(node, ROWS, trail=ScoreTrail(now, bytes([level])))
        tree = house.does(collected(house, hours=24))

        assert ["b", "c", "a"] == [each["node"] for each in tree["nodes"]]
        assert 200 == decoded(tree["nodes"][0])[-1]
        assert {96} == {len(decoded(each)) for each in tree["nodes"]}
        assert (900, []) == (tree["step_s"], tree["silent"])
        assert 0 == tree["first_s"] % 900


@pytest.mark.parametrize("hours", [0, 169])
def test_the_page_shows_a_week_at_most(tmp_path: Path, hours: int) -> None:
    """A page asks for one hour to 168; anything else is refused."""
    with Paged(tmp_path, history_bytes=MIB) as paged:
        assert 400 == paged.get(f"/data/scores/{GROUP}?hours={hours}").status
        assert 200 == paged.get(f"/data/scores/{GROUP}?hours=168").status


async def collected(house: House, hours: int) -> Any:
    calls, wall = InsideCalls(admin.api(house.server)), lambda: house.time().wall
    trees = ScoreTrees(calls, FleetTrees(calls, wall), wall)
    return json.loads(await trees.body(GROUP, hours))


def test_a_batch_that_is_taken_back_leaves_nothing(tmp_path: Path) -> None:
    """What the store's disk refuses is in no history: it was not acknowledged."""
    with House(tmp_path, history_bytes=MIB) as house:
        now = minute(house)
        house.hears("c", ROWS, trail=ScoreTrail(now, b"\x64"))
        with house.disk.full():
            house.hears("d", ROWS, trail=ScoreTrail(now, b"\x64"))
        house.passes(10.0)

        assert {"c"} == set(levels(house, since_min=now))
