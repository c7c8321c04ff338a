"""Jobs by the admin API: opened at a root, listed, answered in pieces, cancelled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from submerge.features import RandomFourier
from submerge.jobs.job import Leaver
from submerge_aggregator.http import admin
from submerge_aggregator.jobs import board as board_module
from submerge_aggregator.jobs.record import unpacked
from submerge_aggregator.operators.access import OperatorAccess
from submerge_aggregator.operators.identify import Operator
from support.house import SCHEMA, House, called
from support.jobbed import JobFleet, outcome

KMEANS = {"kind": "kmeans", "settings": {"clusters": 3, "held_out": 0.25}}


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    """A root that has heard of a node, so that its group has a schema."""
    with House(tmp_path) as house:
        house.hears("pump-1", np.random.default_rng(0).normal(size=(40, SCHEMA.dim)))
        yield house


@pytest.fixture
def fleet(house) -> JobFleet:
    return JobFleet(house)


@pytest.fixture
def recorded(house, monkeypatch) -> list[dict[str, Any]]:
    """What the audit log gets."""
    entries: list[dict[str, Any]] = []

    def record(event: str, /, **facts: object) -> None:
        entries.append({"event": event, **facts})

    monkeypatch.setattr(house.server.order_log, "_record", record)
    return entries


def asked(house: House, order: object = KMEANS, group: str = "room") -> Any:
    body = order if isinstance(order, bytes) else json.dumps(order).encode()
    return house.asks("POST", f"/jobs/{group}", body)


def opened(house: House) -> str:
    """The name of a job that is under way."""
    answer = asked(house)
    assert 200 == answer.status, answer.body
    name: str = answer.json["id"]
    return name


def test_a_job_gets_what_the_order_leaves_open(house, fleet):
    """The group, its schema's fingerprint and width, a name; the rest as it was said."""
    order = {**KMEANS, "exact": False, "least": 2, "job_s": 90.0, "attempts": 3}
    view = asked(house, order).json
    (job,) = fleet.open_jobs.values()

    assert ("room", SCHEMA.fingerprint, SCHEMA.dim) == (job.group, job.fingerprint, job.width)
    assert (False, 2, 90.0, 3) == (job.exact, job.least, job.job_s, job.attempts)
    assert (job.id, "running", "open", KMEANS["settings"]) == tuple(
        view[key] for key in ("id", "state", "phase", "settings")
    )


@pytest.mark.usefixtures("fleet")
def test_an_order_and_its_end_are_recorded(house, recorded):
    """Who gave it, and what was ordered."""
    name = opened(house)
    assert 200 == house.asks("POST", f"/jobs/room/{name}/cancel").status
    first, second = recorded

    assert ("order", "open job", name, "room", "kmeans", "clusters=3 held_out=0.25") == tuple(
        first[key] for key in ("event", "verb", "job", "group", "kind", "settings")
    )
    assert ("order", "cancel job", name) == tuple(second[key] for key in ("event", "verb", "job"))
    assert "by" in first


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (b"clusters", "expected a job as JSON"),
        ({"settings": {}}, "kind"),
        ({"kind": "nonsense"}, "a job is one of"),
        ({"kind": "kmeans"}, "needs the setting clusters"),
        ({"kind": "kmeans", "settings": {"clusters": 0}}, "clusters must be"),
        ({"kind": "kmeans", "settings": {"clusters": 3, "group": 1}}, "settings are"),
        ({"kind": "kmeans", "settings": {"clusters": [3]}}, "expected a job as JSON"),
        ({**KMEANS, "group": "hall"}, "group"),
        ({**KMEANS, "width": 3}, "width"),
        ({**KMEANS, "job_s": -1.0}, "job_s"),
        ({**KMEANS, "least": -1}, "least"),
    ],
)
def test_an_order_that_makes_no_sense_opens_nothing(house, fleet, recorded, order, why):
    """One line says what is wrong; the refusal is recorded."""
    answer = asked(house, order)

    assert 400 == answer.status
    assert why in answer.json["error"]
    assert ["denied"] == [entry["event"] for entry in recorded]
    assert ({}, []) == (fleet.open_jobs, house.asks("GET", "/jobs").json)


