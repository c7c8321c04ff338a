"""`submerge nodes`: what an operator sees of nodes, and one line for what cannot be."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from submerge.protocol.messages import Counts, Incarnation, Reason
from submerge.schema import Scaling
from submerge_aggregator.questions.views import NodesPage, NodeView, RowView
from submerge_files.console import ways
from submerge_files.console.units import ago
from submerge_operate.fleet.node_places import nodes_below
from submerge_operate.fleet.nodes_table import table_of
from support.commands import shell, stands_at_its_socket
from support.house import SCHEMA, House
from support.nodes import EPOCH, new_incarnation

ROWS = np.random.default_rng(0).normal(size=(60, 6))

CONFIG = """
node = "root"
store = "{store}"
[listen.grpc]
insecure = true
[groups.room]
summary.rank = 1
[groups.room.schema]
channels = ["a", "b"]
"""


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    with House(tmp_path) as house:
        stands_at_its_socket(house, monkeypatch)
        yield house


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def nodes(submerge, house):
    """Run `submerge nodes` against the house."""
    return lambda verb, *rest: submerge("nodes", verb, *rest, "--store", house.store)


NOW = 1_800_000_000.0


def row(**other: Any) -> RowView:
    known = {"incarnation": "1-2", "created_s": NOW, "seq": 1, "learnt": 5, "withheld": 0}
    known |= {"lost": 0, "lifetime": 5, "silent_s": 1.0, "as_of_s": NOW, "software": "submerge 1"}
    return RowView(**known | {"model_version": 0, "final": False, "schema": "current"} | other)


def view(name: str, *rows: RowView) -> NodeView:
    return NodeView("g", name, "client", rows, (), banned=False, quarantined=False)


def cells(table: Any) -> dict[str, list[str]]:
    """A table's columns, by their headings."""
    return {str(each.header): [str(cell) for cell in each.cells] for each in table.columns}


def names(nodes) -> list[str]:
    return [view["node"] for view in json.loads(nodes("list", "--json").out)]


def test_a_person_sees_a_line_a_node(nodes, house):
    """Readings of all its incarnations, how long it is silent, and what is unusual about it."""
    house.hears("a", ROWS, final=True)
    house.hears("a", ROWS[:40], incarnation=new_incarnation(2), counts=Counts(40, 3, 2), version=9)
    house.hears("b", ROWS, software="fork 0.1")
    house.hears("c", ROWS)
    house.asks("POST", "/nodes/room/c/quarantine")
    house.time.steady += 300.0
    ran, wide = nodes("list"), nodes("list", "--wide")

    assert 0 == ran.status == wide.status
    heading, _, a, b, c = (line.split() for line in ran.out.strip().splitlines())
    assert ["node", "kind", "readings", "lost", "silent", "model", "state"] == heading
    assert ["a", "client", "100", "2", "5", "min", "newest"] == a
    assert ["none"] == b[6:]
    assert "quarantined (operator) since 2023-11-14 22:15:00 UTC" == " ".join(c[7:])
    heading, _, a, b, c = (line.split() for line in wide.out.strip().splitlines())
    assert [
        "withheld",
        "lost",
        "silent",
        "model",
        "own",
        "unlike",
        "algorithm",
        "software",
    ] == heading[3:-1]
    assert ["100", "3", "2"] == a[2:5]
    assert ["none", "0%", "0", "-", "fork", "0.1"] == b[7:]


def test_a_terminal_of_80_columns_shows_all_of_it(nodes, house, monkeypatch):
    """Names in full, and every word of what is unusual."""
    monkeypatch.setattr("submerge_files.console.admin_client.WIDE", 80)
    house.hears("compressor-house-2", ROWS, counts=Counts(123_456_789, 0, 1_234))
    house.hears("site-3", ROWS, incarnation=new_incarnation(2))
    house.hears("site-3", ROWS[:9], incarnation=new_incarnation(2))
    out = nodes("list").out

    assert 80 >= max(map(len, out.splitlines()))
    assert {"compressor-house-2", "123,456,789", "1,234", "(shrunk)"} <= set(out.split())
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


