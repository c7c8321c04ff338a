"""Processes die during alarms as by a power cut: each is raised once, and cleared once.

A client, a site and a root, and whoever tells people: at the client, and at the root.
"""

from __future__ import annotations

import pytest

pytest.importorskip("grpc")

from support.alarm_fleet import AILING, CHANNELS, PUMP, ROOT, SITE, AlarmFleet
from support.failing import ALARM_POINTS
from support.kills import OverGrpc, OverMqtt, Way
from support.programs import free_port

pytestmark = pytest.mark.slow


def over_grpc() -> OverGrpc:
    return OverGrpc({SITE: free_port(), ROOT: free_port()})


@pytest.fixture(params=["grpc", "mqtt"])
def way(request) -> Way:
    """How the client reaches the site, and the site the root."""
    if request.param == "grpc":
        return over_grpc()
    return OverMqtt(request.getfixturevalue("mosquitto").port)


def told_once(fleet: AlarmFleet, alarms: int = 1) -> list[str]:
    """See that each was told once by everybody who tells, under one name; return the names."""
    names = [line["id"] for line in fleet.lines if line["event"] == "start"]
    expected = [(event, name) for name in names for event in ("start", "end")]
    assert alarms == len(set(names))
    for who, told in (
        ("the client's file", fleet.lines),
        ("the root's file", fleet.root_lines),
        ("submerge alarms --follow at the root", fleet.followed),
    ):
        # "gone" is neither: for a moment nobody tells of a client that has just come back.
        events = [(each["event"], each["id"]) for each in told if each["event"] != "gone"]
        assert expected == events, who
    for node in (SITE, ROOT):
        assert sorted(names) == sorted(alarm["id"] for alarm in fleet.alarms(node)), node
        assert not any(alarm["open"] for alarm in fleet.alarms(node)), node
    assert alarms == fleet.ask(ROOT, "vigil")[0]["watch"]["raised"]
    return names


def test_an_alarm_is_raised_once_and_cleared_once_whoever_is_killed(way):
    """The client, the site, the root, and all at once; and again as it is raised and cleared."""
    with AlarmFleet(way) as fleet:
        fleet.feeder.faulty = True
        fleet.until(lambda: fleet.lines, "a line of a start")
        fleet.killed(PUMP, SITE)
        alarm = fleet.fault_is_open()
        for nodes in ((PUMP,), (SITE,), (ROOT,), (PUMP, SITE, ROOT)):
            fleet.killed(*nodes)
            fleet.goes_on()
        fleet.feeder.faulty = False
        fleet.until(lambda: len(fleet.lines) == 2, "a line of an end")
        fleet.killed(PUMP, SITE, ROOT)
        fleet.fault_is_over()
        fleet.state_is("armed")

        (over,) = fleet.alarms()
        assert [alarm["id"]] == told_once(fleet)
        assert CHANNELS[AILING] == next(iter(over["top"]))
        assert alarm["withheld"] < over["withheld"] <= fleet.feeder.odd + fleet.feeder.calm


def test_a_client_that_dies_as_it_tells_an_alarm_tells_it_once(way):
    """Whatever is on disk by then; those above die with it."""
    with AlarmFleet(way) as fleet:
        for number, point in enumerate(ALARM_POINTS, 1):
            fleet.killed(PUMP, dying=point)
            fleet.dies_as(faulty=True)
            fleet.kill(SITE)
            fleet.start(SITE, PUMP, dying=point)
            fleet.fault_is_open(number)
            fleet.dies_as(faulty=False)
            fleet.kill(ROOT)
            fleet.start(ROOT, PUMP)
            fleet.fault_is_over(number)

        told_once(fleet, len(ALARM_POINTS))


def test_what_an_operator_wants_arrives_whoever_is_killed(way):
    """Said at the root, two levels up, while nobody is there to hear it."""
    with AlarmFleet(way) as fleet:
        said(fleet, "learn", "pause", PUMP, "--anyway")
        fleet.state_is("paused")
        learnt, withheld = fleet.learnt, fleet.withheld
        fleet.until(lambda: fleet.withheld > withheld, "rows to be withheld")
        assert learnt == fleet.learnt

        said(fleet, "learn", "resume", PUMP, "--anyway")
        fleet.state_is("armed")
        fleet.learns(1)

        alarm = fleet.fault_is_open(1)
        said(fleet, "alarms", "reject", alarm["id"])
        fleet.until(
            lambda: [each["verdict"] for each in fleet.alarms()] == ["rejected"],
            "the root to hear of it",
        )
        fleet.goes_on()
        fleet.fault_is_over(1)

        alarm = fleet.fault_is_open(2)
        said(fleet, "alarms", "accept", alarm["id"])
        fleet.state_is("armed")
        fleet.learns(100)
        fleet.is_over(2)

        told_once(fleet, 2)
        ends = [line["verdict"] for line in fleet.lines if line["event"] == "end"]
        assert ["rejected", "accepted"] == ends
        assert 1 == fleet.ask(ROOT, "vigil")[0]["watch"]["confirmed"]


def said(fleet: AlarmFleet, *words: str) -> None:
    """Say it at a root that dies at once, while nobody else is there; kill each that has heard."""
    fleet.kill(PUMP, SITE)
    fleet.order(*words)
    fleet.killed(ROOT)
    fleet.start(SITE)
    fleet.until(lambda: fleet.wanted, "the site to hear of it")
    fleet.killed(SITE)
    assert fleet.wanted
    fleet.start(PUMP)
    fleet.until(lambda: fleet.client and not fleet.wanted, "the client to hear of it")
    fleet.killed(PUMP)


def test_an_alarm_whose_rows_are_learnt_is_open_until_they_are_back():
    """Whoever comes next holds it to what raised it, not to what was learnt since."""
    with AlarmFleet(over_grpc(), max_withheld="24h") as fleet:
        alarm = fleet.fault_is_open()
        for _ in range(2):
            fleet.learns(100)
            fleet.killed(PUMP)
        fleet.fault_is_over()

        assert [alarm["id"]] == told_once(fleet)
        assert 24 <= fleet.alarms()[0]["withheld"] < 24 + 64