def test_an_order_is_not_read_without_end(house, fleet, monkeypatch):
    monkeypatch.setattr(admin, "MOST_ORDER_BYTES", 50)
    answer = asked(house, {**KMEANS, "settings": {"clusters": 3, "seed": 10**17}})

    assert 400 == answer.status
    assert "at most 50 bytes" in answer.json["error"]
    assert {} == fleet.open_jobs


@pytest.mark.usefixtures("fleet")
def test_what_the_root_refuses_is_answered_and_not_listed(house):
    """As one job too many."""
    name = opened(house)
    answer = asked(house)

    assert (400, "at most 1 job at once, got one more: wait for one") == (
        answer.status, answer.json["error"]
    )  # fmt: skip
    assert [name] == [view["id"] for view in house.asks("GET", "/jobs").json]


@pytest.mark.usefixtures("fleet")
def test_an_unknown_group_has_no_jobs(house):
    assert 404 == asked(house, group="hall").status
    assert 404 == house.asks("GET", "/jobs?group=hall").status


def test_a_group_without_a_schema_waits(tmp_path):
    """There is nothing yet that rows could be of."""
    with House(tmp_path, schema=None) as house:
        JobFleet(house)
        answer = asked(house)

    assert 400 == answer.status
    assert "has no schema yet" in answer.json["error"]


def test_a_group_whose_schema_is_still_measured_waits(tmp_path):
    """Its fingerprint will be another one once gamma is settled."""
    with House(tmp_path, schema=replace(SCHEMA, features=RandomFourier(features=32))) as house:
        fleet = JobFleet(house)
        answer = asked(house)

    assert 400 == answer.status
    assert "schema of group room is not settled yet, after 0 rows" in answer.json["error"]
    assert {} == fleet.open_jobs


def test_an_aggregator_with_a_parent_names_it(tmp_path):
    """Jobs are opened at the root."""
    with House(tmp_path, parent="hall-7") as house:
        fleet = JobFleet(house)
        answer = asked(house)

    assert 400 == answer.status
    assert "hall-7" in answer.json["error"]
    assert {} == fleet.open_jobs


def test_jobs_are_listed_those_that_run_first(house, fleet):
    """Then the newest; of one group, if it is named."""
    first = opened(house)
    fleet.ends(first)
    house.time.steady += 60.0
    second = opened(house)
    fleet.ends(second, failure="no node takes part")
    third = opened(house)
    listed = house.asks("GET", "/jobs").json

    assert [(third, "running"), (second, "failed"), (first, "done")] == [
        (view["id"], view["state"]) for view in listed
    ]
    assert listed == house.asks("GET", "/jobs?group=room").json


def test_one_job_names_its_nodes(house, fleet):
    name = opened(house)
    fleet.goes_on(name, "lloyd", 4)
    running = house.asks("GET", f"/jobs/room/{name}").json
    fleet.ends(name, left={"pump-2": Leaver("silent", 0)}, declined={"pump-9": "no rows"})
    over = house.asks("GET", f"/jobs/room/{name}").json

    assert ("lloyd", 4, []) == (running["job"]["phase"], running["job"]["round"], running["stayed"])
    assert (["pump-1", "pump-3"], {"pump-2": ["silent", 0]}, {"pump-9": "no rows"}) == (
        over["stayed"], over["left"], over["declined"]
    )  # fmt: skip


def test_an_answer_comes_in_pieces(house, fleet, monkeypatch):
    """With the schema that it is read with."""
    monkeypatch.setattr(board_module, "PIECE_BYTES", 300)
    name = opened(house)
    job = fleet.open_jobs[name]
    fleet.ends(name)
    data = b""
    while piece := house.asks("GET", f"/jobs/room/{name}/answer/{len(data)}").body:
        assert len(piece) <= 300
        data += piece
    found, expected = unpacked(data), outcome(job).answer

    behind = house.asks("GET", f"/jobs/room/{name}/answer/{10**30}")
    assert (200, b"") == (behind.status, behind.body)
    assert (job, SCHEMA.canonical) == (found.job, found.schema)
    assert all(np.array_equal(expected[key], found.answer[key]) for key in expected)