def test_a_node_that_contradicts_itself_is_shown_as_quarantined(nodes, house):
    """And why, and since when, to people and to machines; released, it is as before."""
    house.hears("c", ROWS)
    assert Reason.SHRUNK is house.hears("c", ROWS[:9]).reason
    (view,) = json.loads(nodes("list", "--json").out)

    assert "quarantined (shrunk) since 2023-11-14 22:15:00 UTC" in nodes("list").out
    assert (True, "shrunk", EPOCH + 100) == tuple(
        view[key] for key in ("quarantined", "cause", "since_s")
    )
    assert 0 == nodes("release", "c").status
    (view,) = json.loads(nodes("list", "--json").out)
    assert (False, None, None) == tuple(view[key] for key in ("quarantined", "cause", "since_s"))


def test_a_node_far_from_the_others_is_shown_as_such():
    """With how far: a few degrees are another machine, 90 are another kind, or a liar."""
    views = [replace(view("a", row()), outlier="88 deg"), view("b", row())]

    assert ["far from the others (88 deg)", ""] == cells(table_of(views, now=NOW))["state"]


def test_a_node_that_is_bounded_is_shown_as_such():
    """With how much of it counts, and why."""
    words = "counts 0.1: 10 times the readings of a node of its age"
    views = [replace(view("a", row()), bounded=words), view("b", row())]

    assert [words, ""] == cells(table_of(views, now=NOW))["state"]


def test_an_incarnation_that_another_one_has_taken_over_is_nothing_to_look_at():
    """After a healthy start, the readings that measured the scale are counted by the next one."""
    measured = row(learnt=0, withheld=0, lost=0, moved=1000, schema="old", silent_s=60.0)
    waits = row(learnt=1000, schema="old", silent_s=60.0)
    begun = cells(table_of([view("c", row(), measured)], now=NOW))
    waiting = cells(table_of([view("c", row(), waits)], now=NOW))

    assert [""] == begun["state"]
    assert ["old schema, 2 incarnations"] == waiting["state"]


@pytest.mark.parametrize(
    ("at_once", "said"), [(0, "2 incarnations"), (2, "2 incarnations at once")]
)
def test_two_machines_with_one_kit_are_no_restart(at_once, said):
    """The aggregator knows: both go on reporting in turns."""
    found = replace(view("c", row(), row(silent_s=200.0)), at_once=at_once)

    assert [said] == cells(table_of([found], now=NOW))["state"]


def test_two_machines_that_report_in_turns_are_shown(nodes, house):
    """In words, in JSON and as a metric."""
    for seq in range(7):
        house.hears("c", ROWS, incarnation=new_incarnation(1 + seq % 2))
        house.time.steady += 150.0
        (found,) = json.loads(nodes("list", "--json").out)
        assert (0 if seq < 6 else 2) == found["at_once"]

    assert "2 incarnations at once" in nodes("list").out
    assert b'submerge_nodes_twice{group="room"} 1.0' in house.watches("/metrics").body


def test_a_restarted_aggregator_makes_no_restart_two_machines(tmp_path, monkeypatch, submerge):
    """All silence counts from its start, but what a row speaks of is as old as it was."""
    incarnations = [Incarnation(int(1000 * (EPOCH + steady)), 1) for steady in (100.0, 600.0)]

    def shows_a_restart(house: House) -> bool:
        stands_at_its_socket(house, monkeypatch)
        shown = submerge("nodes", "list", "--store", house.store).out
        return "2 incarnations" in shown and "at once" not in shown

    with House(tmp_path) as house:
        house.hears("c", ROWS, incarnation=incarnations[0])
        house.time.steady += 500.0
        house.hears("c", ROWS[:9], incarnation=incarnations[1])
        assert shows_a_restart(house)
    house = House(tmp_path)
    house.time.steady = 700.0
    with house:
        house.time.steady += 30.0
        house.hears("c", ROWS[:9], incarnation=incarnations[1])
        assert shows_a_restart(house)


def test_a_node_that_restarts_and_runs_twice_shows_how_many_run():
    """The rows of ended incarnations are among them, until they are folded away."""
    shown = table_of([replace(view("c", row(), row(), row()), at_once=2)], now=NOW)

    assert ["3 incarnations, 2 at once"] == cells(shown)["state"]


