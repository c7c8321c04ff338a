"""Bans by the admin API: in every group, known node or not, and where the order has not arrived."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.messages import Reason
from submerge_aggregator.questions import survey
from submerge_aggregator.store import Store
from submerge_client import logs
from submerge_proto.kept import records
from support.house import House

ROWS = np.random.default_rng(0).normal(size=(60, 6))
GROUPS = ("attic", "room")


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    with House(tmp_path, groups=GROUPS) as house:
        yield house


def test_a_ban_holds_in_every_group_and_is_kept(house):
    """Also of a node that never reported; nothing but the order is stored."""
    assert {"node": "c", "banned": True, "on_its_way": []} == house.asks("POST", "/bans/c/ban").json
    refused = [house.hears("c", ROWS, group=group).reason for group in GROUPS]

    assert [Reason.BANNED] * 2 == refused
    assert ["c"] == [view["node"] for view in house.asks("GET", "/bans").json]
    house.ends()
    with closing(Store(house.store)) as store:
        kept = records.unpack_all(store.load())
    assert {frozenset({"c"})} == {kept["banned", group] for group in GROUPS}
    assert {True} == {kept["wishes", group]["c"].banned for group in GROUPS}


def test_it_is_taken_back(house):
    house.hears("c", ROWS)
    house.asks("POST", "/bans/c/ban")
    assert Reason.BANNED is house.hears("c", ROWS).reason
    assert not house.asks("POST", "/bans/c/unban").json["banned"]

    assert Reason.ACK is house.hears("c", ROWS).reason
    assert [] == house.asks("GET", "/bans").json


def test_an_aggregator_that_has_not_confirmed_is_named(house):
    """Until its report says that it has heard."""
    fence = b"\1" * 16
    house.joins("site", fence)
    house.hears("site", ROWS, fence=fence)
    after = house.asks("POST", "/bans/c/ban").json
    answer = house.hears("site", ROWS, fence=fence)
    (desired,) = answer.desired_states
    heard = AlarmStatus((0,) * 5, desired=desired.number)
    house.hears("site", ROWS, fence=fence, alarm_status=heard)

    assert ["site"] == after["on_its_way"]
    assert ("c", True) == (desired.node, desired.banned)
    assert [[]] == [view["on_its_way"] for view in house.asks("GET", "/bans").json]


def test_a_banned_node_is_listed_once(house):
    """Where it has rows; or, if it has none, in one group."""
    house.hears("c", ROWS)
    for node in ("c", "d"):
        house.asks("POST", f"/bans/{node}/ban")
    views = house.asks("GET", "/nodes").json

    assert [("attic", "d"), ("room", "c")] == [(view["group"], view["node"]) for view in views]
    assert all(view["banned"] for view in views)
    assert 2 == len(house.asks("GET", "/nodes?group=attic").json)


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/bans/c/unban", 404, "c is not banned here; no node is. Take"),
        ("/bans/root/ban", 400, "root is this aggregator: ban it at its parent"),
        ("/bans/c/forbid", 404, "expected ban or unban, got 'forbid'"),
        ("/bans/a b/ban", 400, "a name"),
    ],
)
def test_what_cannot_be_is_one_line(house, path, status, why):
    answer = house.asks("POST", path)

    assert status == answer.status
    assert why in answer.json["error"]


def test_bans_are_bounded(house, monkeypatch):
    """None is forgotten for another: the order is refused."""
    monkeypatch.setattr(survey, "MOST_BANNED", 1)
    house.asks("POST", "/bans/c/ban")

    assert 200 == house.asks("POST", "/bans/c/ban").status
    assert "at most 1 nodes" in house.asks("POST", "/bans/d/ban").json["error"]


def test_the_log_says_what_the_operator_did(house, capsys):
    logs.begin("info", as_json=False)
    house.asks("POST", "/bans/c/ban")

    assert "operator command verb=ban node=c by=unknown address=socket" in capsys.readouterr().err
