"""The history's thread: what befalls its file costs the history, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from submerge_aggregator.history import recorder as recorders
from submerge_aggregator.history.file import TrailHeard
from submerge_aggregator.history.recorder import HistoryRecorder, HistoryUnavailable
from support.disks import small_disk
from support.patience import PATIENCE_S

MIB = 1 << 20


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HistoryRecorder]:
    """Yield a recorder that tries again at once."""
    monkeypatch.setattr(recorders, "AGAIN_S", 0.0)
    recorder = HistoryRecorder(tmp_path / "h", MIB)
    yield recorder
    recorder.close()


def heard(recorder: HistoryRecorder, node: str, level: int = 9) -> None:
    recorder.take(TrailHeard("room", node, 600, bytes([level])))


def nodes(recorder: HistoryRecorder) -> list[str]:
    """Return the nodes that it knows."""
    found = recorder.ask(lambda file: file.levels("room", range(99), most=99))
    return list(found.result(PATIENCE_S))


def test_what_is_taken_is_read_at_once(kept: HistoryRecorder) -> None:
    """A question sees all that came before it, whether it was due to be written or not."""
    heard(kept, "a")
    heard(kept, "b")

    assert ["a", "b"] == nodes(kept)
    assert 0 == kept.dropped
    assert 0 < kept.bytes <= MIB


@pytest.mark.parametrize("damage", ["garbage", "deleted", "emptied", "cut", "another form"])
def test_a_spoilt_file_begins_anew(
    tmp_path: Path, kept: HistoryRecorder, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever becomes of the file while nothing runs, there is a history again, and one line."""
    before, path = HistoryRecorder(tmp_path / "h", MIB), tmp_path / "h"
    for at in range(300):
        heard(before, f"n{at}")
    before.close()
    if damage == "garbage":
        path.write_bytes(os.urandom(50_000))
    elif damage == "deleted":
        path.unlink()
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:9000])
    else:
        data = bytearray(path.read_bytes())
        data[60:64] = b"\0\0\0\x63"
        path.write_bytes(bytes(data))
    caplog.clear()
    heard(kept, "new")

    assert ["new"] == nodes(kept)
    assert (0 if damage in ("deleted", "emptied") else 1) == len(caplog.records)


@pytest.mark.parametrize("damage", ["deleted", "moved", "garbage"])
def test_a_file_that_is_spoilt_under_it_begins_anew(
    tmp_path: Path, kept: HistoryRecorder, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that goes while it is open is missed at the next write, and another one begins."""
    heard(kept, "old")
    assert ["old"] == nodes(kept)
    caplog.clear()
    if damage == "garbage":
        fresh = tmp_path / "fresh"
        fresh.write_bytes(os.urandom(50_000))
        fresh.replace(tmp_path / "h")
    elif damage == "moved":
        (tmp_path / "h").rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "h").unlink()
    heard(kept, "new")

    assert ["new"] == nodes(kept)
    assert "history is gone, another one begins" == caplog.records[0].message
    assert (2 if damage == "garbage" else 1) == len(caplog.records)


def test_a_link_is_not_followed(tmp_path: Path, kept: HistoryRecorder) -> None:
    """A symbolic link in its place is not written through: there is no history then."""
    (tmp_path / "other").write_text("precious")
    (tmp_path / "h").symlink_to(tmp_path / "other")
    heard(kept, "a")

    with pytest.raises(Exception, match="symbolic link"):
        nodes(kept)
    assert "precious" == (tmp_path / "other").read_text()
    assert 1 == kept.dropped


def test_a_full_queue_drops_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More entries than there is room for are dropped, and counted."""
    monkeypatch.setattr(recorders, "MOST_WAITING", 10)
    recorder = HistoryRecorder(tmp_path / "h", MIB)
    with recorder._changed:  # its thread cannot take any
        for at in range(25):
            heard(recorder, f"n{at:02}")

    assert 15 == recorder.dropped
    assert [f"n{at:02}" for at in range(10)] == nodes(recorder)
    recorder.close()


def test_without_a_file_nothing_is_kept() -> None:
    """max_bytes = 0: entries go nowhere, no thread runs, and a question is refused in a line."""
    recorder = HistoryRecorder(None)
    heard(recorder, "a")

    with pytest.raises(HistoryUnavailable, match="no history is kept here"):
        nodes(recorder)
    assert (0, None) == (recorder.dropped, recorder._thread)
    recorder.close()


FULL = """
import logging, resource, signal, sys
from pathlib import Path
from submerge_aggregator.history import recorder as recorders
from submerge_aggregator.history.file import TrailHeard
recorders.AGAIN_S = 0.0
logging.getLogger("submerge").addHandler(logging.StreamHandler())
logging.getLogger("submerge").setLevel("INFO")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
recorder = recorders.HistoryRecorder(Path(sys.argv[1]), 1 << 20)

def write(first, count):
    for i in range(count):
        recorder.take(TrailHeard("room", f"n{i}", first * 60, bytes([9])))
    try:
        found = recorder.ask(lambda file: file.levels("room", range(first, first + 1), most=9999))
        return len(found.result(60))
    except Exception as error:
        return str(error)

assert write(1, 50) == 50
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
for hour in range(2, 9):
    write(hour, 400)
assert recorder.dropped > 0, recorder.dropped
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert write(20, 50) == 50
assert write(1, 0) == 50
recorder.close()
print("whole again")
"""


@pytest.mark.slow
def test_a_full_disk_costs_what_met_it(tmp_path: Path) -> None:
    """On a full disk entries are dropped with one line; with room again, all goes on as before."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "h"], capture_output=True, text=True, check=False
    )

    assert "whole again\n" == done.stdout, done.stderr
    assert 1 == done.stderr.count("entries are dropped")
    assert 1 == done.stderr.count("history written again")


def test_a_folder_that_cannot_be_written_costs_the_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no file can be, entries are dropped with one line; no time is spent on trying again."""
    recorder = HistoryRecorder(tmp_path / "missing" / "h", MIB)
    for at in range(5):
        heard(recorder, f"n{at}")
        with pytest.raises(HistoryUnavailable):
            nodes(recorder)
    recorder.close()

    assert 5 == recorder.dropped
    assert ["history not written, entries are dropped"] == [each.message for each in caplog.records]


def test_a_disk_that_turns_read_only_costs_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a file system that may only be read, entries are dropped and counted, with one line."""
    monkeypatch.setattr(recorders, "AGAIN_S", 0.0)
    with small_disk(tmp_path / "disk", "4m") as disk:
        before = HistoryRecorder(disk.place / "h", MIB)
        heard(before, "a")
        before.close()
        disk.forbid_writing()
        recorder = HistoryRecorder(disk.place / "h", MIB)
        for _ in range(3):
            heard(recorder, "b")
            with pytest.raises(HistoryUnavailable):
                nodes(recorder)
        recorder.close()

    assert 3 == recorder.dropped
    assert ["history not written, entries are dropped"] == [each.message for each in caplog.records]