def test_a_terminal_is_not_obeyed(nodes, house):
    """What a node calls its software is foreign text."""
    house.hears("a", ROWS, software="\x1b[2J\x1b[31mboo")

    assert "boo" in nodes("list", "--wide").out
    assert "\x1b" not in nodes("list", "--wide").out


def test_groups_are_separate(tmp_path, monkeypatch, submerge):
    with House(tmp_path, groups=("hall", "room")) as house:
        stands_at_its_socket(house, monkeypatch)
        house.hears("c", ROWS)
        house.hears("c", ROWS, group="hall")
        both = submerge("nodes", "list", "--store", house.store)
        one = submerge("nodes", "list", "--group", "hall", "--store", house.store)
        forgotten = submerge("nodes", "forget", "c", "--yes", "--store", house.store)
        meant = submerge("nodes", "forget", "c", "--yes", "--group=hall", "--store", house.store)

    assert ["group", "hall", "room"] == [
        line.split()[0] for line in both.out.splitlines() if line.strip()[:1].isalpha()
    ]
    assert "room" not in one.out
    assert (2, "submerge: expected --group: c is in several, hall, room\n") == forgotten[::2]
    assert (0, "c of group hall is forgotten\n") == meant[:2]


@pytest.mark.parametrize("verb", ["forget", "quarantine", "release"])
def test_a_node_that_no_group_knows_is_not_asked_for_its_group(
    tmp_path, monkeypatch, submerge, verb
):
    """There is none to say; and one that is forgotten is known where it was."""
    with House(tmp_path, groups=("hall", "room")) as house:
        stands_at_its_socket(house, monkeypatch)
        house.hears("c", ROWS)
        submerge("nodes", "forget", "c", "--yes", "--store", house.store)
        sure = ["--yes"] if verb == "forget" else []
        unknown = submerge("nodes", verb, "d", *sure, "--store", house.store)
        known = submerge("nodes", verb, "c", *sure, "--store", house.store)

    said = "no group has a node d, here or below (hall, room)"
    assert (2, f"submerge: {said}\n") == unknown[::2]
    assert (0, True) == (known.status, known.out.startswith("c of group room is "))


def test_an_empty_list_is_a_line_too(nodes):
    """An empty table looks like a mistake; machines get an empty array."""
    assert (0, "no node has reported yet\n", "") == nodes("list")
    assert [] == json.loads(nodes("list", "--json").out)


def test_the_configuration_says_where(submerge, house, tmp_path):
    """Its store is the one that the socket stands beside."""
    house.hears("c", ROWS)
    path = tmp_path / "root.toml"
    path.write_text(CONFIG.format(store=house.store))
    ran = submerge("nodes", "list", "--config", path, "--json")

    assert ["c"] == [view["node"] for view in json.loads(ran.out)]


