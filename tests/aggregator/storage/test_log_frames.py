"""A log whose end SQLite leaves out in silence: one line says how much."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from submerge_aggregator.storage import FRAME, HEADER, NOTHING, PAGE_BYTES, frames_of
from submerge_aggregator.store import Store

DAMAGED = "store's log is damaged, its end is not used"
STEP = FRAME.size + PAGE_BYTES
COMMITS = 12


@pytest.fixture
def files(tmp_path):
    """A store and its log with twelve commits in it, as a killed process leaves them."""
    with closing(Store(tmp_path / "made")) as store:
        for number in range(COMMITS):
            store.write({("n",): b"%d" % number, ("row",): bytes([number]) * 4500})
        return (tmp_path / "made").read_bytes(), (tmp_path / "made-wal").read_bytes()


def open_damaged(tmp_path: Path, database: bytes, log: bytes) -> bytes | None:
    """Start a store with such a log; return its number."""
    path = tmp_path / "store"
    path.write_bytes(database)
    Path(f"{path}-wal").write_bytes(log)
    path.chmod(0o600)
    Path(f"{path}-wal").chmod(0o600)
    with closing(Store(path)) as store:
        return store.load().get(("n",))


def commits_in(log: bytes, tmp_path: Path) -> tuple[int, ...]:
    (tmp_path / "log").write_bytes(log)
    return frames_of(str(tmp_path / "log")).commits


def test_a_whole_log_is_read_in_silence(tmp_path, files, caplog):
    """Every commit is found where SQLite finds it."""
    assert b"11" == open_damaged(tmp_path, *files)
    assert COMMITS == len(commits_in(files[1], tmp_path))
    assert [] == caplog.records


@pytest.mark.parametrize("place", [HEADER.size + 9, HEADER.size + FRAME.size + 77])
@pytest.mark.parametrize("lost", [2, 5, COMMITS])
def test_a_damaged_frame_is_one_line_with_what_is_behind_it(tmp_path, files, caplog, place, lost):
    """In a frame's head or its page: the commits from there on are not read, and are counted."""
    database, log = files
    ends = (0, *commits_in(log, tmp_path))
    damaged = bytearray(log)
    damaged[ends[COMMITS - lost] * STEP + place] ^= 16
    left = open_damaged(tmp_path, database, damaged)

    assert (None if lost == COMMITS else b"%d" % (COMMITS - lost - 1)) == left
    (line,) = caplog.records
    assert DAMAGED == line.message
    assert ends[COMMITS - lost] == line.facts["frames_read"]
    assert lost == line.facts["commits_unread"]


def test_a_damaged_header_costs_all_of_it_and_one_line(tmp_path, files, caplog):
    """SQLite then takes the log for an empty one."""
    database, log = files
    assert open_damaged(tmp_path, database, log[:17] + bytes([log[17] ^ 1]) + log[18:]) is None
    (line,) = caplog.records
    assert (0, COMMITS) == (line.facts["frames_read"], line.facts["commits_unread"])


@pytest.mark.slow
def test_a_log_cut_short_by_a_kill_is_no_damage(tmp_path, files, caplog):
    """At any length: what is behind the last whole commit was never acknowledged."""
    database, log = files
    for length in range(0, len(log), 997):
        open_damaged(tmp_path, database, log[:length])
    assert [] == caplog.records


def test_what_is_no_log_has_no_frames(tmp_path):
    """A missing file, an empty one, a folder."""
    (tmp_path / "empty").write_bytes(b"")
    for name in ("missing", "empty", ""):
        assert NOTHING == frames_of(str(tmp_path / name))
