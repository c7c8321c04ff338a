"""`submerge drill` at a running aggregator: nodes are asked, and their answers are shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from submerge.drill.drill import ChannelAnswer, packed
from submerge.protocol.messages import DrillReport, DrillTaken, Reason, Stamp
from support.commands import Ran, shell, stands_at_its_socket
from support.house import SCHEMA, House
from support.nodes import GROUP, new_incarnation

ROWS = np.random.default_rng(0).standard_normal((50, 6))


@pytest.fixture
def house(tmp_path: Path, monkeypatch):
    """A root, to which two clients have reported."""
    with House(tmp_path) as house:
        for node in ("press-1", "press-2"):
            house.hears(node, ROWS)
        stands_at_its_socket(house, monkeypatch)
        yield house


@pytest.fixture
def drill(house: House, monkeypatch, capsys) -> Callable[..., Ran]:
    """Run `submerge drill` on that root."""
    run = shell(monkeypatch, capsys)
    return lambda *args: run("drill", "--store", house.store, *args)


def answers(house: House, node: str, size: float, r2: float = 0.9) -> DrillTaken:
    """Hand in the answer of a node; its first channel is blind, the last finds no noise."""
    channels = [ChannelAnswer(1.0, r2, size, 2 * size, 3 * size, 0.5, math.nan)] * 6
    channels[0] = ChannelAnswer(1.0, 0.1, size, 2 * size, 3 * size, 0.5, math.nan)
    channels[5] = ChannelAnswer(1.0, r2, size, 2 * size, math.inf, 0.5, math.nan)
    stamp = Stamp(node, GROUP, new_incarnation(1), 1)
    fields = (SCHEMA.fingerprint, 1.7e9, 7, 256, 30, 60, 1 / 604800, packed(channels))
    return house.posts("drill", DrillReport(stamp, node, *fields))


def test_it_shows_what_nodes_have_found_out(house: House, drill: Callable[..., Ran]):
    """The median and the worst of each channel, in its unit, and a line for each node."""
    assert Reason.ACK is answers(house, "press-1", 0.5).reason
    answers(house, "press-2", 1.5)
    shown = drill()

    assert "mote-0 [°C]" in shown.out
    assert "1.5 (1.5)" in shown.out
    assert "none" in shown.out.split("mote-5 [°C]")[1].split("\n")[0]
    assert "blind" in shown.out.split("mote-0 [°C]")[1].split("\n")[0]
    assert "press-1: 2023-11-14 22:13:20 UTC, 256 rows, 60 tries within 60 rows" in shown.out
    assert "1 false a week" in shown.out
    reported = json.loads(drill("--json").out)
    assert {"best": 0.5, "median": 1.5, "worst": 1.5} == reported["channels"][1]["bias"]
    assert 2 == reported["channels"][0]["blind"]


def test_what_people_say_was_missed_stands_beside_it(house: House, drill: Callable[..., Ran]):
    """By channel, one that was taken back left out; without any there is no column."""
    answers(house, "press-1", 0.5)
    assert "missed" not in drill().out
    said = "missed: faults that raised no alarm, as people say"
    for number, channel in enumerate(["mote-1", "mote-1", "mote-2", "mote-3", ""]):
        assert bool(number) == (f"{said}\n" in drill().out)
        for taken_back in [False, True][: 2 if channel == "mote-3" else 1]:
            at = f"from={100 * number}&to={100 * number + 50}&channel={channel}"
            path = f"/nodes/{GROUP}/press-{1 + number % 2}/missed?{at}&withdrawn={int(taken_back)}"
            assert 200 == house.asks("POST", path).status

    shown = drill()
    assert f"{said}; 1 of no channel in particular\n" in shown.out
    reported = json.loads(drill("--json").out)
    assert [0, 2, 1, 0, 0, 0] == [each["missed"] for each in reported["channels"]]
    assert 1 == reported["missed_elsewhere"]


def test_it_draws_them(house: House, drill: Callable[..., Ran], tmp_path: Path):
    """A PNG."""
    answers(house, "press-1", 0.5)
    assert 0 == drill("--plot", tmp_path / "drill.png").status
    assert (tmp_path / "drill.png").read_bytes().startswith(b"\x89PNG")


def test_without_answers_it_says_how_to_ask(drill: Callable[..., Ran]):
    """It is no failure."""
    assert "ask one with --ask NODE" in drill().out


def test_a_node_is_asked_with_its_next_report(house: House, drill: Callable[..., Ran]):
    """The answer to it has the number of a drill."""
    asked = drill("--ask", "press-1")
    states = house.hears("press-1", ROWS).desired_states

    assert "press-1 of group room is to drill." in asked.out
    assert [True] == [each.drill > 0 for each in states]


def test_a_node_that_is_unknown_is_named(drill: Callable[..., Ran]):
    """With what to do."""
    asked = drill("--ask", "press-9")

    assert 2 == asked.status
    assert "press-9" in asked.err


def test_an_answer_of_a_stranger_is_not_taken(house: House, drill: Callable[..., Ran]):
    """It has not reported here."""
    assert Reason.UNAVAILABLE is answers(house, "press-9", 0.5).reason
    assert "No node" in drill().out


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["x.csv", "--model", "m.model"], "--store is for the model of a running aggregator"),
        (["x.csv"], "--store is for"),
    ],
)
def test_files_and_a_running_aggregator_exclude_each_other(
    drill: Callable[..., Ran], args: list[str], expected: str
):
    """One line, status 2."""
    done = drill(*args)
    assert 2 == done.status
    assert expected in done.err