def test_forget_asks_and_says_what_it_cannot_undo(nodes, house, monkeypatch):
    """And a no changes nothing."""
    house.hears("c", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    ran = nodes("forget", "c")

    assert (1, "") == (ran.status, ran.out)
    assert "c of group room: 60 readings leave the model" in ran.err
    assert "cannot be undone, and does not change the row of a dead aggregator" in ran.err
    assert "nothing has changed" in ran.err
    assert ["c"] == names(nodes)


def test_a_yes_is_taken(nodes, house, monkeypatch):
    house.hears("c", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    assert (0, "c of group room is forgotten\n") == nodes("forget", "c")[:2]
    assert [] == names(nodes)


def test_a_script_has_to_add_yes(nodes, house, monkeypatch):
    house.hears("c", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ran = nodes("forget", "c")

    assert 2 == ran.status
    assert "submerge: expected an answer, got none: add --yes" in ran.err
    assert ["c"] == names(nodes)


def test_forgetting_an_aggregator_warns_of_all_below_it(nodes, house, monkeypatch):
    house.joins("a", b"\1" * 16)
    house.hears("a", ROWS, fence=b"\1" * 16)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    assert "it and all below it begin again from zero" in nodes("forget", "a").err


def test_a_ban_holds_until_it_is_released(nodes, house):
    house.hears("c", ROWS)
    reported = "c of group room is forgotten, and refused until it is released\n"
    assert (0, reported) == nodes("forget", "c", "--ban", "--yes")[:2]
    assert Reason.BANNED is house.hears("c", ROWS, incarnation=new_incarnation(2)).reason
    assert "banned" in nodes("list").out

    assert (0, "c of group room is released\n") == nodes("release", "c")[:2]
    assert Reason.ACK is house.hears("c", ROWS, incarnation=new_incarnation(2)).reason


def test_a_ban_needs_no_group_and_no_report(nodes, house):
    """It is said, and taken back by a word of its own."""
    assert (0, "c is banned in every group\n") == nodes("ban", "c", "--yes")[:2]
    assert Reason.BANNED is house.hears("c", ROWS).reason
    assert (0, "c is no longer banned\n") == nodes("unban", "c")[:2]
    assert Reason.ACK is house.hears("c", ROWS).reason


def test_a_ban_is_asked_about_and_says_where_it_is_on_its_way(nodes, house, monkeypatch):
    """Aggregators below get the order with their next reports."""
    house.joins("site", b"\1" * 16)
    house.hears("site", ROWS, fence=b"\1" * 16)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    ran = nodes("ban", "c")
    assert (1, True) == (ran.status, "all below it is cut off" in ran.err)

    done = "c is banned in every group; the order is on its way to site\n"
    assert done == nodes("ban", "c", "--yes").out
    view = json.loads(nodes("unban", "c", "--json").out)
    assert {"node": "c", "banned": False, "on_its_way": ["site"]} == view


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_ban_asks_whether_what_was_reported_stays(nodes, house, monkeypatch, answer):
    """Its readings went on in the model, and nothing said so."""
    house.hears("c", ROWS)
    house.hears("d", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"y\n{answer}\n"))
    ran = nodes("ban", "c")
    (view,) = (each for each in json.loads(nodes("list", "--json").out) if each["node"] == "c")

    assert "its 60 readings stay in the model: quarantine as well?" in ran.err
    assert (0, True, answer == "y") == (ran.status, view["banned"], view["quarantined"])
    assert (answer == "y") == ("its rows are quarantined" in ran.out)
    assert (answer == "n") == ("its 60 readings stay in the model" in ran.out)


def test_a_ban_without_a_question_says_that_readings_stay(nodes, house):
    house.hears("c", ROWS)
    ran = nodes("ban", "c", "--yes")

    assert "; its 60 readings stay in the model: `submerge nodes quarantine c` takes" in ran.out
    assert "quarantined" not in nodes("list").out


def test_one_that_is_not_banned_cannot_be_taken_back(nodes):
    ran = nodes("unban", "c")

    assert 2 == ran.status
    assert ran.err.startswith("submerge: c is not banned here; no node is. Take a ban back where")


def test_one_that_is_forgotten_may_still_be_banned(nodes, house):
    """It is no longer listed, and still remembered."""
    house.hears("c", ROWS)
    nodes("forget", "c", "--yes")

    assert 0 == nodes("forget", "c", "--ban", "--yes").status
    assert Reason.BANNED is house.hears("c", ROWS, incarnation=new_incarnation(2)).reason


def test_quarantine_is_shown_in_json_too(nodes, house):
    house.hears("c", ROWS)
    ran = nodes("quarantine", "c", "--json")

    assert (True, "c") == tuple(json.loads(ran.out)[key] for key in ("quarantined", "node"))
    assert "its rows are kept" in nodes("quarantine", "c").out


@pytest.mark.parametrize(
    "words", [["forget"], ["forget", "--ban"], ["drop", "--old"], ["quarantine"], ["release"]]
)
def test_an_unknown_node_is_bad_input(nodes, words):
    """Before the question."""
    verb, *options = words
    ran = nodes(verb, "d", *options)

    assert (2, "") == (ran.status, ran.out)
    assert ran.err.startswith("submerge: no group has a node d, here or below (room)")
    assert 1 == ran.err.count("\n")


def test_one_row_of_a_node_is_dropped(nodes, house, monkeypatch):
    """By the first letters of its name, and after a yes."""
    house.hears("c", ROWS)
    house.hears("c", ROWS[:9], incarnation=new_incarnation(2))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    name = str(new_incarnation(1))
    ran = nodes("drop", "c", "--incarnation", name[: name.index("-")])

    assert (0, f"c of group room: incarnation {name} is dropped\n") == ran[:2]
    assert f"c of group room: incarnation {name}, 60 readings.\nThis cannot be undone." in ran.err
    (view,) = json.loads(nodes("list", "--json").out)
    assert [9] == [row["learnt"] for row in view["rows"]]
    assert Reason.STALE is house.hears("c", ROWS).reason
    assert Reason.ACK is house.hears("c", ROWS[:10], incarnation=new_incarnation(2)).reason


def test_a_no_drops_nothing(nodes, house, monkeypatch):
    house.hears("c", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    ran = nodes("drop", "c", "--incarnation", str(new_incarnation(1)))

    assert (1, "") == ran[:2]
    assert "nothing has changed" in ran.err
    assert ["c"] == names(nodes)


def test_what_is_of_an_old_schema_is_dropped(nodes, house):
    """Rows and the sums of closed incarnations; those of the schema in use stay."""
    house.hears("c", ROWS, final=True)
    house.hears("c", ROWS[:40], incarnation=new_incarnation(2))
    settled = replace(SCHEMA, scaling=Scaling((0.0,) * 6, (2.0,) * 6), half_life=60.0)
    house.learns(settled)
    house.hears("c", ROWS[:9], incarnation=new_incarnation(3), schema=settled)
    (before,) = json.loads(nodes("list", "--json").out)
    assert "old schema" in nodes("list").out
    ran = nodes("drop", "c", "--old", "--yes", "--json")
    after = json.loads(ran.out)

    assert [40, 9] == sorted((row["learnt"] for row in before["rows"]), reverse=True)
    assert (0, [9], []) == (ran.status, [row["learnt"] for row in after["rows"]], after["sealed"])
    again = nodes("drop", "c", "--old")
    assert (2, "submerge: c of group room has nothing under an old schema here\n") == again[::2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            [],
            (
                "expected --incarnation ID or --old, got neither;"
                f" it has {new_incarnation(1)} (60 readings)"
            ),
        ),
        (["--old", "--incarnation", "1"], "expected --incarnation ID or --old, got both"),
        (["--incarnation", "f"], f"one of its incarnations, got 'f'; it has {new_incarnation(1)}"),
        (["--old"], "c of group room has nothing under an old schema here"),
    ],
)
def test_what_is_to_be_dropped_has_to_be_there(nodes, house, options, said):
    """Else one line lists what there is."""
    house.hears("c", ROWS)
    ran = nodes("drop", "c", *options)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert said in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "expected --config FILE, --store PATH or --at URL of an aggregator, got none"),
        (["list", "--store", "a", "--config", "b"], "of an aggregator, got --config and --store"),
        (["list", "--config", "nowhere.toml"], "got no such file"),
        (["forget", "--store", "a"], "Missing argument 'NODE'"),
    ],
)
def test_bad_input_is_one_line(submerge, arguments, said):
    """Status 2, before the question."""
    ran = submerge("nodes", *arguments)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert said in ran.err


