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


@pytest.fixture
def lossy(mosquitto) -> Way:
    """A way on which answers may get lost: the client to the site, and the site to the root."""
    return OverMqtt(mosquitto.port)


def told_once(fleet: AlarmFleet, *names: str) -> None:
    """See that each was told once, by everybody who tells."""
    for who, reported in (
        ("the client's file", fleet.lines),
        ("the root's file", fleet.root_lines),
        ("submerge alarms --follow at the root", fleet.followed),
    ):
        for name in names:
            # "gone" is neither: for a moment nobody tells of a client that has just come back.
            events = [each["event"] for each in reported if each["id"] == name]
            assert ["start", "end"] == [each for each in events if each != "gone"], who
    for node in (SITE, ROOT):

        def over(node: str = node) -> list[str]:
            return [alarm["id"] for alarm in fleet.alarms(node) if not alarm["open"]]

        # For a moment an aggregator has nothing of a client that has just come back.
        fleet.until(lambda over=over: set(names) <= set(over()), f"{node} to have them as over")
        assert all(over().count(name) <= 1 for name in names), node


def all_told_once(fleet: AlarmFleet, *faults: str) -> None:
    """See that for every alarm there was; that each fault raised one, and no other was counted."""
    told_once(fleet, *fleet.names)
    assert set(faults) == fleet.faults
    # One by chance may begin here: people are told at once, the root counts it a report later.

    def counted() -> int:
        return fleet.ask(ROOT, "alarm-status")[0]["watch"]["raised"]

    fleet.until(lambda: len(fleet.names) == counted(), "the root to count what was told")


def test_an_alarm_is_raised_once_and_cleared_once_whoever_is_killed(lossy):
    """The client, the site, the root, and all at once; and again as it is raised and cleared."""
    with AlarmFleet(lossy) as fleet:
        fleet.feeder.faulty = True
        fleet.until(lambda: fleet.lines, "a line of a start")
        fleet.killed(PUMP, SITE)
        alarm = fleet.fault_is_open()
        for nodes in ((PUMP,), (SITE,), (ROOT,), (PUMP, SITE, ROOT)):
            fleet.killed(*nodes)
            fleet.goes_on()
        fleet.feeder.faulty = False
        fleet.until(lambda: fleet.has_ended(alarm["id"]), "a line of an end")
        fleet.killed(PUMP, SITE, ROOT)
        fleet.fault_is_over()
        fleet.state_is("armed")

        all_told_once(fleet, alarm["id"])
        (over,) = [each for each in fleet.alarms() if each["id"] == alarm["id"]]
        assert CHANNELS[AILING] == next(iter(over["top"]))
        assert alarm["withheld"] < over["withheld"] <= fleet.feeder.faulty_rows + fleet.feeder.calm


@pytest.mark.soak
def test_a_client_that_dies_as_it_tells_an_alarm_tells_it_once():
    """Whatever is on disk by then; those above die with it. The points are the client's own."""
    with AlarmFleet(over_grpc()) as fleet:
        names = []
        for point in ALARM_POINTS:
            fleet.killed(PUMP, dying=point)
            fleet.dies_as(faulty=True)
            fleet.kill(SITE)
            fleet.start(SITE, PUMP, dying=point)
            names.append(fleet.fault_is_open()["id"])
            fleet.dies_as(faulty=False)
            fleet.kill(ROOT)
            fleet.start(ROOT, PUMP)
            fleet.fault_is_over()

        all_told_once(fleet, *names)
        assert len(ALARM_POINTS) == len(set(names))


@pytest.mark.soak
def test_what_an_operator_wants_arrives_whoever_is_killed(lossy):
    """An order given at the root, while the nodes below are down, arrives with later answers."""
    with AlarmFleet(lossy) as fleet:
        said(fleet, "nodes", "learn", "pause", PUMP, "--anyway")
        fleet.state_is("paused")
        learnt, withheld = fleet.learnt, fleet.withheld
        fleet.until(lambda: fleet.withheld > withheld, "rows to be withheld")
        assert learnt == fleet.learnt

        said(fleet, "nodes", "learn", "resume", PUMP, "--anyway")
        fleet.state_is("armed")
        fleet.learns(1)

        fault = fleet.fault_is_open()["id"]
        said(fleet, "alarms", "reject", fault)
        fleet.until(
            lambda: (
                (fault, "rejected") in [(each["id"], each["verdict"]) for each in fleet.alarms()]
            ),
            "the root to hear of it",
        )
        fleet.goes_on()
        fleet.fault_is_over()

        normal = fleet.fault_is_open()["id"]
        said(fleet, "alarms", "accept", normal)
        fleet.until(lambda: fleet.is_told("end", normal), "people to be told")

        told_once(fleet, fault, normal)
        verdicts = {line["id"]: line["verdict"] for line in fleet.lines if line["event"] == "end"}
        assert ["rejected", "accepted"] == [verdicts[fault], verdicts[normal]]
        assert 1 == fleet.ask(ROOT, "alarm-status")[0]["watch"]["confirmed"]


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

        all_told_once(fleet, alarm["id"])
        (over,) = [each for each in fleet.alarms() if each["id"] == alarm["id"]]
        assert 24 <= over["withheld"] < 24 + 64
