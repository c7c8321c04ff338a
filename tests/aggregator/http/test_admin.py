"""The admin API: who reports, the newest model, and changes of a node."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from submerge.protocol.messages import Counts, Reason
from submerge_aggregator.store import Store
from submerge_client import logs
from submerge_proto.kept import records
from submerge_proto.wire import codec
from support.house import RANK, SCHEMA, House
from support.nodes import EPOCH, new_incarnation

ROWS = np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    with House(tmp_path) as house:
        yield house


def counted(house: House) -> int:
    """Readings in the newest model, a minute from now."""
    house.passes(61.0)
    return codec.decode("watch", house.asks("GET", "/model/room").body).counts.learnt


def test_it_says_which_aggregator_it_is(house):
    about = house.asks("GET", "/").json

    assert ("root", True, True, ["room"]) == tuple(
        about[key] for key in ("node", "top", "settled", "groups")
    )


def test_nodes_are_listed_with_their_rows(house):
    """All content of a node's report, and how long ago it came."""
    house.hears("c", ROWS, counts=Counts(60, 2, 1), lifetime=70, version=7)
    house.hears("b", ROWS)
    house.time.steady += 40.0
    b, c = house.asks("GET", "/nodes").json

    assert ("b", "c") == (b["node"], c["node"])
    assert ("room", "client", [], False, False) == tuple(
        c[key] for key in ("group", "kind", "sealed", "banned", "quarantined")
    )
    (row,) = c["rows"]
    expected = {
        "incarnation": str(new_incarnation(1)),
        "created_s": EPOCH + 0.001,
        "seq": 1,
        "learnt": 60,
        "withheld": 2,
        "lost": 1,
        "lifetime": 70,
        "silent_s": 40.0,
        "as_of_s": EPOCH + 100,
        "model_version": 7,
        "final": False,
        "schema": "current",
    }
    assert expected == {key: row[key] for key in expected}
    assert row["software"].startswith("submerge ")


def test_what_a_life_has_left_is_listed_as_sealed(house):
    """A final row is folded away; its readings still count."""
    house.hears("c", ROWS, final=True)
    house.hears("c", ROWS[:20], incarnation=new_incarnation(2))
    (c,) = house.asks("GET", "/nodes").json

    assert [60] == [sealed["learnt"] for sealed in c["sealed"]]
    assert [20] == [row["learnt"] for row in c["rows"]]


def test_an_aggregator_below_is_listed_as_one(house):
    fence = b"\1" * 16
    house.joins("a", fence)
    house.hears("a", ROWS, fence=fence)

    (a,) = house.asks("GET", "/nodes").json
    assert "aggregator" == a["kind"]


def test_one_group_or_one_node_may_be_asked_for(tmp_path):
    with House(tmp_path, groups=("room", "hall")) as house:
        house.hears("c", ROWS)
        house.hears("c", ROWS, group="hall")
        house.hears("d", ROWS, group="hall")

        def listed(query: str) -> list[str]:
            views = house.asks("GET", f"/nodes{query}").json
            return [f"{view['group']}/{view['node']}" for view in views]

        assert ["hall/c", "hall/d", "room/c"] == listed("")
        assert ["hall/c", "hall/d"] == listed("?group=hall")
        assert ["hall/c", "room/c"] == listed("?node=c")
        assert ["room/c"] == listed("?group=room&node=c")
        assert [] == listed("?node=e")


def test_the_model_comes_as_it_travels(house):
    """Protobuf, as a child gets it: float32 columns and all."""
    house.hears("c", ROWS)
    house.passes(61.0)
    answer = house.asks("GET", "/model/room")
    model = codec.decode("watch", answer.body)

    assert "application/x-protobuf" == answer.headers["content-type"]
    assert (SCHEMA.canonical, 60, 1) == (model.schema, model.counts.learnt, model.nodes)
    assert model.summary.rank >= RANK


def test_a_forgotten_node_is_as_if_it_had_never_been(house):
    """Answered after the commit: a copy of the store that is read now has no such row."""
    house.hears("c", ROWS)
    house.hears("d", ROWS[:9])
    assert 69 == counted(house)

    answer = house.asks("POST", "/nodes/room/c/forget")
    assert (200, [], []) == (answer.status, answer.json["rows"], answer.json["sealed"])
    assert ["d"] == [view["node"] for view in house.asks("GET", "/nodes").json]
    assert 9 == counted(house)
    assert Reason.STALE is house.hears("c", ROWS).reason


def test_what_is_answered_is_on_disk(tmp_path):
    """The row is gone for the process that starts next, and the ban is there."""
    with House(tmp_path) as house:
        house.hears("c", ROWS)
        assert 200 == house.asks("POST", "/nodes/room/c/forget?ban=1").status
    with closing(Store(house.store)) as store:
        kept = records.unpack_all(store.load())

    assert not [key for key in kept if key[0] == "row"]
    assert frozenset({"c"}) == kept["banned", "room"]


def test_a_banned_node_is_refused_until_it_is_released(house):
    house.hears("c", ROWS)
    assert house.asks("POST", "/nodes/room/c/forget?ban=1").json["banned"]
    assert Reason.BANNED is house.hears("c", ROWS, incarnation=new_incarnation(2)).reason
    assert [True] == [view["banned"] for view in house.asks("GET", "/nodes").json]

    assert not house.asks("POST", "/nodes/room/c/release").json["banned"]
    assert Reason.ACK is house.hears("c", ROWS, incarnation=new_incarnation(2)).reason


