"""A root's store says how many histories it alone holds, at work and at rest."""

from __future__ import annotations

from contextlib import closing

import pytest

from submerge_aggregator.store import Store
from submerge_operate.doctor.aggregator import histories as found
from submerge_operate.doctor.findings import ok
from support import histories
from support.commands import stands_at_its_socket
from support.house import House


@pytest.mark.parametrize("running", [True, False])
def test_histories_are_counted(tmp_path, monkeypatch, running):
    """Where the aggregator runs, it is asked: it holds its store."""
    day = histories.fitted(histories.recorded(1))
    with House(tmp_path, schema=day.folds.schema) as house:
        stands_at_its_socket(house, monkeypatch)
        none = list(found(house.store, ["room"], running=running))
        house.asks("POST", "/histories/room", histories.file_of(day))
        if not running:
            house.ends()
        one = list(found(house.store, ["room"], running=running))

    assert [] == none
    expected = "1 history lives in root.db alone: keep the model files"
    assert [ok("histories", expected)] == one


def test_a_store_that_is_none_is_not_counted(tmp_path):
    """Another check reports it."""
    path = tmp_path / "root.db"
    assert [] == list(found(path, ["room"], running=False))
    path.write_text("my thesis, which is no database at all")
    assert [] == list(found(path, ["room"], running=False))
    assert [] == list(found(path, ["room"], running=True))


def test_a_name_is_no_kind_of_record(tmp_path):
    """A group or a node that is called history."""
    path = tmp_path / "root.db"
    with closing(Store(path)) as store:
        store.write({("row", "history", "history", "1", "2"): b"", ("rank", "history"): b""})

    assert [] == list(found(path, ["room"], running=False))