@pytest.mark.usefixtures("house")
def test_an_aggregator_that_is_not_there_is_a_failure(submerge, tmp_path):
    """Status 1: the question was a good one."""
    ran = submerge("nodes", "list", "--store", tmp_path / "other.db")
    said = f"no aggregator answers on {tmp_path.resolve()}/other.db.sock: is it running?"

    assert (1, "", f"submerge: {said}\n") == ran


def test_another_users_aggregator_is_bad_input(submerge, monkeypatch, tmp_path):
    """The file's mode keeps others out: the error names who may."""

    def shut(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(ways._OverUnix, "connect", shut)
    ran = submerge("nodes", "list", "--store", tmp_path / "root.db")

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "is its owner's alone: run this as the aggregator's user" in ran.err


def test_what_is_not_installed_is_named(nodes, house, monkeypatch):
    """With the package to install, not a traceback."""
    house.hears("c", ROWS)
    monkeypatch.setitem(sys.modules, "msgspec", None)
    ran = nodes("list")

    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert (
        "this needs msgspec, which is not installed: pip install 'submerge[aggregator]'" in ran.err
    )


def test_an_aggregator_that_cannot_now_is_a_failure(nodes, house):
    """It is ending: status 1, and why."""
    house.ends()
    ran = nodes("list")

    assert (1, "submerge: the aggregator is starting or stopping: try again\n") == ran[::2]


@pytest.mark.parametrize(
    ("seconds", "reported"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (2e5, "2 d")],
)
def test_silence_is_given_in_one_unit(seconds, reported):
    assert reported == ago(seconds)


@pytest.mark.parametrize(
    ("until", "said"),
    [(NOW + 3 * 86400, "3 d"), (NOW + 600, "10 min"), (NOW - 1, "ended"), (0.0, "none")],
)
def test_the_table_shows_how_long_a_certificate_still_holds(until, said):
    """As the node reported it; the column is there once one of them has a certificate."""
    other = view("other", row(certified_until_s=NOW + 7 * 86400))

    shown = cells(table_of([other, view("pump-1", row(certified_until_s=until))], now=NOW))

    assert ["7 d", said] == shown["cert"]
    assert "cert" not in cells(table_of([view("pump-1", row())], now=NOW))


class Tree:
    """Stands for an aggregator and those below it, by their paths."""

    def __init__(self, pages: dict[str, list[NodeView]]) -> None:
        self._pages = pages

    def read(self, _: Any, *__: str, path: str = "", **___: str) -> NodesPage:
        return NodesPage(path or "root", "g", self._pages.get(path, []), False)


def test_marks_of_orders_are_no_machines():
    """A node that was quarantined or banned at each level is listed where it reports, or once."""
    site = NodeView("g", "north", "aggregator", (row(),), (), banned=False, quarantined=False)
    marked = NodeView("g", "p3", None, (), (), banned=False, quarantined=True)
    banned = NodeView("g", "p4", None, (), (), banned=True, quarantined=False)
    pages = {"": [site, marked, banned], "north": [view("p3", row()), banned]}
    there = nodes_below(Tree(pages), ["g"]).nodes

    assert [("", "north"), ("north", "p3"), ("", "p4")] == [
        (each.under, each.view.node) for each in sorted(there, key=lambda each: each.view.node)
    ]
    assert all(not each.view.quarantined for each in there)


# -- unlike ----------------------------------------------------------------------------


def related(seed: int, ratio: float = 1.0) -> np.ndarray:
    """Rows of six channels that follow two causes; the third by another gain."""
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(300, 2)) @ np.random.default_rng(5).normal(size=(2, 6))
    rows[:, 2] *= ratio
    return rows + 0.05 * draw.normal(size=(300, 6)) + seed


