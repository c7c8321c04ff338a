"""When the newest copy was made: it survives a restart, and no damage to its file ends the root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from submerge_aggregator.storage import LastBackup


def record_of(store: Path) -> Path:
    """The file beside the store."""
    return store.with_name(f"{store.name}.last-backup")


def test_nothing_is_known_of_a_store_that_was_never_copied(tmp_path):
    """And nothing is written for that."""
    assert 0.0 == LastBackup(tmp_path / "root.db").made_s
    assert [] == list(tmp_path.iterdir())


def test_the_next_process_knows_the_newest(tmp_path):
    """Whatever its time is: a clock may have been ahead."""
    store = tmp_path / "root.db"
    for made_s in (2e9, 1.7e9):
        LastBackup(store).note(made_s, 4096)
        assert made_s == LastBackup(store).made_s
    assert [record_of(store)] == list(tmp_path.iterdir())
    assert 0o600 == stat.S_IMODE(record_of(store).stat().st_mode)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"made_s": "now", "bytes": 1}',
        b'{"made_s": 1e400, "bytes": 1}',
        b'{"made_s": -5.0, "bytes": 1}',
        b'{"made_s": 1e30, "bytes": 1}',
    ],
)
def test_a_file_that_says_nothing_is_none(tmp_path, data):
    """The next copy writes it again."""
    store = tmp_path / "root.db"
    record_of(store).write_bytes(data)
    last = LastBackup(store)
    assert 0.0 == last.made_s

    last.note(1.7e9, 4096)
    assert 1.7e9 == LastBackup(store).made_s


def test_a_folder_in_its_place_stops_nothing(tmp_path, caplog):
    """It is known until the process ends, and one line says that it is not kept."""
    store = tmp_path / "root.db"
    os.mkdir(record_of(store))
    last = LastBackup(store)
    last.note(1.7e9, 4096)

    assert (1.7e9, 0.0) == (last.made_s, LastBackup(store).made_s)
    assert "backup not noted" in caplog.text
