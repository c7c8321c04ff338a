"""AlarmNotifier: each alarm below an aggregator is sent once, also over restarts."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.notify.notifier import AlarmNotifier, Subtree, make_notifier
from submerge_client import logs
from submerge_client.alarms import Sinks
from submerge_client.config.tomlfile import decoded
from support.alarmed import ROWS, alarm, alarm_status, message, passes_on
from support.house import House
from support.nodes import EPOCH
from support.patience import PATIENCE_S, until


def config_of(folder: Path, *groups: str, **alarms: Any) -> AggregatorConfig:
    schema = {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}
    return decoded(
        {
            "node": "root",
            "store": str(folder / "root.db"),
            "listen": {"grpc": {"insecure": True}},
            "groups": dict.fromkeys(groups or ("room",), schema),
            "alarms": alarms,
        },
        AggregatorConfig,
    )


class NotifyingHouse(House):
    """A house that writes lines about alarms."""

    def __init__(self, folder: Path, *, seq: int = 0, groups: tuple[str, ...] = ("room",)) -> None:
        self.path = folder / "alarms.ndjson"
        config = config_of(folder, *groups, ndjson=str(self.path))
        super().__init__(folder, groups=groups, notifier=lambda time: make_notifier(config, time))
        self.seq = seq

    @property
    def events(self) -> list[tuple[str, str]]:
        lines = self.path.read_text().splitlines()
        return [(each["event"], each["id"]) for each in map(json.loads, lines)]

    def until(self, *events: tuple[str, str]) -> None:
        """Wait for lines; more than these must not come."""
        until(lambda: len(self.events) >= len(events), lambda: f"{events}, got {self.events}")
        assert list(events) == self.events


def test_each_start_and_each_end_below_is_a_line(tmp_path):
    """Of a client here, and of one further down; however often it is reported."""
    with NotifyingHouse(tmp_path) as house:
        message(house, "c", alarm())
        passes_on(house, "a", alarm_status(alarm("d", 4)))
        house.until(("start", "c-1"), ("start", "d-4"))
        for worst in (3.0, 5.0):
            message(house, "c", alarm(worst=worst))
        passes_on(house, "a", alarm_status(alarm("d", 4, ended=60.0)))
        message(house, "c", alarm("c", 0x90), alarm(ended=70.0))
        house.until(
            *[("start", "c-1"), ("start", "d-4"), ("end", "d-4")],
            *[("end", "c-1"), ("start", "c-90")],
        )


def test_people_are_told_of_no_end_that_another_child_makes_up(tmp_path):
    """Its own end is sent. A node that has moved has its end sent when its old place is silent."""
    with NotifyingHouse(tmp_path) as house:
        message(house, "c", alarm())
        passes_on(house, "site", alarm_status(alarm("d", 4)))
        house.until(("start", "c-1"), ("start", "d-4"))
        passes_on(house, "rogue", alarm_status(alarm(ended=60.0), alarm("d", 4, ended=60.0)))
        message(house, "e", alarm("e", 9))
        house.until(("start", "c-1"), ("start", "d-4"), ("start", "e-9"))
        house.time.steady += 901.0
        passes_on(house, "site", alarm_status(alarm("d", 4)))
        passes_on(house, "new", alarm_status(alarm(ended=60.0)))
        starts = ("start", "c-1"), ("start", "d-4"), ("start", "e-9")
        house.until(*starts, ("end", "c-1"))


def test_what_ended_before_the_first_start_is_not_sent(tmp_path):
    with House(tmp_path) as house:
        message(house, "c", alarm("c", 2), alarm(ended=1.5))
    with NotifyingHouse(tmp_path) as house:
        house.until(("start", "c-2"))


def test_a_process_that_follows_tells_what_has_changed_and_nothing_twice(tmp_path):
    """The alarms of rows are in the store; the sent ones in the journal."""
    with NotifyingHouse(tmp_path) as house:
        message(house, "c", alarm())
        house.until(("start", "c-1"))
        seq = house.seq
    with NotifyingHouse(tmp_path, seq=seq) as house:
        message(house, "c", alarm(worst=9.0))
        message(house, "c", alarm(ended=60.0))
        message(house, "d", alarm("d", 4))
        house.until(("start", "c-1"), ("end", "c-1"), ("start", "d-4"))


def test_what_came_without_sinks_is_sent_by_the_next_start(tmp_path):
    """A process without sinks took the report, or one that was killed before it sent."""
    with NotifyingHouse(tmp_path) as house:
        message(house, "c", alarm())
        house.until(("start", "c-1"))
        seq = house.seq
    with House(tmp_path) as house:
        house.seq = seq
        message(house, "c", alarm("c", 0x90), alarm(ended=60.0))
        seq = house.seq
    with NotifyingHouse(tmp_path, seq=seq) as house:
        house.until(("start", "c-1"), ("end", "c-1"), ("start", "c-90"))


def test_a_node_that_is_forgotten_ends_no_alarm_at_once(tmp_path):
    """It may still run, and report it again; the subtree decides how long."""
    with NotifyingHouse(tmp_path) as house:
        message(house, "c", alarm())
        house.until(("start", "c-1"))
        house.asks("POST", "/nodes/room/c/forget")
        message(house, "d", alarm("d", 4))
        house.until(("start", "c-1"), ("start", "d-4"))


def test_groups_are_separate(tmp_path):
    """By the same file, each line with its group."""
    with NotifyingHouse(tmp_path, groups=("hall", "room")) as house:
        message(house, "c", alarm())
        house.hears("d", ROWS, group="hall", alarm_status=alarm_status(alarm("d", 4)))
        until(lambda: len(house.events) == 2)
        lines = [json.loads(line) for line in house.path.read_text().splitlines()]

    assert {"c": "room", "d": "hall"} == {each["node"]: each["group"] for each in lines}


class Slow:
    """A sink whose disk hangs until it is let go, or that has a bug."""

    def __init__(self, error: Exception | None = None) -> None:
        self.heard: list[tuple[str, ...]] = []
        self.let_go = threading.Event()
        self._error = error

    def update(self, alarms: Any) -> None:
        self.heard.append(tuple(each.name for each in alarms))
        if self._error is not None:
            raise self._error
        self.let_go.wait(PATIENCE_S)

    def close(self, patience_s: float) -> None:
        self.let_go.set()


def test_a_disk_that_hangs_delays_no_child(tmp_path):
    """Children are answered; and of the states that came meanwhile the newest is sent."""
    slow = Slow()
    sinks = {"room": (Subtree((), 900.0), Sinks([slow]))}
    with House(tmp_path, notifier=lambda time: AlarmNotifier(sinks, time)) as house:
        until(lambda: len(slow.heard) == 1)
        for number in range(1, 6):
            message(house, "c", alarm("c", number))
        slow.let_go.set()
        until(lambda: slow.heard[-1] == ("c-5",) or "c-5" in slow.heard[-1])

    assert len(slow.heard) < 6


def test_a_sink_that_fails_stops_no_other(tmp_path):
    """It is logged once."""
    stream = io.StringIO()
    logs.begin("info", stream=stream)
    broken, fine = Slow(RuntimeError("a bug")), Slow()
    fine.let_go.set()
    sinks = {"room": (Subtree((), 900.0), Sinks([broken, fine]))}
    with House(tmp_path, notifier=lambda time: AlarmNotifier(sinks, time)) as house:
        message(house, "c", alarm())
        until(lambda: ("c-1",) in fine.heard)
        message(house, "d", alarm("d", 4))
        until(lambda: ("c-1", "d-4") in fine.heard)

    assert 1 == stream.getvalue().count("a bug in an alarm sink, please report it")


def test_an_alarm_missing_for_too_long_ends_without_a_report(tmp_path):
    """It takes no report for an alarm to be over that is no longer reported."""
    fine = Slow()
    fine.let_go.set()
    sinks = {"room": (Subtree([alarm()], 0.05), Sinks([fine]))}
    with House(tmp_path, notifier=lambda time: AlarmNotifier(sinks, time)) as house:
        until(lambda: ("c-1",) in fine.heard)
        house.time.steady += 1.0
        until(lambda: fine.heard[-1] == ())


def test_without_sinks_there_is_no_notifier(tmp_path):
    """Then neither threads nor what webhooks need is there."""
    assert make_notifier(config_of(tmp_path), lambda: None) is None


@pytest.mark.parametrize(
    ("delivered", "said"),
    [
        ({"ndjson": ""}, "alarms.ndjson"),
        ({"webhook": [{"url": "http://elsewhere.example/x"}]}, "alarms.webhook"),
        ({"at_most": "1 false per week"}, "alarms.at_most"),
    ],
)
def test_bad_settings_are_refused(tmp_path, delivered, said):
    """What a node alone decides is not an aggregator's to set."""
    with pytest.raises(UsageError, match=said):
        config_of(tmp_path, **delivered)


