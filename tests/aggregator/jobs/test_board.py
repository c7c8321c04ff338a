"""The board of jobs: it lists what runs and what is over, also after a restart, in bounded room."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from submerge.errors import PeerError
from submerge.jobs.job import Leaver
from submerge.jobs.machine import JobProgress
from submerge.jobs.root import ROOT_RESTARTED
from submerge_aggregator.jobs import board as board_module
from submerge_aggregator.jobs.board import JobBoard, jobs_path
from submerge_aggregator.jobs.record import JobRecord, unpacked
from submerge_aggregator.jobs.views import LeftView
from support.house import SCHEMA
from support.jobbed import job, outcome


@pytest.fixture
def folder(tmp_path) -> Path:
    return jobs_path(tmp_path / "root.db")


def ended(board: JobBoard, name: str, wall: float, **how: Any) -> None:
    """Have a job come and go."""
    one = job(name)
    board.announce(one, SCHEMA.canonical)
    board.opened(one, wall - 10.0)
    board.ended(outcome(one, **how), wall)


def record_of(board: JobBoard, name: str) -> JobRecord:
    """What its file says, read piece by piece."""
    data = b""
    while piece := board.piece(name, len(data)):
        data += piece
    return unpacked(data)


def test_a_job_is_shown_from_its_opening_to_its_end(folder):
    board = JobBoard(folder)
    board.opened(job(), 100.0)
    (begun,) = board.views()
    board.progressed(JobProgress("job-1", "lloyd", 3, 1, 2), 101.0)
    (running,) = board.views()
    board.ended(outcome(job(), left={"pump-2": Leaver("silent", 0)}), 107.0)
    (over,) = board.views()

    assert ("running", "open", 0, 0, 100.0, 0.0, "") == (
        begun.state, begun.phase, begun.round, begun.members, begun.opened_s, begun.ended_s,
        begun.failure,
    )  # fmt: skip
    assert ("lloyd", 3, 1, 2) == (running.phase, running.round, running.attempt, running.members)
    assert ("done", "", 5, 2, 1, 0, 100.0, 107.0) == (
        over.state, over.phase, over.round, over.members, over.left, over.declined, over.opened_s,
        over.ended_s,
    )  # fmt: skip


def test_details_name_the_nodes_of_a_job_that_is_over(folder):
    """None of a job that runs: they are not known yet."""
    board = JobBoard(folder)
    board.opened(job(), 100.0)
    assert () == board.details(board.view("job-1")).stayed
    board.ended(
        outcome(job(), left={"pump-2": Leaver("silent", 2)}, declined={"pump-9": "no rows"}), 107.0
    )
    found = board.details(board.view("job-1"))

    assert ("pump-1", "pump-3") == found.stayed
    assert ({"pump-2": LeftView("silent", 2)}, {"pump-9": "no rows"}) == (
        found.left, found.declined
    )  # fmt: skip


def test_a_root_that_starts_again_lists_its_jobs_and_gives_answers(folder, monkeypatch):
    """In pieces, with the schema that the answer is read with."""
    monkeypatch.setattr(board_module, "PIECE_BYTES", 100)
    board = JobBoard(folder)
    ended(board, "job-1", 100.0)
    ended(board, "job-2", 200.0, failure="cancelled")
    before = board.views()
    board.close()

    again = JobBoard(folder)
    assert before == again.views()
    assert ["job-2", "job-1"] == [view.id for view in again.views()]
    found, expected = record_of(again, "job-1"), outcome(job()).answer
    assert SCHEMA.canonical == found.schema
    assert all(np.array_equal(expected[name], found.answer[name]) for name in expected)


def test_a_job_that_ran_when_the_root_died_failed_and_the_first_end_counts(folder):
    """When it ended the driver says as it starts, once."""
    board = JobBoard(folder)
    board.opened(job(), 100.0)
    board.close()

    again = JobBoard(folder)
    (view,) = again.views()
    again.ended(outcome(job(), failure=ROOT_RESTARTED), 300.0)
    again.ended(outcome(job()), 400.0)
    assert ("failed", ROOT_RESTARTED, 100.0) == (view.state, view.failure, view.opened_s)
    (after,) = again.views()
    assert ("failed", ROOT_RESTARTED, 100.0, 300.0) == (
        after.state, after.failure, after.opened_s, after.ended_s
    )  # fmt: skip


def test_a_second_end_changes_nothing(folder):
    board = JobBoard(folder)
    ended(board, "job-1", 100.0)
    before = board.views()
    board.ended(outcome(job(), failure="too late"), 300.0)

    assert before == board.views()


def test_a_round_of_an_unknown_job_is_passed_over(folder):
    board = JobBoard(folder)
    board.progressed(JobProgress("job-7", "lloyd", 3, 1, 2), 101.0)

    assert [] == board.views()


def header_changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def another_job(path: Path) -> None:
    path.write_bytes(path.with_name("job-1.job").read_bytes())


@pytest.mark.parametrize("damage", [header_changed, cut_short, emptied, another_job])
def test_a_damaged_file_costs_its_own_job_alone(folder, monkeypatch, damage):
    """It is set aside, and named in the log."""
    said: list[str] = []
    monkeypatch.setattr(board_module, "say", lambda _, **facts: said.append(facts["why"]))
    board = JobBoard(folder)
    for number in (1, 2, 3):
        ended(board, f"job-{number}", 100.0 * number)
    board.close()
    damage(folder / "job-2.job")

    assert ["job-3", "job-1"] == [view.id for view in JobBoard(folder).views()]
    assert 1 == len(said)
    assert "job-2.job" in said[0]
    assert ["job-3", "job-1"] == [view.id for view in JobBoard(folder).views()]
    assert 1 == len(said)


def test_a_damaged_answer_is_listed_and_not_read(folder):
    """Who reads it checks it."""
    board = JobBoard(folder)
    ended(board, "job-1", 100.0)
    board.close()
    path = folder / "job-1.job"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")

    again = JobBoard(folder)
    assert ["done"] == [view.state for view in again.views()]
    with pytest.raises(PeerError, match="damaged"):
        record_of(again, "job-1")


def test_what_a_killed_process_left_half_written_goes(folder):
    folder.mkdir()
    (folder / ".job-1.job.77.part").write_bytes(b"half")

    assert [] == JobBoard(folder).views()
    assert [] == [*folder.iterdir()]


def test_the_oldest_go_when_there_are_too_many(folder, monkeypatch):
    """From the list and from the disk, and after a restart, too."""
    monkeypatch.setattr(board_module, "MOST_ENDED", 2)
    board = JobBoard(folder)
    for number in (3, 1, 2, 4):
        ended(board, f"job-{number}", 100.0 * number)
    board.close()

    assert ["job-4", "job-3"] == [view.id for view in board.views()]
    assert ["job-3.job", "job-4.job"] == sorted(path.name for path in folder.iterdir())
    assert board.view("job-1") is None


def test_the_oldest_go_when_their_files_are_too_large(folder, monkeypatch):
    """The newest stays in any case."""
    monkeypatch.setattr(board_module, "MOST_ENDED_BYTES", 300)
    board = JobBoard(folder)
    ended(board, "job-1", 100.0)
    ended(board, "job-2", 200.0)
    board.close()

    assert ["job-2"] == [view.id for view in board.views()]
    assert ["job-2.job"] == [path.name for path in folder.iterdir()]


def test_a_file_is_as_large_as_its_schema_too(folder, monkeypatch):
    """Landmarks are in the schema, megabytes of them; the bound is that after a restart."""
    monkeypatch.setattr(board_module, "MOST_ENDED_BYTES", 30_000)
    board = JobBoard(folder)
    for at, name in enumerate(("job-1", "job-2", "job-3")):
        one = job(name)
        board.announce(one, b" " * 12_000)
        board.opened(one, 100.0 + at)
        board.ended(outcome(one, failure="cancelled"), 200.0 + at)
    board.close()

    assert ["job-3", "job-2"] == [view.id for view in board.views()]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 30_000


@pytest.mark.parametrize("opened", [False, True], ids=["never written", "at first"])
def test_where_nothing_can_be_written_the_newest_are_in_memory(folder, monkeypatch, opened):
    """They are lost when the root ends: the log says so. None reads as a restart."""
    monkeypatch.setattr(board_module, "MOST_UNWRITTEN", 1)
    said: list[str] = []
    monkeypatch.setattr(board_module, "say", lambda what, **_: said.append(what))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    board = JobBoard(folder)
    if opened:
        board.opened(job("job-1"), 100.0)
        board.piece("job-1", 0)
    monkeypatch.setattr(board_module, "atomic_write", full)
    ended(board, "job-1", 100.0)
    ended(board, "job-2", 200.0)
    board.close()

    assert {"job not written"} == {*said}
    assert outcome(job()).answer["cost"] == record_of(board, "job-2").answer["cost"]
    with pytest.raises(OSError, match="job-1"):
        board.piece("job-1", 0)


def test_without_a_folder_the_newest_answers_are_kept():
    """No file is written, and no warning."""
    board = JobBoard()
    ended(board, "job-1", 100.0)

    assert SCHEMA.canonical == record_of(board, "job-1").schema


def test_files_are_for_their_owner_alone(folder):
    """An answer holds centers of a fleet's readings."""
    board = JobBoard(folder)
    ended(board, "job-1", 100.0)
    board.close()

    assert 0o700 == folder.stat().st_mode & 0o777
    assert 0o600 == (folder / "job-1.job").stat().st_mode & 0o777


def test_a_job_that_was_not_opened_leaves_no_schema(folder):
    """A name is free again."""
    board = JobBoard(folder)
    board.announce(job(), SCHEMA.canonical)
    board.withdraw(job())
    board.opened(job(), 100.0)
    board.ended(outcome(job()), 101.0)

    assert b"" == record_of(board, "job-1").schema
