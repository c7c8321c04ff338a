"""The admin API for alarms: what it shows of them, and the desired states of nodes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing

import pytest

from submerge.protocol.desired_state import DesiredState, Missed
from submerge.stats.block_maxima import count_interval, evidence, share_interval
from submerge_aggregator.store import Store
from submerge_client import logs
from submerge_proto.kept import records
from support.alarmed import ROWS, alarm, alarm_status, message, passes_on
from support.house import House
from support.nodes import EPOCH


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    with House(tmp_path) as house:
        yield house


def ids(house: House, query: str = "") -> list[str]:
    return [view["id"] for view in house.asks("GET", f"/alarms{query}").json]


def wanted(house: House) -> list[tuple[str, str]]:
    return [(view["verdict"], view["wanted"]) for view in house.asks("GET", "/alarms").json]


# -- what is shown -------------------------------------------------------------------


def test_an_alarm_is_shown_with_all_that_is_known_of_it(house):
    """In the names of the lines that a client writes, and by whom it came."""
    message(house, "c", alarm(worst=3.25, withheld=7, cause="t2"))
    house.time.steady += 40.0

    assert [
        {
            "group": "room",
            "id": "c-1",
            "node": "c",
            "open": True,
            "began": EPOCH + 1,
            "peaked": EPOCH + 1,
            "ended": None,
            "worst": 3.25,
            "cause": "t2",
            "top": {"mote-1": 0.75, "mote-4": 0.25},
            "model": 3,
            "withheld": 7,
            "verdict": "",
            "wanted": "",
            "reported_by": "c",
            "silent_s": 40.0,
            "denied_by": [],
            "first": {},
            "deviations": {},
            "settled": False,
            "provisional": False,
            "repeated": False,
            "looks": "",
            "evidence": "",
            "twins": [],
            "incident": "",
            "parts": [],
            "words": "",
        }
    ] == house.asks("GET", "/alarms").json


def test_open_ones_come_first_then_those_that_were_over_last(house):
    message(house, "b", alarm("b", 1, ended=90.0))
    message(house, "c", alarm("c", 3), alarm("c", 2, ended=50.0))
    passes_on(house, "a", alarm_status(alarm("d", 4)), alarm_status(alarm("e", 5, ended=70.0)))

    assert ["d-4", "c-3", "b-1", "e-5", "c-2"] == ids(house)
    assert ["d-4", "c-3"] == ids(house, "?open=1")
    assert ["c-3", "c-2"] == ids(house, "?node=c")
    assert {"d-4": "a", "c-3": "c"} == {
        view["id"]: view["reported_by"] for view in house.asks("GET", "/alarms?open=1").json
    }


def test_an_alarm_that_two_tell_of_is_one(house):
    """A node has moved, and is still spoken for where it was: over is over, else who was heard."""
    passes_on(house, "a", alarm_status(alarm("d", 4)), alarm_status(alarm("e", 5, withheld=1)))
    house.time.steady += 100.0
    message(house, "d", alarm("d", 4, ended=80.0))
    message(house, "e", alarm("e", 5, withheld=9))
    reported = {view["id"]: view for view in house.asks("GET", "/alarms").json}

    assert 2 == len(reported)
    assert (False, 9) == (reported["d-4"]["open"], reported["e-5"]["withheld"])
    assert "e" == reported["e-5"]["reported_by"]


def test_an_incident_is_the_same_after_a_move_and_a_restart(tmp_path):
    """Two of its nodes are below a site at first, and one comes here; nobody has kept it."""
    watched = {"watched_s": 7.2e6, "allowed": 12.0}
    three = [alarm(node, number) for node, number in (("d", 4), ("e", 5), ("f", 6))]
    shown = []
    with House(tmp_path) as house:
        passes_on(house, "a", *(alarm_status(each, **watched) for each in three[:2]))
        message(house, "f", three[2], **watched)
        shown.append(house.asks("GET", "/alarms").json)
        house.time.steady += 100.0
        message(house, "e", three[1], **watched)
        shown.append(house.asks("GET", "/alarms").json)
    with House(tmp_path) as house:
        shown.append(house.asks("GET", "/alarms").json)

    for views in shown:
        (whole,) = [view for view in views if view["parts"]]
        assert "incident-d-4" == whole["id"]
        assert ["d-4", "e-5", "f-6"] == [part["id"] for part in whole["parts"]]
        assert ["incident-d-4"] * 3 == [each["incident"] for each in views if each != whole]


def test_groups_are_separate(tmp_path):
    with House(tmp_path, groups=("hall", "room")) as house:
        message(house, "c", alarm())
        both = house.asks("GET", "/alarm-status").json

        assert ([], ["c-1"]) == (ids(house, "?group=hall"), ids(house, "?group=room"))
        assert [("hall", 0, True), ("room", 1, False)] == [
            (each["group"], each["clients"], each["watch"] is None) for each in both
        ]
        assert ["room"] == [
            each["group"] for each in house.asks("GET", "/alarm-status?group=room").json
        ]


def test_a_mark_says_whether_there_is_news(house):
    """An alarm that has begun, is over, or is reported no more; not its scores meanwhile."""
    marks = []

    def look() -> None:
        marks.append(house.asks("GET", "/alarms/mark").body)

    look()
    for reported in ((alarm(),), (alarm(worst=9.0, withheld=5),), (alarm(ended=60.0),), ()):
        message(house, "c", *reported)
        look()
        look()

    empty, began, over = marks[0], marks[1], marks[5]
    assert [empty, *[began] * 4, *[over] * 2, *[empty] * 2] == marks
    assert 3 == len({empty, began, over})


def test_how_a_group_is_watched_adds_up(house):
    """Of all below, each as last reported; one without an alarm status is a client all the same."""
    message(house, "c", alarm(), watched_s=3600.0, allowed=0.5, raised=2, confirmed=1)
    message(house, "d", state="learning", armed_in_s=7200.0)
    house.hears("e", ROWS)
    passes_on(house, "a", alarm_status(watched_s=400.0, allowed=0.25), alarm_status(state="paused"))

    (group,) = house.asks("GET", "/alarm-status").json
    assert ("room", 3) == (group["group"], group["clients"])
    assert {
        "states": {"learning": 1, "armed": 1, "alarm": 1, "paused": 1, "stale": 0},
        "open": 1,
        "watched_s": 4000.0,
        "allowed": 0.75,
        "raised": 2,
        "confirmed": 1,
        "armed_in_s": 7200.0,
        "evidence": evidence(1, 0.75),
        "provisional_rows": 0.0,
        "waiting": "",
        "missing": 0,
        "missed": 0,
        "recall": [1.0, *share_interval(1, 1)],
        "false_weekly": pytest.approx(
            [151.2, *(151.2 * each for each in count_interval(1))], rel=1e-9
        ),
        "by_verdicts": [
            "found 1 of 1 known faults: 100% (21% to 100%)",
            "151 alarms per week and node are no known faults (3.83 to 841)",
        ],
    } == group["watch"]


def test_an_unknown_time_is_no_time(house):
    message(house, "d", state="learning", armed_in_s=-1.0)

    assert house.asks("GET", "/alarm-status").json[0]["watch"]["armed_in_s"] is None


def test_a_node_shows_how_it_watches(house):
    """An aggregator shows that of all below it; a node without an alarm status shows none."""
    message(house, "c", alarm())
    house.hears("e", ROWS)
    passes_on(house, "a", alarm_status(), alarm_status(state="learning", armed_in_s=60.0))
    watches = {view["node"]: view["watch"] for view in house.asks("GET", "/nodes").json}

    assert ("alarm", None) == (_states(watches["c"]), watches["e"])
    assert "armed learning" == _states(watches["a"])


def _states(watch) -> str:
    return " ".join(sorted(state for state, count in watch["states"].items() if count))


# -- desired states ------------------------------------------------------------------


def test_a_verdict_goes_with_the_answer_to_the_next_report(house):
    """And shown as on its way until the node has heard it."""
    message(house, "c", alarm())
    house.time.steady += 40.0
    answer = house.asks("POST", "/alarms/room/c-1/reject").json

    assert ({"c-1": "rejected"}, "c", 40.0) == tuple(
        answer[key] for key in ("verdicts", "reported_by", "silent_s")
    )
    assert [("", "rejected")] == wanted(house)
    (desired,) = message(house, "c", alarm()).desired_states
    assert DesiredState("c", desired.number, verdicts=((1, False),)) == desired
    message(house, "c", alarm(verdict="rejected"), desired=desired.number)
    assert [("rejected", "")] == wanted(house)
    assert (
        () == message(house, "c", alarm(verdict="rejected"), desired=desired.number).desired_states
    )


def test_a_verdict_may_be_thought_over(house):
    message(house, "c", alarm(verdict="rejected"))
    house.asks("POST", "/alarms/room/c-1/accept")

    assert [("rejected", "accepted")] == wanted(house)


def test_a_pause_goes_the_same_way(house):
    """Until the node has heard it, it is shown as what is wanted."""
    message(house, "c")

    def shown() -> tuple[bool, str]:
        (view,) = house.asks("GET", "/nodes").json
        return view["paused"], view["wanted"]

    assert (False, "") == shown()
    assert house.asks("POST", "/nodes/room/c/pause").json["paused"]
    assert (False, "pause") == shown()
    (desired,) = message(house, "c").desired_states
    message(house, "c", state="paused", desired=desired.number)
    assert (True, "") == shown()
    assert not house.asks("POST", "/nodes/room/c/resume").json["paused"]
    assert (False, "resume") == shown()


def test_a_state_for_a_node_further_down_goes_through_its_aggregator(house):
    """It is known by an alarm of it; the answer names the child that gets the state first."""
    passes_on(house, "a", alarm_status(alarm("d", 4)))
    house.time.steady += 40.0
    answers = [
        house.asks("POST", path).json for path in ("/alarms/room/d-4/accept", "/nodes/room/d/pause")
    ]

    assert [("a", 40.0)] * 2 == [(each["reported_by"], each["silent_s"]) for each in answers]
    (desired,) = passes_on(house, "a", alarm_status(alarm("d", 4))).desired_states
    assert (True, ((4, True),)) == (desired.paused, desired.verdicts)
    assert (
        ()
        == passes_on(house, "a", alarm_status(alarm("d", 4)), desired=desired.number).desired_states
    )


def test_what_was_never_reported_here_is_taken_only_with_anyway(house):
    """It may be below an aggregator; then all of them hear of it."""
    passes_on(house, "a", alarm_status())
    for path in ("/nodes/room/d/pause", "/alarms/room/d-4/accept"):
        refused, taken = house.asks("POST", path), house.asks("POST", f"{path}?anyway=1")
        assert (404, True) == (refused.status, "add --anyway" in refused.json["error"])
        assert (200, None, None) == (
            taken.status,
            *(taken.json[key] for key in ("reported_by", "silent_s")),
        )

    assert ["d"] == [
        desired.node for desired in passes_on(house, "a", alarm_status()).desired_states
    ]


def test_a_desired_state_is_on_disk(tmp_path):
    """Answered after the commit: the process that starts next goes on telling it."""
    with House(tmp_path) as house:
        message(house, "c", alarm())
        assert 200 == house.asks("POST", "/alarms/room/c-1/reject").status
    with closing(Store(house.store)) as store:
        kept = records.unpack_all(store.load())

    assert {1: False} == kept["wishes", "room"]["c"].accepted


def test_a_command_is_in_the_log(house):
    """What was refused is not."""
    stream = io.StringIO()
    logs.begin("info", stream=stream)
    message(house, "c", alarm())
    for path in ("alarms/room/c-1/reject", "nodes/room/c/pause", "alarms/room/c-2/accept"):
        house.asks("POST", f"/{path}")
    commands = [line.partition("operator command")[2] for line in stream.getvalue().splitlines()]

    assert [
        "verb=reject node=c group=room alarm=c-1",
        "verb=pause node=c group=room",
    ] == [each.partition(" by=unknown address=socket")[0].strip() for each in commands if each]


@pytest.mark.parametrize(
    ("method", "path", "status", "why"),
    [
        ("GET", "/alarms?group=hall", 404, "no group hall here, but room"),
        ("GET", "/alarms?node=a%20b", 400, "a name has 1 to 64"),
        ("GET", "/alarms?open=yes", 400, "open is 0 or 1, got 'yes'"),
        ("GET", "/alarms/mark?group=hall", 404, "no group hall here, but room"),
        ("GET", "/alarm-status?group=hall", 404, "no group hall here, but room"),
        ("POST", "/alarms/hall/c-1/accept", 404, "no group hall here, but room"),
        ("POST", "/alarms/room/c/accept", 400, "an alarm's name is like pump-3-19aa41f2c30"),
        ("POST", "/alarms/room/c-2/accept", 404, "no node reports alarm c-2 here; of c there are"),
        ("POST", "/alarms/room/d-2/accept", 404, "no node reports alarm d-2 here"),
        ("POST", "/alarms/room/c-1/burn", 404, "expected accept or reject, got 'burn'"),
        ("POST", "/alarms/room/c-1/accept?anyway=2", 400, "anyway is 0 or 1, got '2'"),
        ("POST", "/nodes/room/d/pause", 404, "no node d of group room has reported here"),
        ("POST", "/nodes/hall/c/pause", 404, "no group hall here, but room"),
        ("GET", "/alarms/room/c-1/accept", 405, "Method Not Allowed"),
    ],
)
def test_bad_requests_get_one_line(house, method, path, status, why):
    """And no node gets anything."""
    message(house, "c", alarm())
    answer = house.asks(method, path)

    assert status == answer.status
    assert why in answer.json["error"]
    assert "\n" not in answer.json["error"]
    assert () == message(house, "c", alarm()).desired_states


def test_an_aggregator_learns_nothing_itself(house):
    """Not even with anyway: it would be sent for ever, without effect."""
    passes_on(house, "a", alarm_status())
    answer = house.asks("POST", "/nodes/room/a/pause?anyway=1")

    assert (404, True) == (answer.status, "name a node below it" in answer.json["error"])


def test_without_an_aggregator_below_a_node_is_nowhere_else(house):
    """Then the answer names no aggregator to look at."""
    message(house, "c")
    why = house.asks("POST", "/nodes/room/d/pause").json["error"]

    assert "anyway" not in why


# -- missed faults ---------------------------------------------------------------------


def missed(house: House, node: str, begin: float, end: float, **query: str):
    said = "&".join(f"{key}={value}" for key, value in query.items())
    return house.asks("POST", f"/nodes/room/{node}/missed?from={begin}&to={end}&{said}")


def group_watch(house: House):
    (found,) = house.asks("GET", "/alarm-status").json
    return found["watch"]


def test_a_missed_fault_counts_once_and_can_be_taken_back(house):
    """Said twice it is one; of the same times what was said last holds; it is on disk."""
    message(house, "c", alarm("c", 1, ended=50.0), raised=4, confirmed=3, watched_s=14 * 86400.0)
    assert (0, [1.0]) == (group_watch(house)["missed"], group_watch(house)["recall"][:1])
    assert missed(house, "c", 100.0, 200.0, channel="mote-1").status == 200
    missed(house, "c", 100.0, 200.0)
    missed(house, "c", 300.0, 400.0)
    watch = group_watch(house)

    assert (2, 0.6) == (watch["missed"], watch["recall"][0])
    assert [0.5, *(each / 2 for each in count_interval(1))] == watch["false_weekly"]
    missed(house, "c", 100.0, 200.0, withdrawn="1")
    assert 1 == group_watch(house)["missed"]
    house.ends()
    with closing(Store(house.store)) as store:
        kept = records.unpack_all(store.load())
    assert (Missed(300.0, 400.0), Missed(100.0, 200.0, withdrawn=True)) == kept["wishes", "room"][
        "c"
    ].missed


def test_a_missed_fault_of_an_unknown_node_or_time_is_refused(house):
    message(house, "c", alarm("c", 1, ended=50.0))
    assert 404 == missed(house, "x", 1.0, 2.0).status
    assert 400 == missed(house, "c", 2.0, 1.0).status
    assert 400 == house.asks("POST", "/nodes/room/c/missed?from=1").status
    assert 0 == group_watch(house)["missed"]