def test_times_of_lines_are_the_nodes(tmp_path):
    with NotifyingHouse(tmp_path) as house:
        message(house, "c", alarm(began=EPOCH))
        until(lambda: bool(house.events))
        (line,) = map(json.loads, house.path.read_text().splitlines())

    assert EPOCH == line["began"]


# -- incidents -----------------------------------------------------------------------

WATCHED = {"watched_s": 2000 * 3600.0, "allowed": 12.0}


def test_an_incident_is_one_message_with_one_end(tmp_path):
    """After its first alarm, which comes alone; the others raise none until it is over."""
    with NotifyingHouse(tmp_path) as house:
        message(house, "b", alarm("b", 10), **WATCHED)
        house.until(("start", "b-a"))
        message(house, "c", alarm("c", 20), **WATCHED)
        message(house, "d", alarm("d", 30), **WATCHED)
        begun = [("start", "b-a"), ("start", "incident-b-a")]
        house.until(*begun)
        message(house, "e", alarm("e", 40, ended=80.0), **WATCHED)
        message(house, "b", alarm("b", 10, ended=60.0), **WATCHED)
        house.until(*begun, ("end", "b-a"))
    with NotifyingHouse(tmp_path, seq=10) as house:
        message(house, "c", alarm("c", 20, ended=90.0), **WATCHED)
        message(house, "d", alarm("d", 30, ended=70.0), **WATCHED)
        over = [*begun, ("end", "b-a"), ("end", "incident-b-a")]
        house.until(*over)
        message(house, "f", alarm("f", 50), **WATCHED)
        house.until(*over, ("start", "f-32"))
        end = json.loads(house.path.read_text().splitlines()[3])

    assert ["b", "c", "d", "e"] == [each["node"] for each in end["parts"]]
    assert EPOCH + 90 == end["ended"]