def test_the_odd_one_out_is_told_in_words(nodes, house):
    """The one whose channel follows the others half as much; without an alarm."""
    for seed in range(6):
        house.hears(f"n{seed}", related(seed, 0.5 if seed == 4 else 1.0))
    house.hears("new", related(9)[:3])
    ran, known = nodes("unlike"), json.loads(nodes("unlike", "--json").out)

    assert 0 == ran.status
    assert ["n4", *(f"n{i}" for i in (0, 1, 2, 3, 5))] == [
        next(iter(known["nodes"])),
        *sorted(set(known["nodes"]) - {"n4"}),
    ]
    assert 0.5 == pytest.approx(known["nodes"]["n4"]["ratio"], rel=0.1)
    assert "mote-2 follows mote-3 0.5 times as much" in ran.out
    assert "too few rows to say: new" in ran.out


def test_two_kinds_of_machines_are_told(nodes, house):
    for seed in range(10):
        house.hears(f"n{seed}", related(seed, 0.5 if seed < 4 else 1.0))

    assert "two kinds of machines: on n0, n1, n2, n3 mote-2 follows" in nodes("unlike").out


def test_of_too_few_machines_none_is_unlike(nodes, house):
    house.hears("a", related(1))
    assert "too few machines to say" in nodes("unlike").out
    for seed in range(5):
        house.hears(f"n{seed}", related(seed))
    assert "none is unlike the others" in nodes("unlike").out
