"""The audit log: whole lines, rotated, of bounded size, and never in the way."""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_aggregator.audit import (
    EVENTS,
    FILES,
    MOST_LINE,
    MOST_WAITING,
    AuditFiles,
    AuditLog,
    entry_of,
    line_of,
    lines_in,
)
from support.disks import small_disk
from support.patience import until

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=600) | st.binary(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=12),
    max_leaves=20,
)


def entries(path: Path) -> list[dict]:
    return [entry_of(line) for line in lines_in(path)]


@given(st.sampled_from(sorted(EVENTS)), st.floats(0, 1e10), st.dictionaries(st.text(), values))
def test_any_facts_make_one_short_line_that_reads_back(event, at, facts):
    """They may come from a peer."""
    facts = {name: value for name, value in facts.items() if name not in ("at", "event")}
    line = line_of(event, at, facts)
    assert 1 == line.count(b"\n") == line.endswith(b"\n")
    if len(line) <= MOST_LINE:
        entry = entry_of(line)
        assert (event, round(at, 3)) == (entry["event"], entry["at"])
    assert len(line_of(event, at, dict.fromkeys("abcdefghij", "x" * 9999))) < MOST_LINE


@given(st.binary(max_size=200))
def test_what_is_no_entry_is_left_out(line):
    """A line cut short, or of another program."""
    assert entry_of(line) is None
    whole = line_of("join", 1.5, {"node": "pump-1"})
    assert entry_of(whole[: len(whole) // 2]) is None


def test_files_are_rotated_and_no_line_is_lost_before_the_eighth(tmp_path):
    """Each is at most so long; all are their owner's alone; the newest lines are kept."""
    path = tmp_path / "audit.jsonl"
    files = AuditFiles(path, most_bytes=1000)
    for number in range(400):
        files.append(line_of("join", number, {"node": f"pump-{number}"}))
    files.close()

    kept = sorted(tmp_path.iterdir())
    assert FILES == len(kept)
    assert all(each.stat().st_size <= 1000 for each in kept)
    assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in kept}
    seen = [entry["at"] for entry in entries(path)]
    assert list(range(400))[-len(seen) :] == seen
    assert len(seen) > 100


@pytest.mark.parametrize("accident", ["removed", "renamed", "replaced", "folder removed"])
def test_an_entry_is_in_the_file_of_the_name(accident, tmp_path):
    """Also after another program has rotated or removed the file that was being written."""
    path = tmp_path / "log" / "audit.jsonl"
    files = AuditFiles(path)
    files.append(line_of("start", 1, {}))
    if accident == "folder removed":
        shutil.rmtree(path.parent)
    else:
        path.rename(path.with_name("elsewhere"))
    if accident == "replaced":
        path.write_bytes(b"")
    files.append(line_of("join", 2, {}))
    files.close()
    assert [2] == [entry["at"] for entry in entries(path)]


def test_a_log_goes_on_after_a_kill(tmp_path):
    """A line that was cut short stays alone, and readers leave it out."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(line_of("start", 1, {}) + b'{"at": 2, "eve')
    files = AuditFiles(path)
    files.append(line_of("join", 3, {}))
    files.close()
    assert [1, 3] == [entry["at"] for entry in entries(path) if entry]


@pytest.mark.parametrize("kind", ["link", "folder", "device"])
def test_only_a_file_of_its_own_is_taken(tmp_path, kind):
    """One line at the start; nothing is written where it points."""
    path = tmp_path / "audit.jsonl"
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path(os.devnull)
    with pytest.raises(UsageError, match="must be a file"):
        AuditFiles(path)
    assert not (tmp_path / "elsewhere").exists()


def test_entries_of_any_thread_are_on_disk_when_it_is_closed(tmp_path):
    """In the order in which they came, with the time of the clock."""
    path = tmp_path / "audit.jsonl"
    log = AuditLog(AuditFiles(path), lambda: 7.25)
    for number in range(500):
        log.record("join", node=f"pump-{number}")
    log.close()
    log.record("join", node="late")
    assert [f"pump-{n}" for n in range(500)] == [entry["node"] for entry in entries(path)]
    assert {7.25} == {entry["at"] for entry in entries(path)}
    assert 1 == log.dropped


def test_without_a_file_nothing_is_kept(tmp_path):
    """`path = ""`: no thread, no file, nothing dropped."""
    log = AuditLog(None)
    log.record("join", node="pump-1")
    log.close()
    assert (0, []) == (log.dropped, list(tmp_path.iterdir()))


class Stuck(AuditFiles):
    """A disk that fails as often as it is asked to."""

    failures = 10**9

    def append(self, lines: bytes) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(28, "No space left on device")
        super().append(lines)


def test_a_disk_that_fails_costs_entries_and_one_line(tmp_path, caplog):
    """They are counted; when it works again, an entry and a line have their number."""
    caplog.set_level(logging.INFO, "submerge")
    files = Stuck(tmp_path / "audit.jsonl")
    log = AuditLog(files)
    for number in range(5):
        log.record("join", node=f"pump-{number}")
        until(lambda n=number: log.dropped == n + 1, lambda: f"{log.dropped} dropped")
    files.failures = 0
    log.record("join", node="pump-5")
    log.close()

    first, last = entries(tmp_path / "audit.jsonl")
    assert ("dropped", 5, "pump-5") == (first["event"], first["count"], last["node"])
    said = [record.message for record in caplog.records]
    assert ["audit log not written, entries are dropped", "audit log written again"] == said


def test_a_full_queue_drops_and_counts(tmp_path, monkeypatch):
    """What waits is bounded."""
    log = AuditLog(AuditFiles(tmp_path / "audit.jsonl"))
    monkeypatch.setattr(AuditLog, "_write_all", lambda _: None)
    for _ in range(MOST_WAITING + 3):
        log.record("join")
    assert 3 == log.dropped


def test_a_real_full_disk_never_raises(tmp_path):
    """Nor does it tear a line that a reader would take for whole."""
    with small_disk(tmp_path / "tiny", "64k") as disk:
        log = AuditLog(AuditFiles(disk.place / "audit.jsonl"))
        log.record("start")
        until(lambda: (disk.place / "audit.jsonl").exists(), lambda: "a file")
        disk.fill()
        for number in range(2000):
            log.record("join", node=f"pump-{number}")
        until(lambda: log.dropped > 0, lambda: "entries dropped")
        disk.make_room()
        log.record("stop")
        log.close()
        found = [entry for entry in entries(disk.place / "audit.jsonl") if entry]
    assert "stop" == found[-1]["event"]
    assert log.dropped >= sum(entry["count"] for entry in found if entry["event"] == "dropped") > 0


def test_a_reader_follows_across_rotations(tmp_path):
    """Every line once, in order, whether it was there before or comes later."""
    path = tmp_path / "audit.jsonl"
    files = AuditFiles(path, most_bytes=300)
    follower = lines_in(path, follow=True)
    assert next(follower) is None
    seen = []
    for number in range(40):
        files.append(line_of("join", number, {}))
        seen += [json.loads(line)["at"] for line in islice(follower, 3) if line]
    files.close()
    assert list(range(40)) == seen
