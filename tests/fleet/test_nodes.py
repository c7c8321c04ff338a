"""`submerge nodes`: what an operator sees of nodes, and one line for what cannot be."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from submerge.messages import Counts, Reason
from submerge_fleet import asking
from submerge_fleet.asking import ago
from support.commands import shell, stands_at_its_socket
from support.house import House
from support.nodes import life

ROWS = np.random.default_rng(0).normal(size=(60, 6))

CONFIG = """
node = "root"
store = "{store}"
[listen.grpc]
insecure = true
[groups.room]
summary.rank = 2
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


def names(nodes) -> list[str]:
    return [view["node"] for view in json.loads(nodes("list", "--json").out)]


def test_a_person_sees_a_line_a_node(nodes, house):
    """Readings of all its lives, how long it is silent, and what is unusual about it."""
    house.hears("a", ROWS, final=True)
    house.hears("a", ROWS[:40], incarnation=life(2), counts=Counts(40, 3, 2), version=9)
    house.hears("b", ROWS, software="fork 0.1")
    house.hears("c", ROWS)
    house.asks("POST", "/nodes/room/c/quarantine")
    house.time.steady += 300.0
    ran = nodes("list")

    assert 0 == ran.status
    heading, _, a, b, c = (line.split() for line in ran.out.strip().splitlines())
    assert ["node", "kind", "readings", "withheld", "lost", "heard"] == heading[:6]
    assert ["a", "client", "100", "3", "2", "5", "min", "ago", "newest"] == a[:9]
    assert ["none", "fork", "0.1"] == b[8:]
    assert "quarantined" == c[-1]


def test_a_terminal_is_not_obeyed(nodes, house):
    """What a node calls its software is foreign text."""
    house.hears("a", ROWS, software="\x1b[2J\x1b[31mboo")

    assert "\x1b" not in nodes("list").out


def test_groups_are_told_apart(tmp_path, monkeypatch, submerge):
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


def test_nobody_yet_is_said(nodes):
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
    assert "cannot be undone, and does not reach into the row of a dead aggregator" in ran.err
    assert "nothing has changed" in ran.err
    assert ["c"] == names(nodes)


def test_a_yes_is_taken(nodes, house, monkeypatch):
    house.hears("c", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    assert (0, "c of group room is forgotten\n") == nodes("forget", "c")[:2]
    assert [] == names(nodes)


def test_where_nobody_can_answer_a_script_has_to_say_yes(nodes, house, monkeypatch):
    house.hears("c", ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ran = nodes("forget", "c")

    assert 2 == ran.status
    assert "submerge: expected an answer, and nobody is here to give one: add --yes" in ran.err
    assert ["c"] == names(nodes)


def test_forgetting_an_aggregator_warns_of_all_below_it(nodes, house, monkeypatch):
    house.joins("a", b"\1" * 16)
    house.hears("a", ROWS, fence=b"\1" * 16)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    assert "it and all below it begin again from zero" in nodes("forget", "a").err


def test_a_ban_holds_until_it_is_released(nodes, house):
    house.hears("c", ROWS)
    told = "c of group room is forgotten, and refused until it is released\n"
    assert (0, told) == nodes("forget", "c", "--ban", "--yes")[:2]
    assert Reason.BANNED is house.hears("c", ROWS, incarnation=life(2)).reason
    assert "banned" in nodes("list").out

    assert (0, "c of group room is released\n") == nodes("release", "c")[:2]
    assert Reason.ACK is house.hears("c", ROWS, incarnation=life(2)).reason


def test_one_that_is_forgotten_may_still_be_banned(nodes, house):
    """It is no longer listed, and still remembered."""
    house.hears("c", ROWS)
    nodes("forget", "c", "--yes")

    assert 0 == nodes("forget", "c", "--ban", "--yes").status
    assert Reason.BANNED is house.hears("c", ROWS, incarnation=life(2)).reason


def test_quarantine_is_told_to_machines_too(nodes, house):
    house.hears("c", ROWS)
    ran = nodes("quarantine", "c", "--json")

    assert (True, "c") == tuple(json.loads(ran.out)[key] for key in ("quarantined", "node"))
    assert "its rows are kept" in nodes("quarantine", "c").out


@pytest.mark.parametrize("verb", ["forget", "quarantine", "release"])
def test_an_unknown_node_is_bad_input(nodes, verb):
    ran = nodes(verb, "d", *(["--yes"] if verb == "forget" else []))

    assert (2, "") == (ran.status, ran.out)
    assert ran.err.startswith("submerge: group room has no node d here")
    assert 1 == ran.err.count("\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "expected --config FILE or --store PATH of an aggregator, got neither"),
        (["list", "--store", "a", "--config", "b"], "of an aggregator, got both"),
        (["list", "--config", "nowhere.toml"], "got no such file"),
        (["forget", "--store", "a"], "Missing argument 'NODE'"),
    ],
)
def test_bad_input_is_one_line(submerge, arguments, said):
    """Status 2, before anybody is asked."""
    ran = submerge("nodes", *arguments)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert said in ran.err


@pytest.mark.usefixtures("house")
def test_an_aggregator_that_is_not_there_is_a_failure(submerge, tmp_path):
    """Status 1: the question was a good one."""
    ran = submerge("nodes", "list", "--store", tmp_path / "other.db")
    said = f"no aggregator answers on {tmp_path.resolve()}/other.db.sock: is it running?"

    assert (1, "", f"submerge: {said}\n") == ran


def test_somebody_elses_aggregator_is_bad_input(submerge, monkeypatch, tmp_path):
    """The file's mode keeps others out: it says who may."""

    def shut(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(asking._OverUnix, "connect", shut)
    ran = submerge("nodes", "list", "--store", tmp_path / "root.db")

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "is its owner's alone: run this as the aggregator's user" in ran.err


def test_what_is_not_installed_is_said(nodes, house, monkeypatch):
    """With the package to install, not a traceback."""
    house.hears("c", ROWS)
    monkeypatch.setitem(sys.modules, "msgspec", None)
    ran = nodes("list")

    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert "this needs msgspec, which is not here: pip install 'submerge[aggregator]'" in ran.err


def test_an_aggregator_that_cannot_now_is_a_failure(nodes, house):
    """It is ending: status 1, and why."""
    house.ends()
    ran = nodes("list")

    assert (1, "submerge: the aggregator is starting or stopping: try again\n") == ran[::2]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (2e5, "2 d")],
)
def test_silence_is_told_in_one_unit(seconds, told):
    assert told == ago(seconds)
