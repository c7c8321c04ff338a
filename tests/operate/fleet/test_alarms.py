"""`submerge alarms` and `submerge nodes learn`: lists of alarms, verdicts and pauses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from submerge.protocol.alarm_status import Deviation
from submerge.protocol.messages import ScoreSketches
from submerge.protocol.score_trail import ScoreTrail, level_of
from submerge.stats.block_maxima import NONE
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge.stats.statistic import KINDS
from submerge_aggregator.history import answers as past
from submerge_aggregator.questions.views import AlarmView, GroupWatch, WatchView
from submerge_client.alarms.event import deviation_facts
from submerge_files.console import admin_client
from submerge_files.console.ways import NoAnswer
from submerge_operate.fleet.alarms import Followed, follow
from submerge_operate.fleet.alarms_table import (
    channels_text,
    line_of,
    lines_of,
    shares_text,
    table_of,
    value_lines,
    values_text,
)
from support.alarmed import ROWS, alarm, alarm_status, message, passes_on
from support.commands import shell, stands_at_its_socket
from support.house import House
from support.nodes import EPOCH

HOUR = 3600.0


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    with House(tmp_path) as house:
        stands_at_its_socket(house, monkeypatch)
        # A table is of now, and a test's alarms are of its own time.
        monkeypatch.setattr("time.time", lambda: house.time().wall)
        yield house


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def alarms(submerge, house):
    """Run `submerge alarms` against the house."""
    return lambda *words: submerge("alarms", *words, "--store", house.store)


@pytest.fixture
def learn(submerge, house):
    return lambda *words: submerge("nodes", "learn", *words, "--store", house.store)


def view(name: str = "c-1", *, ended: float | None = None, **reported: Any) -> AlarmView:
    known: dict[str, Any] = {
        "group": "room",
        "id": name,
        "node": name.rpartition("-")[0],
        "open": ended is None,
        "began": EPOCH,
        "peaked": EPOCH,
        "ended": ended,
        "worst": 2.5,
        "cause": "spe",
        "top": {"flow": 0.75},
        "model": 3,
        "withheld": 0,
        "verdict": "",
        "wanted": "",
        "reported_by": "c",
        "silent_s": 0.0,
    }
    return AlarmView(**known | reported)


# -- the table -----------------------------------------------------------------------


def test_a_person_sees_how_groups_are_watched_and_a_line_an_alarm(alarms, house):
    """What was promised beside what came of it; open ones first."""
    reported = {"watched_s": 336 * HOUR, "allowed": 2.0, "raised": 3, "confirmed": 1}
    message(house, "c", alarm("c", 50, verdict="rejected"), alarm("c", 1, ended=30.0), **reported)
    message(house, "d", state="learning", armed_in_s=3 * HOUR)
    house.hears("e", ROWS)
    out = alarms().out.splitlines()

    assert [
        "room: 1 in ALARM, 1 learning (armed in 3 h), 1 reports no alarm status",
        "  promised 1 per week and node: at most 2.00 false alarms in 336 hours",
        "  watched; 3 raised, 1 confirmed as a fault",
        "  found 1 of 1 known faults: 100% (21% to 100%)",
        "  1 alarms per week and node are no known faults (0.112 to 3.61)",
    ] == out[:5]
    heading, _, first, second = (line.split() for line in out[5:] if line.strip())
    assert ["id", "since", "lasted", "over", "cause", "channels", "state"] == heading
    blamed = ["mote-1", "75%,", "mote-4", "25%"]
    assert ["c-32", "50", "s", "-", "2.5x", "spe", *blamed, "OPEN,", "a", "fault"] == first
    assert ["c-1", "99", "s", "29", "s", "2.5x", "spe", *blamed, "over"] == second


def test_an_incident_has_its_alarms_below_it(alarms, house):
    """And a sentence: who was first, and what they have in common."""
    watched = {"watched_s": 2000 * HOUR, "allowed": 12.0}
    for node, number in (("d", 10), ("c", 40), ("e", 50)):
        message(house, node, alarm(node, number), **watched)
    message(house, "b", alarm("b", 5, began=EPOCH - 9000), **watched)
    out = alarms().out

    names = re.findall(r"^ ( *[a-z-]+-[0-9a-f]+) +\d", out, re.MULTILINE)
    assert ["incident-d-a", "  d-a", "  c-28", "  e-32", "b-5"] == names
    assert (
        "incident-d-a: d first, 30 s before c; 2 followed. mote-1 on 3 of 3: a common cause" in out
    )
    found = {each["id"]: each for each in json.loads(alarms("--json").out)}
    assert ["d-a", "c-28", "e-32"] == [part["id"] for part in found["incident-d-a"]["parts"]]
    assert ["incident-d-a", ""] == [found[each]["incident"] for each in ("c-28", "b-5")]


def test_a_person_sees_which_child_contradicts_the_others(alarms, house):
    """Beside the alarm, and in a line for what has no alarm to stand beside."""
    message(house, "c", alarm("c", 1))
    passes_on(house, "rogue", alarm_status(alarm("c", 1, ended=30.0), alarm("c", 2)))
    out = alarms().out

    assert "  not believed: rogue reports c-2 (open) and 1 more\n    its node reports here, " in out
    assert "OPEN, denied by rogue: not believed" in " ".join(out.split())
    (found,) = json.loads(alarms("--json").out)
    assert (["rogue"], True, "c") == (found["denied_by"], found["open"], found["reported_by"])
    (group,) = json.loads(alarms("--nodes", "--json").out)["groups"]
    assert [("c-2", "rogue"), ("c-1", "rogue")] == [
        (each["id"], each["by"]) for each in group["left_out"]
    ]


def test_list_is_the_default(alarms, house):
    message(house, "c", alarm("c", 50), alarm("c", 1, ended=30.0))

    assert alarms().out == alarms("list").out
    assert "c-1 " in alarms("--wide").out
    assert "c-1 " not in alarms("--open").out


def test_a_terminal_of_80_columns_shows_all_of_it(alarms, house, monkeypatch):
    """An id is there to be copied, and no word is cut off."""
    monkeypatch.setattr(admin_client, "WIDE", 80)
    number, node = 0x19AA41F2C30, "compressor-house-2"
    top = (("temperature-of-the-outlet [°C]", 0.5), ("current", 0.3), ("flow", 0.2))
    message(house, node, alarm(node, number, began=EPOCH, top=top, verdict="rejected"))
    house.asks("POST", f"/alarms/room/{node}-{number:x}/accept")
    house.time.steady += 1000.0
    out = alarms().out

    assert 80 >= max(map(len, out.splitlines()))
    words = {f"{node}-", f"{number:x}", "OPEN,", "fault,", "normal,", "current", "30%"}
    assert words <= set(out.split())
    # On several lines all its characters are there.
    letters = "".join(out.split())
    assert "compressor-house-2silentfor17min" in letters.replace("flow20%", "")
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


def test_a_silent_reporter_is_named(house, alarms):
    """An alarm that an absent aggregator reported last may be over."""
    passes_on(house, "a", alarm_status(alarm("d", 4)))
    house.time.steady += 2 * HOUR

    assert "a silent for 2 h" in " ".join(alarms("--wide").out.split())


def test_groups_are_separate(tmp_path, monkeypatch, submerge):
    with House(tmp_path, groups=("hall", "room")) as house:
        stands_at_its_socket(house, monkeypatch)
        message(house, "c", alarm())
        both = submerge("alarms", "--store", house.store).out
        one = submerge("alarms", "--group", "hall", "--store", house.store).out

    assert ["group", "room"] != both.split()[:2]
    assert both.startswith("hall: no node reports an alarm status\nroom: 1 in ALARM\n")
    assert "hall: no node reports an alarm status\nno alarms\n" == one


def test_past_alarms_come_from_the_history(tmp_path, monkeypatch, submerge):
    """The newest first, however many pages they take; machines get all that is known."""
    monkeypatch.setattr(past, "MOST_ALARMS", 2)
    with House(tmp_path, history_bytes=1 << 20) as house:
        stands_at_its_socket(house, monkeypatch)
        monkeypatch.setattr("time.time", lambda: house.time().wall)

        def run(*words: str) -> str:
            return submerge("alarms", "past", *words, "--store", house.store).out

        assert "no alarm is over\n" == run()
        for number in range(1, 6):
            message(house, "c", alarm(number=number, ended=10.0 * number))
        message(house, "c", alarm(number=9))

        assert ["c-5", "c-4", "c-3"] == [
            each["id"] for each in json.loads(run("--json", "--number", "3"))
        ]
        assert ["c-5", "c-4", "c-3", "c-2", "c-1"] == re.findall(r"c-\d", run("--wide"))


def test_no_alarms_is_a_line_too(alarms, house):
    """An empty table looks like a mistake; machines get an empty array."""
    message(house, "c")

    assert "room: 1 armed\nno alarms\n" == alarms().out
    assert "room: 1 armed\nno open alarms\n" == alarms("--open").out
    assert [] == json.loads(alarms("--json").out)


def test_machines_get_all_that_is_known(alarms, house):
    message(house, "c", alarm("c", 50), alarm("c", 1, ended=30.0), watched_s=HOUR)

    assert house.asks("GET", "/alarms").json == json.loads(alarms("--json").out)
    assert ["c-32"] == [each["id"] for each in json.loads(alarms("--json", "--open").out)]
    reported = json.loads(alarms("--json", "--nodes").out)
    assert ["c"] == [each["node"] for each in reported["nodes"]]
    assert [HOUR] == [each["watch"]["watched_s"] for each in reported["groups"]]


def test_each_node_shows_what_was_promised_beside_what_was_raised(alarms, house):
    reported = {"watched_s": 336 * HOUR, "allowed": 2.0, "raised": 9, "confirmed": 1}
    message(house, "c", alarm(), **reported)
    message(house, "d", state="learning", armed_in_s=3 * HOUR)
    house.hears("e", ROWS)
    passes_on(
        house,
        "a",
        alarm_status(alarm("f", 4), **reported),
        alarm_status(state="learning", armed_in_s=-1.0),
    )
    heading, _, *lines = (line.split(maxsplit=9) for line in alarms("--nodes").out.splitlines()[7:])

    assert ["node", "watched", "promised", "raised", "faults", "evidence", "state"] == heading
    numbers = ["336", "h", "2.00", "9", "1", "52", "to", "1"]
    lines = [[cell.strip() for cell in line] for line in lines]
    assert ["a", *numbers, "1 in ALARM, 1 learning (no limits yet)"] == lines[0]
    assert ["c", *numbers, "ALARM"] == lines[1]
    assert ["d", "0", "h", "0.00", "0", "0", "-", *["learning:", "armed", "in 3 h"]] == lines[2]
    assert "e - - - - - no model yet, or alarms are off" == " ".join(lines[3])


@pytest.mark.parametrize(
    ("states", "more", "said"),
    [
        ({"armed": 3}, {}, "3 armed"),
        ({"armed": 1, "alarm": 2}, {}, "2 in ALARM, 1 armed"),
        ({"learning": 1}, {"armed_in_s": None}, "1 learning (no limits yet)"),
        ({"learning": 1}, {"armed_in_s": 0.0}, "1 learning (armed soon)"),
        ({"stale": 1, "paused": 4}, {}, "4 paused, 1 whose model has expired"),
    ],
)
def test_states_are_written_in_words(states, more, said):
    counts = dict.fromkeys(("learning", "armed", "alarm", "paused", "stale"), 0) | states
    reported = {"open": 0, "watched_s": 0.0, "allowed": 0.0, "raised": 0, "confirmed": 0}
    watch = WatchView(counts, **reported | {"armed_in_s": 0.0} | more)

    assert [f"g: {said}"] == lines_of(GroupWatch("g", sum(counts.values()), watch))


@pytest.mark.parametrize(
    ("worst", "said"),
    [
        (0.0, "-"),
        (1.04, "1.04x"),
        (9.96, "9.96x"),
        (12.3, "12.3x"),
        (999.6, "over 1,000x"),
        (1e21, "over 1,000x"),
    ],
)
def test_how_far_over_is_rounded_for_people(worst, said):
    """A stuck channel is over nothing; above a thousand times, more is no information."""
    table = table_of([view(worst=worst)], now=EPOCH)
    (cells,) = [list(each.cells) for each in table.columns if each.header == "over"]

    assert [said] == [str(cell) for cell in cells]


def test_a_node_list_says_how_nodes_watch(submerge, house):
    """In the column of what is unusual; with what is on its way."""
    message(house, "c", alarm())
    message(house, "d", state="learning", armed_in_s=3 * HOUR)
    message(house, "e", state="paused")
    message(house, "f")
    house.asks("POST", "/nodes/room/f/pause")
    out = submerge("nodes", "list", "--store", house.store).out
    states = dict(re.findall(r"^ *(\w) +client .* none +(.+?) *$", out, re.MULTILINE))

    assert {
        "c": "ALARM",
        "d": "learning: armed in 3 h",
        "e": "paused",
        "f": "armed, to pause with its next report",
    } == states


# -- verdicts and pauses -------------------------------------------------------------


def test_an_alarm_is_accepted_or_rejected(alarms, house):
    """The output says what that does, and that the node is sent it at once."""
    message(house, "c", alarm("c", 50), alarm("c", 1, ended=30.0))
    house.time.steady += 40.0
    accepted, rejected = alarms("normal", "c-32"), alarms("fault", "c-1")

    heard = "c reported 40 s ago and is sent it at once"
    assert (0, f"c-32 is normal: c learns it. {heard}\n") == accepted[:2]
    assert (0, f"c-1 is a fault. {heard}\n") == rejected[:2]
    (desired,) = message(house, "c", alarm("c", 50)).desired_states
    assert {50: True, 1: False} == desired.accepted


def test_several_verdicts_at_once(alarms, house):
    """All or none: a typing error is refused before anything is done."""
    message(house, "c", alarm())
    message(house, "d", alarm("d", 2))
    refused = alarms("fault", "c-1", "d-2", "e-3")
    assert (2, "") == refused[:2]
    assert "no node reports alarm e-3 here" in refused.err
    assert () == message(house, "c", alarm()).desired_states

    reported = json.loads(alarms("reject", "c-1", "d-2", "--json").out)
    assert [{"c-1": "rejected"}, {"d-2": "rejected"}] == [each["verdicts"] for each in reported]


def test_a_node_is_no_alarm(alarms, house):
    """Its name is refused with the alarm to name, the open one or the last."""
    message(house, "c-1", alarm("c-1", 80, ended=90.0), alarm("c-1", 90))
    message(house, "d-2", alarm("d-2", 91, ended=95.0))
    message(house, "e-3")
    for name, hint in (
        ("c-1", "its open alarm is c-1-5a"),
        ("d-2", "its last alarm is d-2-5b"),
        ("e-3", "and it reports no alarm"),
    ):
        ran = alarms("reject", name)
        assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
        assert f"{name} is a node" in ran.err
        assert hint in ran.err


def test_a_node_further_down_gets_it_through_its_aggregator(alarms, learn, house):
    passes_on(house, "a", alarm_status(alarm("d", 4)))
    house.time.steady += 40.0

    heard = "a reported 40 s ago and is sent it at once, d after that\n"
    assert alarms("reject", "d-4").out.endswith(f"however long it lasts. {heard}")
    assert f"d of group room is to learn nothing until it is resumed. {heard}" == (
        learn("pause", "d").out
    )


def test_learning_pauses_and_goes_on(learn, house):
    message(house, "c")
    paused, again = learn("pause", "c"), learn("resume", "c", "--json")

    assert paused.out.startswith(
        "c of group room is to learn nothing until it is resumed. c reported"
    )
    assert (False, "c") == tuple(json.loads(again.out)[key] for key in ("paused", "node"))


def test_what_was_never_reported_here_needs_anyway(alarms, learn, house):
    """It may be below any of the aggregators."""
    passes_on(house, "a", alarm_status())
    for run in (
        lambda *more: alarms("accept", "d-4", *more),
        lambda *more: learn("pause", "d", *more),
    ):
        refused, taken = run(), run("--anyway")
        assert (2, "", 1) == (refused.status, refused.out, refused.err.count("\n"))
        assert "add --anyway" in refused.err
        assert 0 == taken.status
        assert "No report here names the node: it is sent to all aggregators below" in taken.out


def test_a_group_is_asked_for_where_it_cannot_be_known(tmp_path, monkeypatch, submerge):
    with House(tmp_path, groups=("hall", "room")) as house:
        stands_at_its_socket(house, monkeypatch)
        for group in ("hall", "room"):
            house.hears("c", ROWS, group=group, alarm_status=alarm_status(alarm()))
        at = ("--store", house.store)
        for words in (("alarms", "accept", "c-1"), ("nodes", "learn", "pause", "c")):
            ran = submerge(*words, *at)
            assert (2, True) == (ran.status, "is in several, hall, room" in ran.err)
            assert 0 == submerge(*words, "--group", "hall", *at).status
        unknown = submerge("nodes", "learn", "pause", "d", *at)
        assert "expected --group, one of hall, room, got none" in unknown.err
        assert 1 == len(
            house.hears("c", ROWS, group="hall", alarm_status=alarm_status(alarm())).desired_states
        )
        assert () == house.hears("c", ROWS, alarm_status=alarm_status(alarm())).desired_states


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["alarms", "accept"], "Missing argument 'ID...'"),
        (["alarms", "accept", "pump"], "an alarm's name is like pump-3-19aa41f2c30, got 'pump'"),
        (["alarms", "burn", "c-1"], "No such command 'burn'"),
        (["alarms", "--follow", "--open"], "leave out --open, --all and --nodes"),
        (["nodes", "learn", "pause"], "Missing argument 'NODE'"),
        (["nodes", "learn", "pause", "d"], "no node d of group room has reported here"),
    ],
)
def test_bad_input_is_one_line(submerge, house, words, said):
    """Status 2, before anything is changed."""
    ran = submerge(*words, "--store", house.store)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert said in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["alarms"],
        ["alarms", "list"],
        ["alarms", "accept"],
        ["nodes", "learn"],
        ["nodes", "learn", "resume"],
    ],
)
def test_help_has_an_example(submerge, words):
    """Also of the command that is meant where none is named."""
    ran = submerge(*words, "--help")

    assert (0, True) == (ran.status, "Example: submerge " in ran.out)


# -- following -----------------------------------------------------------------------


def surveyed(*looks: list[AlarmView] | NoAnswer) -> tuple[list[tuple[str, str]], list[str]]:
    """Follow through these looks, then press Ctrl-C; return events, and complaints."""
    answers = iter(looks)
    events: list[tuple[str, str]] = []
    complaints: list[str] = []

    def look() -> list[AlarmView]:
        answer = next(answers, None)
        if answer is None:
            raise KeyboardInterrupt
        if isinstance(answer, NoAnswer):
            raise answer
        return answer

    def tell(event: str, view: AlarmView) -> None:
        events.append((event, view.id))

    follow(look, tell, complaints.append, wait=lambda _: None)
    return events, complaints


def test_each_start_and_each_end_is_shown_once():
    """However often one looks, and though the figures change meanwhile."""
    worse, over = view(worst=9.0), view(ended=EPOCH + 60)

    assert [("start", "c-1"), ("end", "c-1")] == surveyed([view()], [worse], [over], [over], [])[0]


def test_what_was_over_before_is_no_news():
    """An open one is news; one that began and ended between two looks is shown whole."""
    old, quick = view("c-1", ended=EPOCH + 1), view("d-2", ended=EPOCH + 2)

    events, _ = surveyed([old, view("b-1")], [old, view("b-1"), quick])
    assert [("start", "b-1"), ("start", "d-2"), ("end", "d-2")] == events


def test_events_come_in_the_order_in_which_they_came_about():
    first, second = view("b-1", began=EPOCH + 5), view("c-1", ended=EPOCH + 4)

    events, _ = surveyed([view("c-1")], [first, second])
    assert [("start", "c-1"), ("end", "c-1"), ("start", "b-1")] == events


def test_what_is_no_longer_reported_is_gone_once():
    """Its node was forgotten; if it comes back, its end is shown, and no second start."""
    over = view(ended=EPOCH + 60)

    assert [("start", "c-1"), ("gone", "c-1")] == surveyed([view()], [], [], [view()])[0]
    assert ("end", "c-1") == surveyed([view()], [], [view()], [over])[0][-1]
    assert 3 == len(surveyed([view()], [], [view()], [over])[0])


def test_what_is_over_stays_over():
    """A node that has lost an hour reports an alarm as open again, and then as over."""
    over = view(ended=EPOCH + 60)

    assert [("start", "c-1"), ("end", "c-1")] == surveyed([view()], [over], [view()], [over])[0]


def test_an_aggregator_that_restarts_is_waited_for():
    """It is reported once each time, and no event is shown twice."""
    away = NoAnswer("no aggregator answers on x.sock: is it running?")
    events, complaints = surveyed([view()], away, away, [view()], away, [view(ended=EPOCH + 9)])

    assert [("start", "c-1"), ("end", "c-1")] == events
    assert [f"{away} Asking again until it answers"] * 2 == complaints


def test_one_that_is_not_there_at_all_is_a_failure():
    with pytest.raises(NoAnswer):
        surveyed(NoAnswer("no aggregator answers"))


def test_memory_is_bounded_and_reported_alarms_stay_in_it(monkeypatch):
    """Those that are reported now are never forgotten: they would begin again."""
    monkeypatch.setattr("submerge_operate.fleet.alarms.MOST", 4)
    followed = Followed()
    followed.news([])
    for i in range(20):
        followed.news([view("b-1"), view(f"c-{i}", ended=EPOCH)])

    assert 4 == len(followed._known)
    assert [] == followed.news([view("b-1"), view("c-19", ended=EPOCH)])


def test_ctrl_c_ends_a_follower_with_status_0(alarms, house, monkeypatch):
    """A line for each event, or a line of JSON with all that is known."""
    message(house, "c", alarm())
    looks = iter([lambda: message(house, "c", alarm(ended=61.0)), None])

    def waits(_: float) -> None:
        act = next(looks)
        if act is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(follow, "__kwdefaults__", {"wait": waits})
    ran = alarms("--follow")
    assert (0, "") == ran[::2]
    assert [
        "2023-11-14 22:13:21 UTC ALARM c-1: spe 2.5x, mote-1 75%, mote-4 25%",
        "2023-11-14 22:14:21 UTC over  c-1: lasted 60 s, spe 2.5x",
    ] == ran.out.splitlines()

    message(house, "c", alarm())
    looks = iter([lambda: message(house, "c", alarm(ended=61.0)), None])
    start, end = map(json.loads, alarms("--follow", "--json").out.splitlines())
    assert ("start", "2023-11-14T22:13:21.000Z", True, None) == tuple(
        start[key] for key in ("event", "at", "open", "ended")
    )
    assert ("end", "2023-11-14T22:14:21.000Z", {"mote-1": 0.75, "mote-4": 0.25}) == tuple(
        end[key] for key in ("event", "at", "top")
    )


def test_a_person_sees_how_far_channels_are_off(alarms, house):
    """With its sign, beside the share; the values and the onset where there is room for them."""
    off = (Deviation("mote-1", 21.5, 19.25), Deviation("mote-4", -3.0, 1e6))
    told = replace(alarm("c"), first=(("mote-4", 0.625),), deviations=off)
    message(house, "c", told)
    assert "mote-1 75% (+2.25), mote-4 25% (-1e+06)" in " ".join(alarms().out.split())
    (found,) = json.loads(alarms("--json").out)
    assert {"mote-4": 0.625} == found["first"]
    assert {"value": 21.5, "expected": 19.25, "difference": 2.25} == found["deviations"]["mote-1"]


def test_a_provisional_alarm_that_is_over_is_only_counted(alarms, house):
    """Most of them were false. An open one is listed, and all are with `--all`."""
    message(house, "c", replace(alarm("c"), ended=EPOCH + 60, provisional=True))
    message(house, "d", replace(alarm("d"), provisional=True))
    ran = alarms().out

    assert ("d-" in ran, "c-" in ran) == (True, False)
    assert "without 1 provisional or repeated ones that have ended: --all lists them" in ran
    assert "c-" in alarms("--all").out
    assert 2 == len(json.loads(alarms("--json").out))
    assert line_of("start", view(provisional=True)).endswith("flow 75%, provisional")


@pytest.mark.parametrize("channels", range(1, 9))
def test_channels_that_fell_silent_together_are_all_counted(channels):
    """Three are named."""
    top = {f"s{j}": 1 / channels for j in range(min(channels, 3))}
    more = f" and {channels - 3} more" if channels > 3 else ""

    assert channels_text(view(cause="silent", top=top)).endswith("%" + more)


def test_an_open_alarm_says_what_a_channel_reads_and_what_was_expected(alarms, house):
    """Of the channel most to blame, in its unit; an alarm that is over says nothing more."""
    off = {
        "flow": deviation_facts(Deviation("", 46.14, 40.2)),
        "current": deviation_facts(Deviation("", 9.0, 9.5)),
    }
    told = view("c-7", top={"flow": 0.6, "current": 0.2}, deviations=off)
    over = view("c-6", ended=EPOCH + 60, deviations=off)

    assert ["c-7: flow reads 46.1, where the others say 40.2"] == value_lines([told, over])
    on = {"flow": deviation_facts(Deviation("", 46.14, 0.3))}
    said = "c-7: flow on at 46.1, 2.5 times its longest run; else 0.3"
    assert [said] == value_lines([view("c-7", cause="duty", top={"flow": 1.0}, deviations=on)])
    message(house, "c", replace(alarm("c"), deviations=(Deviation("mote-1", 21.5, 19.25),)))
    assert "mote-1 reads 21.5, where the others say 19.2" in alarms().out


def test_values_and_the_onset_are_shown_where_there_is_room():
    off = {"flow": deviation_facts(Deviation("", 21.5, 19.25))}
    told = view(first={"flow": 0.625}, deviations=off)

    assert ("flow 62%", "flow 21.5, expected 19.25") == (shares_text(told.first), values_text(told))


def test_an_alarm_that_settled_is_shown_as_such():
    """It is over, and no person has judged it."""
    told = view(ended=EPOCH + 7200, settled=True)

    assert line_of("end", told).endswith("c-1: lasted 2 h, spe 2.5x, settled at a new level")
    (state,) = list(table_of([told], now=EPOCH + 9000).columns)[-1].cells
    assert "over, settled at a new level" == str(state)


def test_a_line_says_what_happened():
    over = view(ended=EPOCH + 7200, verdict="rejected", worst=0.0, cause="stuck")

    assert "2023-11-15 00:13:20 UTC over  c-1: lasted 2 h, stuck, a fault" == line_of("end", over)
    assert line_of("gone", view()).endswith("gone  c-1: no node reports it any more")


# -- missed faults ---------------------------------------------------------------------


def test_a_missed_fault_is_said_and_counts(alarms, submerge, house):
    """Said once or twice it is one; what was learnt meanwhile stays, and that is said."""
    message(house, "c", watched_s=336 * HOUR, raised=3, confirmed=3)
    house.passes(61.0)
    times = "2023-11-14 22:00", "2023-11-14 23:00"
    said = alarms("missed", "c", *times, "--channel", "mote-1")
    alarms("missed", "c", *times)

    assert "a missed fault of c counts. What was read meanwhile was learnt" in said.out
    assert "`submerge nodes quarantine c`" in said.out
    assert "  found 3 of 4 known faults: 75% (30% to 95%)" in alarms().out
    shown = submerge("model", "show", "--store", house.store).out
    assert "verdicts   found 3 of 4 known faults: 75% (30% to 95%)" in shown
    assert "c had no fault in this time" in alarms("missed", "c", *times, "--take-back").out
    assert "found 3 of 3 known faults" in alarms().out


def test_a_fault_that_raised_an_alarm_was_not_missed(alarms, house):
    """The command says what to say instead; times and names that cannot be are refused."""
    message(house, "c", alarm("c", 1, ended=50.0))
    begin, end = (f"2023-11-14 {clock}" for clock in ("22:00", "23:00"))

    assert "say `submerge alarms fault c-1` if it was one" in alarms("missed", "c", begin, end).err
    assert "expected a fault with FROM before TO" in alarms("missed", "c", end, begin).err
    assert (
        "group room has no channel 'flow rate', but mote-0"
        in alarms(
            "missed", "c", "2023-11-14 12:00", "2023-11-14 13:00", "--channel", "flow rate"
        ).err
    )
    assert "no group has a node x" in alarms("missed", "x", begin, end).err


# -- what if ---------------------------------------------------------------------------


def test_what_another_rate_would_have_done(submerge, tmp_path, monkeypatch):
    """By block maxima and the trail; faults that would be lost are named, and a stuck channel is
    raised at any rate."""
    sketch = QuantileSketch.of(np.random.default_rng(0).exponential(1.0, 1500) + 1.0, FINE)
    empty = QuantileSketch.of(np.ones(50))
    maxima = replace(NONE, **dict.fromkeys(KINDS, sketch), longest=1500)
    scores = ScoreSketches(empty, empty, None, maxima)
    with House(tmp_path, history_bytes=1 << 20) as house:
        stands_at_its_socket(house, monkeypatch)
        minute = int(EPOCH // 60)
        trail = ScoreTrail(minute + 2, bytes(map(level_of, (1.01, 1.02, 4.0))))
        began = {f"c-{i}": minute * 60 + 60 * i - EPOCH for i in range(3)}
        several = [
            replace(
                alarm("c", i + 1, verdict="rejected", cause="ewma" if i else "stuck"),
                began=EPOCH + at,
                ended=EPOCH + at + 5,
            )
            for i, at in enumerate(began.values())
        ]
        status = alarm_status(*several, watched_s=70 * 24 * HOUR, allowed=70.0, raised=3)
        house.hears("c", ROWS, alarm_status=status, scores=scores, trail=trail)
        house.passes(61.0)
        out = submerge("alarms", "what-if", "--at-most", "1 false per week", "--store", house.store)

    assert [
        "1 false per week, in place of 7 per week and node:",
        "  of 3 confirmed as faults: 2 raised, 1 not raised",
        f"    {several[1].name}: not raised",
    ] == out.out.splitlines(), out.err


def test_what_if_needs_a_history_and_a_rate_in_time(alarms, house):
    message(house, "c", alarm("c", 1, ended=50.0))
    house.passes(61.0)

    assert "no history is kept here" in alarms("what-if", "--at-most", "1 false per day").err
    assert "expected a rate in time" in alarms("what-if", "--at-most", "1 false per 900 rows").err
