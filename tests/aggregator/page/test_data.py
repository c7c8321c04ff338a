"""What the page's scripts draw: nodes, the model, and who may have which of it."""

from __future__ import annotations

import gzip
from contextlib import closing
from functools import partial
from http.client import HTTPConnection

import numpy as np
import pytest

from submerge.aggregator.plan import GroupPlan
from submerge.protocol.alarm_status import Waiting
from submerge.protocol.machine import SetQuarantine
from submerge_aggregator.page import data
from support import house
from support.alarmed import alarm_status
from support.paged import Paged
from support.patience import PATIENCE_S

ROWS = np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture
def paged(tmp_path):
    with Paged(tmp_path) as paged:
        paged.house.hears("c", ROWS)
        yield paged


def test_a_node_comes_with_its_row_of_the_fleet(paged):
    """What the fleet's list says of a node, its own view says too."""
    said = paged.get("/data/node/room?node=c").json
    (row,) = paged.get("/data/fleet/room").json["rows"]

    assert row | {"heard_s": 0} == said["row"] | {"heard_s": 0}
    assert ["c", 60] == [said["view"]["node"], said["view"]["rows"][0]["learnt"]]


def test_the_sentences_on_a_group_are_as_old_as_its_nodes(paged):
    """Asked for apart, one would say that nothing is judged yet beside another on limits."""
    paged.house.hears("c", ROWS, alarm_status=alarm_status(provisional_rows=300.0))
    said = paged.get("/data/fleet/room").json
    paged.house.hears("c", ROWS, alarm_status=alarm_status())

    assert 300.0 == said["watches"][0]["watch"]["provisional_rows"]
    assert said == paged.get("/data/fleet/room").json


def test_a_node_without_limits_says_when_it_has_them(paged):
    """As its rows have come so far; what it waits for is as old as its last report, and says so."""
    waiting = alarm_status(state="learning", waiting=Waiting("limits", 16, 64))
    paged.house.passes(120.0)
    paged.house.hears("c", ROWS, alarm_status=waiting)
    paged.house.passes(10.0)
    said = paged.get("/data/node/room?node=c").json
    row, last = said["row"], said["view"]["rows"][0]

    a_row = (last["as_of_s"] - last["created_s"]) / last["learnt"]
    assert row["ready_in_s"] == pytest.approx(48 * a_row - 10.0, abs=0.2)
    assert "waiting for enough scores: 16 of 64 rows, as last heard" == row["note"]
    assert not row["judged"]
    paged.house.passes(3600.0)
    assert 0.0 == paged.get("/data/node/room?node=c").json["row"]["ready_in_s"]


def test_a_node_of_a_group_without_a_model_says_when_it_has_limits(tmp_path, monkeypatch):
    """The group needs 60 rows, and each of two nodes brings half of what is missing."""
    monkeypatch.setattr(house, "GroupPlan", partial(GroupPlan, min_rows=60))
    with Paged(tmp_path) as paged:
        paged.house.passes(100.0)
        for name in ("a", "b"):
            paged.house.hears(name, ROWS[:10], alarm_status=alarm_status(state="learning"))
        (group,) = paged.get("/data/fleet/room").json["watches"]
        rows = paged.get("/data/fleet/room").json["rows"]
        (last,) = paged.get("/data/node/room?node=a").json["view"]["rows"]

        a_row = (last["as_of_s"] - last["created_s"]) / 10
        assert 40 == group["missing"]
        assert [pytest.approx((20 + 64) * a_row, rel=0.01)] * 2 == [r["ready_in_s"] for r in rows]


@pytest.mark.parametrize(
    ("state", "more", "judged"),
    [
        ("armed", {}, True),
        ("learning", {"provisional_rows": 300.0}, True),
        ("learning", {}, False),
        ("stale", {"provisional_rows": 300.0}, False),
    ],
)
def test_a_node_is_judged_while_its_rows_are_held_against_limits(paged, state, more, judged):
    """A silent machine does not count as one without an alarm: its state is not known."""
    paged.house.hears("c", ROWS, alarm_status=alarm_status(state=state, **more))
    assert judged == paged.get("/data/node/room?node=c").json["row"]["judged"]

    paged.house.passes(2 * 900.0)
    assert not paged.get("/data/node/room?node=c").json["row"]["judged"]


def test_a_node_that_is_unknown_is_null(paged):
    """It was forgotten, or reports elsewhere: that is no error."""
    said = paged.get("/data/node/room?node=nowhere").json

    assert [None, None] == [said["row"], said["view"]]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("node=", 400),
        ("node=%3Cb%3E", 400),
        ("node=c&path=a%2F%3Cb%3E", 400),
        ("node=c&path=nowhere", 503),
    ],
)
def test_a_question_that_is_none_is_refused(paged, query, status):
    assert status == paged.get(f"/data/node/room?{query}").status


def test_a_node_holds_several_states_and_shows_the_worst(paged):
    """Health lists it under each; the fleet sorts it by one."""
    paged.house.does(paged.house.server.ask(lambda *_: None, SetQuarantine("room", "c")))
    paged.house.passes(2 * 900.0)

    row = paged.get("/data/node/room?node=c").json["row"]
    assert ["silent", ["silent", "quarantined"]] == [row["state"], row["holds"]]


@pytest.mark.parametrize(
    ("order", "scope"),
    [
        ("/api/alarms/room/c-1/accept", "judge"),
        ("/api/alarms/room/c-1/reject", "judge"),
        *(
            (f"/api/nodes/room/c/{verb}", "operate")
            for verb in ("pause", "resume", "quarantine", "release", "forget", "drill")
        ),
        ("/api/bans/c/ban", "operate"),
        ("/api/bans/c/unban", "operate"),
    ],
)
def test_each_order_of_the_page_needs_its_scope(paged, order, scope):
    """The page's own table of scopes only greys buttons: the aggregator decides."""
    less = {"judge": "read", "operate": "judge"}[scope]
    paged.logs_in(less, "less")
    refused = paged.post(f"{order}?anyway=1" if "bans" not in order else order)
    assert (403, f"this needs scope {scope}, yours is {less}") == (
        refused.status,
        refused.json["error"],
    )

    paged.logs_in(scope, "enough")
    allowed = paged.post(f"{order}?anyway=1" if "bans" not in order else order)
    assert allowed.status in (200, 404)  # 404: nothing to take back


def test_a_group_that_is_unknown_is_refused(paged):
    for path in ("/data/model/nowhere", "/data/node/nowhere?node=c", "/data/fleet/nowhere"):
        assert 404 == paged.get(path).status


def test_many_pages_cost_one_compression(paged, monkeypatch):
    """A large fleet takes the event loop long enough to compress it once."""
    monkeypatch.setattr(data, "LEAST_COMPRESSED", 1)
    calls, compress = [], gzip.compress
    monkeypatch.setattr(gzip, "compress", lambda *a, **k: calls.append(a) or compress(*a, **k))
    bodies = []
    for _ in range(2):
        with closing(HTTPConnection("127.0.0.1", paged.port, timeout=PATIENCE_S)) as connection:
            headers = {"accept-encoding": "gzip", "cookie": paged.cookie}
            connection.request("GET", "/data/fleet/room", headers=headers)
            bodies.append(gzip.decompress(connection.getresponse().read()))

    assert b'"group":"room"' in bodies[0]
    assert bodies[0] == bodies[1]
    assert 1 == len(calls)
