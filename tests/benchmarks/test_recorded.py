"""Records of rooms: tables with what they were measured with."""

from __future__ import annotations

import json
import types

import numpy as np
import pytest

import recorded
from report import Table, command_of

TABLE = Table("rows", {"n": "d", "is": ".2f"}, [(np.int64(3), np.float64(0.5)), (4, None)], "Why.")


@pytest.fixture
def room(monkeypatch):
    """A room's module; no pools of threads are asked."""
    monkeypatch.setattr(recorded.blas, "check", lambda: ["one"])
    module = types.ModuleType("a_room", "What it measures.\n\nHow it does.")
    module.__file__ = "benchmarks/a_room.py"
    return module


def test_a_record_is_read_back_as_its_tables(room):
    """Through JSON, numbers of NumPy included."""
    made = json.loads(recorded.record(room, command_of(room, "--n 3"), [TABLE], quick=True))

    assert ("What it measures", "How it does.") == (made["title"], made["about"])
    assert ("python benchmarks/a_room.py --n 3", True) == (made["command"], made["quick"])
    assert TABLE.markdown == Table.of_record(made["tables"][0]).markdown


def test_what_is_measured_is_what_was_loaded(room):
    """And what the room starts; but not what only writes results down."""
    room.STARTS = ("client/submerge_client",)
    made = json.loads(recorded.record(room, command_of(room), [TABLE], quick=False))

    assert "benchmarks/blas.py" in made["measures"]
    assert "client/submerge_client" in made["measures"]
    assert not set(recorded.WRITES) & set(made["measures"])
    assert not [each for each in made["measures"] if each.startswith(".venv")]
    assert not recorded.changed(made)


def test_a_file_that_has_gone_is_a_change():
    """Not an error: the page can still be made."""
    assert recorded.changed({"measures": ["benchmarks/gone.py"], "measured": ""})


def test_a_table_of_other_things_is_refused(room):
    """What JSON cannot hold is no figure."""
    with pytest.raises(TypeError, match="expected a number or text"):
        recorded.record(room, "", [Table("rows", {"n": "", "is": ""}, [(1, {2})])], quick=False)
