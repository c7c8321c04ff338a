"""Names that strangers chose, in the tables and lines of commands: text, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.alarm_status import Deviation
from submerge.schema import Channel, Schema
from submerge_files.console.units import MOST_LETTERS, name_text
from support.alarmed import alarm, alarm_status
from support.commands import shell, stands_at_its_socket
from support.hostile_names import HOSTILE, MARK
from support.house import House

NAMES = [*HOSTILE.values()]
SCHEMA = Schema(tuple(map(Channel, NAMES, NAMES[1:] + NAMES[:1])))
ROWS = np.random.default_rng(0).normal(size=(60, len(NAMES)))


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    """A root whose channels and units have all of the names, and whose alarms blame them."""
    with House(tmp_path, schema=SCHEMA) as house:
        stands_at_its_socket(house, monkeypatch)
        monkeypatch.setattr("time.time", lambda: house.time().wall)
        for i in range(0, len(NAMES), 3):
            blamed = NAMES[i : i + 3]
            off = tuple(Deviation(each, 1.0, 2.0) for each in blamed)
            top = tuple((each, 0.3) for each in blamed)
            status = alarm_status(alarm(f"c{i}", top=top, first=top, deviations=off))
            house.hears(f"c{i}", ROWS, schema=SCHEMA, alarm_status=status)
        house.passes(1.0)
        yield house


COMMANDS = [
    ("nodes", "list", "--wide"),
    ("alarms",),
    ("alarms", "--wide"),
    ("alarms", "--nodes"),
    ("model", "show"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_prints_what_changes_nothing_on_a_terminal(house, monkeypatch, capsys, words):
    """No control character, no mark of direction, no line that a name has begun or made long."""
    ran = shell(monkeypatch, capsys)(*words, "--store", house.store)

    assert (0, "") == (ran.status, ran.err)
    assert [] == [each for each in ran.out if not each.isprintable() and each != "\n"]
    assert len(ran.out) < 60_000
    if words[0] == "model" or words in (("alarms",), ("alarms", "--wide")):
        assert MARK in ran.out


@given(st.text())
def test_a_name_is_one_line_of_bounded_length(name):
    """Whatever it has; one without anything unusual is as it was."""
    text = name_text(name)

    assert text.isprintable()
    assert len(text) == min(len(name), MOST_LETTERS)
    assert text == name or not name.isprintable() or len(name) > MOST_LETTERS


def test_an_error_that_quotes_a_name_is_one_line(house, monkeypatch, capsys):
    ran = shell(monkeypatch, capsys)("nodes", "forget", "\x1b[2J\u202e", "--store", house.store)

    assert 2 == ran.status
    assert ran.err.removesuffix("\n").isprintable()