def test_there_is_no_answer_of_a_job_that_runs_or_failed(house, fleet):
    """The reason is said."""
    name = opened(house)
    running = house.asks("GET", f"/jobs/room/{name}/answer/0")
    fleet.ends(name, failure="no node takes part")
    failed = house.asks("GET", f"/jobs/room/{name}/answer/0")

    assert (400, True) == (running.status, "under way" in running.json["error"])
    assert (400, True) == (failed.status, "no node takes part" in failed.json["error"])


def test_a_lost_file_is_a_failure_of_the_root(house, fleet):
    """Not of who asks; the job is still listed."""
    name = opened(house)
    fleet.ends(name)
    house.asks("GET", f"/jobs/room/{name}/answer/0")
    (house.store.parent / f"{house.store.name}.jobs" / f"{name}.job").unlink()

    assert 503 == house.asks("GET", f"/jobs/room/{name}/answer/0").status
    assert [name] == [view["id"] for view in house.asks("GET", "/jobs").json]


@pytest.mark.usefixtures("fleet")
def test_what_is_cancelled_is_over(house):
    """A second time there is nothing to cancel."""
    name = opened(house)
    view = house.asks("POST", f"/jobs/room/{name}/cancel").json
    again = house.asks("POST", f"/jobs/room/{name}/cancel")

    assert ("failed", "cancelled") == (view["state"], view["failure"])
    assert (400, True) == (again.status, "is over" in again.json["error"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/jobs/{group}/{name}"),
        ("GET", "/jobs/{group}/{name}/answer/0"),
        ("POST", "/jobs/{group}/{name}/cancel"),
    ],
)
def test_a_job_is_found_under_its_own_group_alone(house, fleet, method, path):
    """Who may ask about another group does not reach it by its name."""
    name = opened(house)

    assert 404 == house.asks(method, path.format(group="hall", name=name)).status
    assert 404 == house.asks(method, path.format(group="room", name="job-0")).status
    assert [name] == [*fleet.open_jobs]


def statuses(house: House, who: Operator, *calls: tuple[str, str]) -> list[int]:
    """How an operator's requests are answered."""
    server = house.server
    access = OperatorAccess(admin.api(server), lambda *_: who, server.order_log)
    body = json.dumps(KMEANS).encode()
    return [house.does(called(access, method, path, body)).status for method, path in calls]


def test_who_may_look_may_not_open_or_cancel(house, fleet, recorded):
    """Nor may one who judges alarms; that they tried is recorded."""
    name = opened(house)
    orders = ("POST", "/jobs/room"), ("POST", f"/jobs/room/{name}/cancel")
    looks = ("GET", "/jobs"), ("GET", f"/jobs/room/{name}")

    assert [200, 200] == statuses(house, Operator("eve", "here", "read"), *looks)
    for scope in ("read", "judge"):
        assert [403, 403] == statuses(house, Operator("eve", "here", scope), *orders)
    assert [name] == [*fleet.open_jobs]
    assert 4 == [entry["event"] for entry in recorded].count("denied")


def test_who_is_for_one_group_sees_no_other_groups_jobs(tmp_path):
    """Not in the list, and not by name."""
    with House(tmp_path, groups=("room", "hall")) as house:
        fleet = JobFleet(house)
        name = opened(house)
        eve = Operator("eve", "here", "operate", ("hall",))
        theirs = ("GET", "/jobs"), ("GET", "/jobs?group=room"), ("GET", f"/jobs/room/{name}")
        orders = ("POST", "/jobs/room"), ("POST", f"/jobs/hall/{name}/cancel")

        assert [403, 403, 403] == statuses(house, eve, *theirs)
        assert [403, 404] == statuses(house, eve, *orders)
        assert [200] == statuses(house, eve, ("GET", "/jobs?group=hall"))
        assert [name] == [*fleet.open_jobs]


def test_landmarks_are_chosen_again_only_where_they_are_left_to_the_fleet(house):
    """One line says how they are; one who may only look may not ask."""
    refused = house.asks("POST", "/landmarks/room")
    unknown = house.asks("POST", "/landmarks/mill")

    assert (400, True) == (refused.status, "not left to the fleet" in refused.json["error"])
    assert (400, True) == (unknown.status, "no group mill here" in unknown.json["error"])
    looks = Operator("eve", "here", "read")
    assert [403] == statuses(house, looks, ("POST", "/landmarks/room"))
