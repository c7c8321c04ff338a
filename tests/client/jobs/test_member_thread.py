"""A client's part in jobs: one thread while there are jobs, and what it refuses."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from submerge.jobs.envelopes import OPENING, JobAsk, JobShare
from submerge.jobs.job import Job
from submerge.jobs.machine import JobPiece, JobPieceTaken
from submerge.jobs.parcels import Parcel, all_of
from submerge.jobs.row_groups import MOST_ATTEMPTS
from submerge.protocol.messages import Incarnation, Stamp
from submerge_client import clock
from submerge_client import jobs as member_thread
from submerge_client.jobs import ClientJobs, HeldSample
from submerge_client.uplink import TooLarge
from submerge_client.uplink.tls import Tls
from submerge_proto.wire import jobs
from support.patience import until

PARENT = Incarnation(1_700_000_000_000, 9)
ROWS = np.arange(20.0).reshape(10, 2)
JOB = Job("job-1", "moments", {}, "room", "ab" * 32, 2)


class HandRows(HeldSample):
    """Rows that were put there by hand."""

    def __init__(
        self, rows: np.ndarray = ROWS, fingerprint: str = JOB.fingerprint, times: int = 0
    ) -> None:
        super().__init__(256, np.random.default_rng(0))
        self._rows, self._named, self.times = rows, fingerprint, times

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, attempts: int) -> tuple[str, np.ndarray, np.ndarray, int]:
        self.times += attempts
        return self._named, self._rows, np.arange(len(self._rows)), self.times


class Seat:
    """A client's part, and the parent's side of its messages."""

    def __init__(self, rows: HeldSample | None = None, **more: Any) -> None:
        self.sent: list[bytes] = []
        self.fails: Exception | None = None
        self.jobs = ClientJobs(
            *("c", "room", "hall", HandRows() if rows is None else rows),
            send=self._send,
            clock=clock.now,
            rng=np.random.default_rng(0),
            **more,
        )

    def _send(self, data: bytes) -> None:
        if self.fails is not None:
            raise self.fails
        self.sent.append(data)

    def asks(self, ask: JobAsk, *, node: str = "c") -> bool:
        """Ask something in whole; return whether it was taken."""
        parcel = Parcel.of(ask.job, ask.turn, ask.pack())
        stamp = Stamp(node, ask.job.group, PARENT, ask.turn)
        total = len(parcel.pieces)
        pieces = [
            JobPiece(stamp, ask.job.id, False, parcel.name, 0, i, total, data)
            for i, data in enumerate(parcel.pieces)
        ]
        return all(self.jobs.take(jobs.encode(piece)) for piece in pieces)

    def share(self) -> tuple[JobPiece, JobShare]:
        """Wait for what the client contributes, and confirm it."""
        found: list[JobPiece] = []

        def has_come() -> bool:
            messages = [jobs.decode(data) for data in list(self.sent)]
            found[:] = [each for each in messages if isinstance(each, JobPiece)]
            return bool(found)

        until(has_come, lambda: "a share")
        piece, self.sent = found[-1], []
        stamp = piece.stamp._replace(incarnation=PARENT)
        taken = JobPieceTaken(stamp, piece.job, True, piece.parcel, all_of(piece.total))
        self.jobs.take(jobs.encode(taken))
        return piece, JobShare.unpack(piece.data)


@pytest.fixture
def seat() -> Any:
    seat = Seat()
    yield seat
    seat.jobs.close()


def opening(job: Job = JOB) -> JobAsk:
    return JobAsk(job, 0, 60.0, None, OPENING, {})


def test_it_takes_part_and_contributes(seat):
    """Its name and incarnation when the job opens; then sums over its rows."""
    assert seat.asks(opening())
    piece, share = seat.share()
    assert piece.stamp.incarnation == share.place
    seat.asks(JobAsk(JOB, 1, 60.0, share.place, "sums", {}, 1, 0))
    _, share = seat.share()

    assert 10 == share.arrays["counts"][0]


def test_there_is_a_thread_only_while_there_are_jobs(monkeypatch):
    """None before the first message; and it ends some time after the last job."""
    monkeypatch.setattr(member_thread, "IDLE_S", 0.01)
    seat = Seat()
    assert seat.jobs._thread is None
    seat.asks(opening())
    seat.share()
    thread = seat.jobs._thread
    assert thread is not None
    stamp = Stamp("c", "room", PARENT, 9)
    ended = JobAsk(JOB, 9, 60.0, None, "end", {}, 1, 1, "cancelled")
    assert stamp.node == "c"
    seat.asks(ended)
    thread.join(10)

    assert not thread.is_alive()
    assert seat.jobs._thread is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 30,
        jobs.encode(JobPiece(Stamp("d", "room", PARENT, 0), "j", False, bytes(16), 0, 0, 1, b"x")),
    ],
    ids=["empty", "noise", "of another"],
)
def test_what_is_not_for_it_is_refused(seat, data):
    """Nothing begins, and nothing is sent."""
    assert not seat.jobs.take(data)
    assert seat.jobs._thread is None
    assert [] == seat.sent


@pytest.mark.parametrize(
    ("rows", "job", "why"),
    [
        (HeldSample(0, np.random.default_rng(0)), JOB, "it takes no part in jobs: job_rows = 0"),
        (
            HandRows(times=MOST_ATTEMPTS),
            JOB,
            "its rows had 400 attempts of jobs: it waits for as many new rows",
        ),
        (HandRows(ROWS[:7]), JOB, "it has 7 complete rows yet, 8 needed"),
        (HandRows(fingerprint="cd" * 32), JOB, "another schema"),
    ],
)
def test_it_says_why_it_takes_no_part(rows, job, why):
    """A person at the root reads it."""
    seat = Seat(rows)
    seat.asks(opening(job))
    _, share = seat.share()
    seat.jobs.close()

    assert {"c": why} == share.left


MASKED = Job("job-1", "moments", {"masked": True}, "room", "ab" * 32, 2)


@pytest.mark.parametrize(
    ("job", "more", "why"),
    [
        (JOB, {"masked": True}, "it takes part in masked jobs alone: [privacy] masked = true"),
        (MASKED, {}, "it has no certificate to sign keys with, which masked sums need"),
        (MASKED, {"tls": Tls(Path("ca"))}, "it has no certificate to sign keys with"),
    ],
)
def test_masks_are_asked_for_or_cannot_be_made(job, more, why):
    """By its own configuration; by what it lacks."""
    seat = Seat(**more)
    seat.asks(opening(job))
    _, share = seat.share()
    seat.jobs.close()

    assert share.left["c"].startswith(why)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    """It is no part of a client's own requirements."""
    monkeypatch.setitem(sys.modules, "submerge_client.masking", None)
    seat = Seat(tls=Tls(kit=Path("c.kit")))
    seat.asks(opening(MASKED))
    _, share = seat.share()
    seat.jobs.close()

    assert share.left["c"].endswith("pip install 'submerge[private]'")


