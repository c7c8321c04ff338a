"""Files as a sensor: which columns, in what order, and when."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.config.sensors import FileSensor
from submerge_client.config.tomlfile import decoded
from submerge_client.sensors.files import BEHIND_S, TOGETHER_S, FileReplay

nan = np.nan


def replay(channels: Sequence[str], *, paths: Sequence[Path], **chosen: Any) -> FileReplay:
    """Return a replay, with settings as from a file and arguments of the class."""
    own = {key: chosen.pop(key) for key in ("note", "clock", "wait") if key in chosen}
    settings = {"kind": "file", "paths": list(map(str, paths)), **chosen}
    return FileReplay(channels, decoded(settings, FileSensor), **own)


def replayed(*channels: str, **chosen: Any) -> np.ndarray:
    """All rows that a replay hands over."""
    blocks = [np.empty((0, len(channels)))]
    replay(channels, **chosen).read(blocks.append, threading.Event())
    return np.concatenate(blocks)


def refused(*channels: str, **chosen: Any) -> str:
    with pytest.raises(UsageError) as caught:
        replay(channels, **chosen)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Watch:
    """A clock that moves with each wait, and remembers when rows came."""

    def __init__(self) -> None:
        self.now = 100.0
        self.came: list[tuple[float, np.ndarray]] = []

    def clock(self) -> float:
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> None:
        self.now += seconds

    def hand(self, rows: np.ndarray) -> None:
        self.came.append((self.now, rows))


def test_columns_are_found_by_name(file) -> None:
    """In the schema's order; what no channel is called may hold anything."""
    path = file("a.csv", "when,b,a\n12:00,1,2\n12:01,3,NA\n")

    np.testing.assert_array_equal([[2, 1], [nan, 3]], replayed("a", "b", paths=[path]))


def test_files_follow_one_another_each_with_its_own_header(file) -> None:
    """Order of columns and separator may change from file to file."""
    paths = [file("one.csv", "a,b\n1,2\n"), file("two.csv", "b;x;a\n4;0;3\n")]

    np.testing.assert_array_equal([[1, 2], [3, 4]], replayed("a", "b", paths=paths))


def test_without_a_header_columns_go_by_place(file) -> None:
    """As they do for a schema without names; columns in `skip` are left out first."""
    bare, named = file("a.dat", "1 2 3\n"), file("a.csv", "u,v,w\n1,2,3\n")

    np.testing.assert_array_equal([[1, 2, 3]], replayed("a", "b", "c", paths=[bare]))
    np.testing.assert_array_equal([[1, 3]], replayed("a", "b", paths=[bare], skip=["x1"]))
    np.testing.assert_array_equal([[2, 3]], replayed("x0", "x1", paths=[named], skip=["u"]))


def test_names_that_look_like_places_are_names_if_the_file_has_them(file) -> None:
    """A header x1,x0 is believed."""
    path = file("a.csv", "x1,x0\n1,2\n")

    np.testing.assert_array_equal([[2, 1]], replayed("x0", "x1", paths=[path]))


