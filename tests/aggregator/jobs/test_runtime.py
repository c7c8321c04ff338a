"""An aggregator's part in jobs, with real servers and clients in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from submerge.errors import SubmergeError, UsageError
from submerge.jobs.machine import JobHeard, JobProgress
from submerge_proto.wire import jobs
from support.job_memory import GROUP, MemoryJobs

pytestmark = pytest.mark.slow


def rows_of(name: str, n: int = 30) -> np.ndarray:
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
    assert 90 == fleet.readings()


def test_a_job_that_cannot_be_opened_is_refused_in_a_line(fleet):
    """Another group, schema or piece than there may be, and one that is no root's: nothing is."""
    job = fleet.job()
    for wrong, why in (
        ({"group": "other"}, f"the group is one of {GROUP}, got other"),
        ({"fingerprint": "0" * 64}, "got one of 000000000000: take the present one"),
        ({"kind": "nothing"}, "nothing"),
        ({"piece_bytes": 1 << 20}, None),
    ):
        if why is not None:
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
        with pytest.raises(SubmergeError, match="the disk is full"):
            fleet.open(fleet.job())

    assert [] == fleet.board.heard
    fleet.open(fleet.job(id="job-2"))
    assert "" == fleet.ended("job-2").failure


def test_a_bug_in_a_job_ends_it_and_nothing_else(fleet, monkeypatch):
    """The job has failed, the stream goes on, and the next job has its answer."""
    monkeypatch.setattr("submerge_aggregator.jobs.runtime.AGAIN_S", 0.0)
    from submerge.jobs.root import JobRoot

    def fails(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(JobRoot, "_take_share", fails)
        fleet.open(fleet.job())
        assert "the root restarted" == fleet.ended().failure
    fleet.open(fleet.job(id="job-2"))

    assert "" == fleet.ended("job-2").failure
    assert 90 == fleet.readings()


def test_a_client_takes_part_with_the_rows_that_it_may_hold(fleet_of):
    """None: it declines, and says why."""
    fleet = fleet_of(job_rows=0)
    fleet.open(fleet.job())
    outcome = fleet.ended()

    assert "no node takes part" == outcome.failure
    assert {"it takes no part in jobs: job_rows = 0"} == set(outcome.declined.values())


def test_a_quarantined_node_is_not_asked(fleet):
    """Neither here nor below; the others have an answer."""
    from submerge.protocol.machine import SetQuarantine

    order = SetQuarantine(GROUP, fleet.name("c"), True)
    fleet.does(fleet.servers["root"].ask(lambda *_: None, order))
    job = fleet.job()
    fleet.open(job)
    outcome = fleet.ended()

    assert fleet.name("c") not in outcome.declined
    assert {fleet.name("hall")} == set(outcome.stayed)
    assert fleet.here(job, "c")["centers"].tobytes() == outcome.answer["centers"].tobytes()


def test_a_child_does_not_open_a_job_at_another(fleet):
    """Asks that a client sends upward reach nobody below, and are counted where they arrive."""
    fleet.open(fleet.job())
    fleet.ended()
    heard: list[JobHeard] = []
    server, agent = fleet.servers["hall"], fleet.agents["a"]
    sent = [m for m in _asks(fleet)]
    for data in sent:
        agent._uplink.send("job", GROUP, data)
    fleet.does(_until_counted(server, len(sent)))

    assert len(sent) == server.refusals.counts["denied"]
    assert [] == heard
    assert () == server.jobs.under_way


def _asks(fleet: MemoryJobs) -> list[bytes]:
    """Asks to client a, as its parent would send them."""
    from submerge.jobs.envelopes import OPENING, JobAsk
    from submerge.jobs.messages import JobPiece
    from submerge.jobs.parcels import Parcel
    from submerge.protocol.messages import Incarnation, Stamp

    job = fleet.job(id="job-9")
    body = JobAsk(job, 0, 60.0, None, OPENING, {}).pack()
    parcel = Parcel.of(job, 0, body)
    stamp = Stamp(fleet.name("a"), GROUP, Incarnation(1, 2), 0)
    piece = JobPiece(stamp, job.id, False, parcel.name, 0, 0, 1, parcel.pieces[0])
    return [jobs.encode(piece)]


async def _until_counted(server: Any, n: int) -> None:
    import asyncio

    while server.refusals.counts["denied"] < n:
        await asyncio.sleep(0.001)