def test_rows_of_a_masked_job_are_in_no_other():
    """Two sums over other nodes would have a difference."""
    rows = HandRows()
    seat = Seat(rows, tls=Tls(kit=Path("c.kit")))
    for number, kind in enumerate((MASKED, JOB, MASKED)):
        seat.asks(opening(replace(kind, id=f"job-{number}")))
        _, share = seat.share()
        assert (number > 0) == ("c" in share.left)
    seat.jobs.close()


def test_an_error_in_a_job_ends_its_part_and_nothing_else(seat, monkeypatch):
    """The next ask meets another process, as it were."""
    seat.asks(opening())
    _, share = seat.share()

    def fails(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("submerge.jobs.member.JobMember._share", fails)
        seat.asks(JobAsk(JOB, 1, 60.0, share.place, "sums", {}, 1, 0))
        until(lambda: seat.jobs._member is None, lambda: "the error")
    seat.asks(JobAsk(JOB, 2, 60.0, share.place, "sums", {}, 1, 0))
    _, share = seat.share()

    assert {"c": "restarted"} == share.left


def test_a_message_that_is_too_large_ends_nothing(seat):
    """The parent names this client as silent; the next job is taken."""
    seat.fails = TooLarge("job", size=10, most=5)
    seat.asks(opening())
    until(lambda: seat.jobs._member is not None and seat.jobs._member.jobs, lambda: "the job")
    seat.fails = None
    seat.asks(opening(Job("job-2", "moments", {}, "room", "ab" * 32, 2)))

    assert "job-2" == seat.share()[0].job


def test_after_its_end_it_begins_nothing(seat):
    """A message that comes late finds nobody."""
    seat.jobs.close()
    seat.asks(opening())

    assert seat.jobs._thread is None
    assert [] == [each for each in threading.enumerate() if each.name == "jobs"]