@pytest.mark.parametrize(
    ("content", "chosen", "message"),
    [
        ("temp,hum\n1,2\n", {}, "a.txt: expected a column 'a' for the channel of that name"),
        ("a,be\n1,2\n", {}, "got no such column; did you mean 'be'?"),
        ("1 2 3\n", {}, "a.txt: expected 2 columns, one a channel, got 3; give it a header"),
        ("1 2 3\n", {"skip": ["x7"]}, "a.txt: expected a column 'x7' to skip, got no such column"),
        ("a,b,a\n1,2,3\n", {}, "expected different names for all columns, got 'a' for columns 1"),
        ("a,b\n", {}, "expected rows of numbers below line 1, got only a header"),
        ("a,b\n1,2\n", {"speed": -1}, "speed: expected a number of at least 0, got -1"),
        ("a,b\n1,2\n", {"speed": nan}, "speed: expected a number of at least 0, got nan"),
        ("a,b\n1,2\n", {"skp": ["a"]}, 'did you mean "skip"?'),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_row(file, content, chosen, message) -> None:
    """By the constructor, in one line, with the file and what it has."""
    assert message in refused("a", "b", paths=[file("a.txt", content)], **chosen)


def test_no_file_is_refused(tmp_path) -> None:
    """An empty list, and a path where nothing is."""
    assert refused("a", paths=[]).startswith("paths: expected at least one path, got an empty list")
    assert "nope: expected a file, got nothing" in refused("a", paths=[tmp_path / "nope"])


def test_a_bad_number_further_on_is_met_on_the_way(file) -> None:
    """After the rows of the blocks before it, with file, line and column."""
    path = file("a.csv", "a,b\n" + "1,2\n" * 600 + "1,?x\n")
    blocks: list[np.ndarray] = []
    sensor = replay(("a", "b"), paths=[path])

    with pytest.raises(UsageError, match=r"a.csv, line 602, column 2 \(b\): expected a number"):
        sensor.read(blocks.append, threading.Event())
    assert sum(map(len, blocks)) >= 500


def test_zero_may_mean_missing(file) -> None:
    """Only when asked for, and counted."""
    path = file("a.csv", "a,b\n0,2\n-0.0,0\n")
    sensor = replay(("a", "b"), paths=[path], zero_is_missing=True)
    blocks: list[np.ndarray] = []
    sensor.read(blocks.append, threading.Event())

    np.testing.assert_array_equal([[nan, 2], [nan, nan]], np.concatenate(blocks))
    assert sensor.counts["zeros"] == 3
    np.testing.assert_array_equal([[0, 2], [0, 0]], replayed("a", "b", paths=[path]))


def test_a_loop_goes_on_until_it_is_stopped(file) -> None:
    """From the last file to the first, until `stop` is set."""
    paths = [file("one.csv", "a,b\n1,2\n"), file("two.csv", "a,b\n3,4\n")]
    sensor = replay(("a", "b"), paths=paths, loop=True)
    stop, got = threading.Event(), []

    def hand(rows: np.ndarray) -> None:
        got.extend(rows[:, 0])
        if len(got) == 7:
            stop.set()

    sensor.read(hand, stop)

    assert got == [1, 3, 1, 3, 1, 3, 1]
    assert sensor.counts["passes"] == 3


@given(speed=st.floats(0.01, 1e5), n=st.integers(1, 150))
def test_rows_come_neither_early_nor_late(tmp_path_factory, speed, n) -> None:
    """Row i comes i / speed seconds after the first, or a twentieth of a second later."""
    path = tmp_path_factory.getbasetemp() / "numbers.dat"
    path.write_text("".join(f"{i} 0\n" for i in range(n)))
    watch = Watch()
    replay(("a", "b"), paths=[path], speed=speed, clock=watch.clock, wait=watch.wait).read(
        watch.hand, threading.Event()
    )

    rounding = 1e-9
    at = [(row[0], when - 100) for when, rows in watch.came for row in rows]
    assert list(range(n)) == [i for i, _ in at]
    assert all(-rounding <= when - i / speed <= TOGETHER_S + rounding for i, when in at)


def test_a_node_that_falls_behind_is_not_hurried(file) -> None:
    """After a long delay, rows keep their distance from one another."""
    watch = Watch()

    def hand(rows: np.ndarray) -> None:
        watch.hand(rows)
        if len(watch.came) == 2:
            watch.now += 3600

    sensor = replay(
        ("a", "b"), paths=[file("a.dat", "1 1\n" * 5)], speed=1, clock=watch.clock, wait=watch.wait
    )
    sensor.read(hand, threading.Event())

    assert BEHIND_S < 3600
    assert [when - 100 for when, _ in watch.came] == [0, 1, 3601, 3602, 3603]
    assert sensor.counts["late"] == 1


def test_it_stops_while_it_waits(file) -> None:
    """A row an hour does not keep a program for an hour."""
    stop = threading.Event()

    def wait(stop: threading.Event, _seconds: float) -> None:
        stop.set()

    handed: list[np.ndarray] = []
    replay(
        ("a", "b"), paths=[file("a.dat", "1 1\n" * 5)], speed=1 / 3600, clock=lambda: 0.0, wait=wait
    ).read(handed.append, stop)

    assert len(handed) == 1


def test_what_is_worth_knowing_of_a_file_is_noted(file) -> None:
    """Guesses about names, and what an Intel Lab log left out."""
    notes: list[tuple[str, dict[str, object]]] = []
    replay(
        ("a", "1"),
        paths=[file("a.csv", "a,1\n3,4\n")],
        note=lambda what, /, **facts: notes.append((what, facts)),
    )

    ((what, facts),) = notes
    assert ("replay", "a.csv") == (what, facts["file"])
    assert "read as column names" in str(facts["remark"])
