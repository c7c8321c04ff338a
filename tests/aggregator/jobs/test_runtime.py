"""An aggregator's part in jobs, with real servers and clients in one process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from submerge.errors import SubmergeError, UsageError
from submerge.jobs.envelopes import OPENING, JobAsk
from submerge.jobs.job import Job, JobOutcome, Leaver
from submerge.jobs.machine import (
    JobEnded,
    JobHeard,
    JobPiece,
    JobPieceTaken,
    JobProgress,
    OpenJob,
)
from submerge.jobs.parcels import Parcel
from submerge.jobs.root import JobRoot
from submerge.protocol.machine import Now, SetQuarantine
from submerge.protocol.messages import Incarnation, Stamp
from submerge_aggregator.jobs import runtime
from submerge_proto.wire import jobs
from support.job_memory import GROUP, MemoryJobs
from support.patience import until

pytestmark = pytest.mark.slow


def rows_of(name: str, n: int = 32) -> np.ndarray:
    """Rows of a client."""
    return np.random.default_rng(ord(name)).standard_normal((n, 3))


def tree() -> dict[str, Any]:
    """A root with an aggregator of two clients, and a client of its own."""
    return {"root": {"hall": {"a": rows_of("a"), "b": rows_of("b")}, "c": rows_of("c")}}


@pytest.fixture
def fleet_of(tmp_path) -> Iterator[Callable[..., MemoryJobs]]:
    """Make a fleet, which is closed in the end."""
    made: list[MemoryJobs] = []

    def make(**clients: Any) -> MemoryJobs:
        made.append(MemoryJobs(tmp_path, tree(), **clients))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


@pytest.fixture
def fleet(fleet_of) -> MemoryJobs:
    return fleet_of()


@pytest.mark.parametrize("kind", ["kmeans", "moments"])
def test_the_answer_has_the_bytes_of_one_process(fleet, kind):
    """The board hears of its opening, its rounds and its end, in this order."""
    job = fleet.job(kind)
    fleet.open(job)
    outcome = fleet.ended()

    assert "" == outcome.failure
    expected = fleet.here(job)
    assert expected.keys() == outcome.answer.keys()
    assert all(expected[name].tobytes() == outcome.answer[name].tobytes() for name in expected)
    kinds = [kind for kind, _ in fleet.board.heard]
    assert ("opened", "progressed", "ended") == (kinds[0], kinds[1], kinds[-1])
    rounds = [what.round for _, what in fleet.board.heard if isinstance(what, JobProgress)]
    assert sorted(rounds) == rounds
    assert 96 == fleet.readings()


def test_a_job_that_cannot_be_opened_is_refused_in_a_line(fleet):
    """Another group, schema or piece than there may be, and one that is no root's: nothing is."""
    job = fleet.job()
    for wrong, why in (
        ({"group": "other"}, f"the group is one of {GROUP}, got other"),
        ({"fingerprint": "0" * 64}, "got one of 000000000000: take the present one"),
        ({"kind": "nothing", "settings": {}}, "nothing"),
    ):
        with pytest.raises(UsageError, match=why):
            fleet.open(fleet.job(**wrong))
    with pytest.raises(UsageError, match="a job is opened at the root"):
        fleet.does(fleet.servers["hall"].jobs.open(job))

    assert [] == fleet.board.heard
    assert {} == fleet.servers["root"].worker.store.load_of("job")
    fleet.open(job)
    fleet.ended()
    with pytest.raises(UsageError, match="settings are"):
        fleet.open(fleet.job(id="job-2", settings={"colour": 1}))


def test_a_larger_piece_than_every_way_carries_is_refused(fleet):
    """So that no payload is stuck on its way."""
    fleet.servers["root"].jobs._largest = 2000
    with pytest.raises(UsageError, match="piece_bytes must be at most 1488 here"):
        fleet.open(fleet.job())