def test_a_quarantined_node_leaves_the_model_and_comes_back(house):
    house.hears("c", ROWS)
    house.hears("d", ROWS[:9])
    answer = house.asks("POST", "/nodes/room/c/quarantine").json

    assert (True, 60) == (answer["quarantined"], answer["rows"][0]["learnt"])
    assert 9 == counted(house)
    assert not house.asks("POST", "/nodes/room/c/release").json["quarantined"]
    assert 69 == counted(house)


def test_a_row_is_dropped_and_its_life_is_over(house):
    """The node's other rows stay."""
    house.hears("c", ROWS)
    house.hears("c", ROWS[:9], incarnation=new_incarnation(2))
    answer = house.asks("POST", f"/nodes/room/c/drop?incarnation={new_incarnation(1)}")

    assert (200, [9]) == (answer.status, [row["learnt"] for row in answer.json["rows"]])
    assert 9 == counted(house)
    assert Reason.STALE is house.hears("c", ROWS).reason


def test_a_command_is_in_the_log(house):
    """What was done, about whom; what was refused is not."""
    stream = io.StringIO()
    logs.begin("info", stream=stream)
    house.hears("c", ROWS)
    house.hears("c", ROWS[:9], incarnation=new_incarnation(2))
    row = f"drop?incarnation={new_incarnation(1)}"
    for verb in ("quarantine", "release", row, "forget?ban=1", "drop?old=1", "burn"):
        house.asks("POST", f"/nodes/room/c/{verb}")
    commands = [line.partition("operator command")[2] for line in stream.getvalue().splitlines()]

    assert [
        "verb=quarantine node=c group=room",
        "verb=release node=c group=room",
        f"verb=drop node=c group=room incarnation={new_incarnation(1)}",
        "verb=forget node=c group=room ban=true",
    ] == [each.partition(" by=unknown address=socket")[0].strip() for each in commands if each]


def test_one_node_is_looked_at(house):
    house.hears("c", ROWS)

    assert house.asks("GET", "/nodes").json == [house.asks("GET", "/nodes/room/c").json]


@pytest.mark.parametrize(
    ("method", "path", "status", "why"),
    [
        ("GET", "/nodes?group=hall", 404, "no group hall here, but room"),
        ("GET", "/nodes?node=a%20b", 400, "a name has 1 to 64"),
        ("GET", "/model/hall", 404, "no group hall here, but room"),
        ("GET", "/model/a%20b", 400, "a name has 1 to 64"),
        ("GET", "/model/hall?whole=1", 404, "no group hall here, but room"),
        ("GET", "/model/room?whole=yes", 400, "whole is 0 or 1, got 'yes'"),
        ("POST", "/nodes/hall/c/forget", 404, "no group hall here, but room"),
        ("POST", "/nodes/room/d/forget", 404, "group room has no node d here"),
        ("POST", "/nodes/room/d/forget?ban=1", 404, "group room has no node d here"),
        ("POST", "/nodes/room/d/quarantine", 404, "group room has no node d here"),
        ("POST", "/nodes/room/a%0Ab/forget", 400, "a name has 1 to 64"),
        ("POST", "/nodes/room/c/forget?ban=yes", 400, "ban is 0 or 1, got 'yes'"),
        (
            "POST",
            "/nodes/room/c/burn",
            404,
            "expected forget, drop, quarantine, release, pause or resume",
        ),
        ("POST", "/nodes/room/c/drop", 400, "drop takes either an incarnation or old=1"),
        ("POST", "/nodes/room/c/drop?old=2", 400, "drop takes either an incarnation or old=1"),
        ("POST", "/nodes/room/c/drop?incarnation=x", 400, "an incarnation is like"),
        (
            "POST",
            f"/nodes/room/c/drop?incarnation={new_incarnation(7)}",
            404,
            f"but of {new_incarnation(1)}",
        ),
        ("POST", "/nodes/room/c/drop?old=1", 404, "has nothing under an old schema here"),
        ("GET", "/nodes/room/d", 404, "group room has no node d here"),
        ("GET", "/nodes/room/c/forget", 405, "Method Not Allowed"),
        ("GET", "/elsewhere", 404, "Not Found"),
    ],
)
def test_bad_requests_get_one_line(house, method, path, status, why):
    """And nothing has changed."""
    house.hears("c", ROWS)
    before = house.asks("GET", "/nodes").json
    answer = house.asks(method, path)

    assert status == answer.status
    assert why in answer.json["error"]
    assert "\n" not in answer.json["error"]
    assert before == house.asks("GET", "/nodes").json


def test_a_model_that_is_not_there_yet_is_missing(tmp_path):
    """Below the root one has to come first."""
    with House(tmp_path, parent="headquarters") as house:
        answer = house.asks("GET", "/model/room")

    assert (404, True) == (answer.status, "has no model yet" in answer.json["error"])


def test_a_failing_disk_is_reported_and_changes_nothing(house):
    """503: not the operator's mistake; the node is there as before."""
    house.hears("c", ROWS)
    with house.disk.full():
        answer = house.asks("POST", "/nodes/room/c/forget")
    assert (503, True) == (answer.status, "cannot be written" in answer.json["error"])

    house.passes(6.0)
    assert ["c"] == [view["node"] for view in house.asks("GET", "/nodes").json]


def test_a_disk_that_hangs_is_not_waited_for(house, monkeypatch):
    """The answer warns that the change may still happen."""
    house.hears("c", ROWS)
    monkeypatch.setattr("submerge_aggregator.http.serving.ANSWER_S", 0.5)
    with house.disk.hanging():
        answer = house.asks("POST", "/nodes/room/c/forget")

    assert (503, True) == (answer.status, "may still happen" in answer.json["error"])