def test_an_operator_ends_a_job(fleet):
    """It has failed, and why is said; of a job that there is not nothing is ended."""
    fleet.agents["c"]._jobs.take = lambda _: True  # it hears nothing: the job stays open
    fleet.open(fleet.job())
    record = fleet.servers["root"].worker.store.load_of("job")

    assert [("job", "job-1")] == list(record)
    assert fleet.does(fleet.servers["root"].jobs.cancel("job-1"))
    assert "cancelled" == fleet.ended().failure
    assert not fleet.does(fleet.servers["root"].jobs.cancel("job-1"))
    assert {} == fleet.servers["root"].worker.store.load_of("job")


def test_a_root_that_restarts_says_that_its_job_has_failed(fleet):
    """And opens another one."""
    fleet.agents["c"]._jobs.take = lambda _: True
    fleet.open(fleet.job())
    fleet.ends("root")
    fleet.serve("root")

    assert "the root restarted" == fleet.ended().failure
    del fleet.agents["c"]._jobs.take
    fleet.open(fleet.job(id="job-2"))
    assert "" == fleet.ended("job-2").failure


def test_it_ends_at_the_moment_at_which_something_comes_in(fleet):
    """Python 3.11 forgot that a wait was cancelled whose event had just come."""
    runtime = fleet.servers["root"].jobs

    async def ends() -> None:
        runtime._stirred.set()
        await asyncio.sleep(0)
        closing = asyncio.create_task(runtime.close())
        ended, _ = await asyncio.wait({closing}, timeout=20)
        assert ended

    fleet.does(ends())


def test_an_aggregator_that_restarts_loses_nothing(fleet):
    """Its children send again what they have contributed."""
    fleet.agents["c"]._jobs.take = lambda _: True
    job = fleet.job()
    fleet.open(job)
    fleet.ends("hall")
    fleet.serve("hall", "root")
    del fleet.agents["c"]._jobs.take
    outcome = fleet.ended()

    assert "" == outcome.failure
    assert {} == outcome.left
    assert 1 == outcome.attempts
    assert fleet.here(job)["centers"].tobytes() == outcome.answer["centers"].tobytes()


def test_a_store_that_cannot_be_written_opens_no_job(fleet, monkeypatch):
    """The caller hears it; nothing is sent; when it can be written, jobs are opened again."""

    def fail(*_: Any, **__: Any) -> None:
        raise SubmergeError("the disk is full")

    monkeypatch.setattr("submerge_aggregator.jobs.runtime.AGAIN_S", 0.0)
    store = fleet.servers["root"].worker.store
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", fail)
        # Which of the two: whether a report has met the full disk before.
        with pytest.raises(SubmergeError, match=r"the disk is full|the store cannot be written"):
            fleet.open(fleet.job())

    refusals = list[str]()

    def opens() -> bool:
        try:
            fleet.open(fleet.job(id="job-2"))
        except SubmergeError as error:
            refusals.append(str(error))  # it tries again in a moment
            return False
        return True

    assert [] == fleet.board.heard
    until(opens)
    assert {"the store cannot be written now"} >= {*refusals}
    assert "" == fleet.ended("job-2").failure


def test_a_bug_in_a_job_ends_it_and_nothing_else(fleet, monkeypatch):
    """The job has failed, the stream goes on, and the next job has its answer."""
    monkeypatch.setattr("submerge_aggregator.jobs.runtime.AGAIN_S", 0.0)

    def fails(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(JobRoot, "_take_share", fails)
        fleet.open(fleet.job())
        failure = "a bug: ZeroDivisionError('a bug'); see the aggregator's log"
        assert failure == fleet.ended().failure
    fleet.open(fleet.job(id="job-2"))

    assert "" == fleet.ended("job-2").failure
    assert 96 == fleet.readings()


def test_a_bug_while_a_job_opens_is_told_to_who_opens_it(fleet, monkeypatch):
    """The operator does not wait for ever, and the next order is carried out."""
    step = JobRoot.step

    def broken(self, event, now):
        if isinstance(event, OpenJob):
            monkeypatch.setattr(JobRoot, "step", step)
            raise RuntimeError("a bug of the test")
        return step(self, event, now)

    monkeypatch.setattr(runtime, "AGAIN_S", 0.1)
    monkeypatch.setattr(JobRoot, "step", broken)
    with pytest.raises(SubmergeError, match="a bug: RuntimeError"):
        fleet.open(fleet.job())

    fleet.open(fleet.job())
    assert "" == fleet.ended().failure


def test_a_round_that_takes_long_keeps_no_report_waiting(fleet, monkeypatch):
    """While the part computes, what clients read reaches the root, and is counted."""
    step, may_go_on = JobRoot.step, threading.Event()

    def slow(self: JobRoot, event: Any, now: Any) -> Any:
        if isinstance(event, JobHeard):
            assert may_go_on.wait(60)
        return step(self, event, now)

    monkeypatch.setattr(JobRoot, "step", slow)
    fleet.open(fleet.job())
    fleet.begin("d", rows_of("d"), "root")
    until(lambda: fleet.readings() == 128, lambda: "the rows of another client")
    may_go_on.set()

    assert "" == fleet.ended().failure
    assert 128 == fleet.readings()


def test_a_client_takes_part_with_the_rows_that_it_may_hold(fleet_of):
    """None: it declines, and says why."""
    fleet = fleet_of(job_rows=0)
    fleet.open(fleet.job())
    outcome = fleet.ended()

    why = "it takes no part in jobs: job_rows = 0"
    assert f"no node takes part: {why} ({len(outcome.declined)})" == outcome.failure
    assert {why} == set(outcome.declined.values())


def test_a_quarantined_node_is_not_asked(fleet):
    """Neither here nor below; the others have an answer."""
    order = SetQuarantine(GROUP, fleet.name("c"), True)
    fleet.does(fleet.servers["root"].ask(lambda *_: None, order))
    job = fleet.job()
    fleet.open(job)
    outcome = fleet.ended()

    assert fleet.name("c") not in outcome.declined
    assert {fleet.name("hall")} == set(outcome.stayed)
    assert fleet.here(job, "c")["centers"].tobytes() == outcome.answer["centers"].tobytes()


def test_a_child_does_not_open_a_job_at_another(fleet):
    """What a client sends upward as if it were a parent is counted, and goes nowhere."""
    job = fleet.job(id="job-9")
    parcel = Parcel.of(job, 0, JobAsk(job, 0, 60.0, None, OPENING, {}).pack())
    stamp = Stamp(fleet.name("a"), GROUP, Incarnation(1, 2), 0)
    piece = JobPiece(stamp, job.id, False, parcel.name, 0, 0, 1, parcel.pieces[0])
    server = fleet.servers["hall"]
    fleet.agents["a"]._uplink.send("job", GROUP, jobs.encode(piece))
    until(lambda: server.refusals.counts["denied"], lambda: "a refusal")

    assert 1 == server.refusals.counts["denied"]
    assert () == server.jobs.under_way
    assert all(agent._jobs._thread is None for agent in fleet.agents.values())


def test_what_a_parent_did_not_send_is_counted_at_its_child(fleet):
    """Bytes that are no message, and one for another node, change nothing at an aggregator."""
    server = fleet.servers["hall"]
    stamp = Stamp("another", GROUP, Incarnation(1, 2), 0)
    taken = jobs.encode(JobPieceTaken(stamp, "job-1", True, bytes(16), b"\1", True))
    for data in (b"\xff", taken):
        fleet.call(server.jobs.take_of_parent, data)

    counts = server.refusals.counts
    assert (1, 1) == (counts["malformed"], counts["foreign_topic"])
    assert () == server.jobs.under_way


@pytest.mark.parametrize(("stayed", "said"), [("a", True), ("abc", False)])
def test_the_log_warns_where_fewer_stayed_than_left(caplog, stayed, said):
    """The root logs it too, so that an operator who does not wait for the job learns of it."""
    here = {name: Incarnation(1, ord(name)) for name in stayed}
    left = dict.fromkeys("xy", Leaver("what it contributed was refused", 0))
    job = Job("j", "moments", group=GROUP, fingerprint="ab" * 32, least=1)
    outcome = JobOutcome(job, {"mean": np.zeros(1)}, "", here, here, left, {}, 2, 1)
    runtime.JobEffects()._end(JobEnded(outcome), Now(0.0, 0.0))
    lines = [each for each in caplog.records if "fewer stayed" in each.getMessage()]

    assert said == bool(lines)
    assert all(each.levelname == "WARNING" for each in lines)
