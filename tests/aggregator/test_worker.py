"""CommitWorker: one commit a batch, nothing sent before it, and foreign bytes change nothing."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now
from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Join,
    Joined,
    Reason,
    Report,
    Stamp,
)
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge_aggregator.batch import Asked, Down, Refuse, Reply
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.store import StoreGone
from submerge_aggregator.worker import AGAIN_S, CommitWorker
from submerge_proto.kept import records
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, fields
from support.faulty import FaultyStore

SCHEMA, SUMMARIES = Schema.anonymous(4), Subspaces(2)
LIFE = Incarnation(1_700_000_000_000, 7)


class Clock:
    """Stands still until the test moves it."""

    steady = 100.0

    def __call__(self) -> Now:
        return Now(self.steady, 1.7e9 + self.steady)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def disk(tmp_path):
    """The worker's store, which may fail."""
    return FaultyStore(tmp_path / "s.db")


@pytest.fixture
def worker(disk, clock):
    """A root's worker, started."""
    settings, rng = AggregatorSettings("root", None), np.random.default_rng(0)
    plans = {"g": GroupPlan(SUMMARIES, SCHEMA)}
    worker = CommitWorker(lambda: AggregatorNode(settings, plans, rng), disk, clock)
    worker.start()
    yield worker
    worker.close()


def inbound(message, *, node=None, data=None):
    """A child's message, whose answer is dropped."""
    kind = codec.kind_of(message)
    data = codec.encode(message) if data is None else data
    return Inbound(kind, data, node, False, lambda *_: None, lambda *_: None)


def join(node="c"):
    return Join(Stamp(node, "g", LIFE, 0), b"", (), SCHEMA.canonical)


def report(worker, node="c", *, seq=1, n=10):
    """The report of a client that has learnt n rows."""
    learner = SUMMARIES.learner(SCHEMA)
    rows = np.random.default_rng(seq).standard_normal((n, 4))
    learner.learn(rows, rows)
    return Report(
        stamp=Stamp(node, "g", LIFE, seq),
        final=False,
        pinned=worker.node.incarnation,
        fence=b"",
        fingerprint=SCHEMA.fingerprint,
        summary=learner.summary(),
        moments=None,
        counts=Counts(n),
        as_of=1.7e9,
        synced=True,
        version=0,
        lifetime=n,
    )


def answers(outs):
    """The answers to messages, decoded."""
    return [
        codec.decode(out.kind, out.data)
        for out in outs
        if isinstance(out, Down) and out.inbound is not None
    ]


def counted(worker):
    """What was refused, by the reasons that there were."""
    return {reason: count for reason, count in worker.refusals.counts.items() if count}


def learnt(worker):
    return worker.node.ledger("g").counts().learnt


def test_messages_of_one_batch_share_one_commit(worker):
    """Twenty joins and reports, one transaction, and an answer to each."""
    before = worker.tallies.commits
    items = [inbound(report(worker, f"c{i}")) for i in range(20)]
    outs = worker.commit_batch(items)

    assert before + 1 == worker.tallies.commits
    assert [Reason.ACK] * 20 == [answer.reason for answer in answers(outs)]


def test_what_is_acknowledged_is_on_disk(worker, disk):
    """Each ACK has its row in the store."""
    worker.commit_batch([inbound(report(worker, "c"))])

    assert ("row", "g", "c", str(LIFE.created_ms), str(LIFE.nonce)) in disk.load()


def test_a_commit_that_fails_takes_the_turn_back(worker, disk, clock):
    """Every sender gets "not now", nothing else goes out, and nothing is counted."""
    joins, reports = inbound(join("a")), inbound(report(worker, "b"))
    with disk.full():
        outs = worker.commit_batch([joins, reports])
        clock.steady += AGAIN_S / 2
        soon = worker.commit_batch([reports])
    clock.steady += AGAIN_S
    later = worker.commit_batch([reports])

    assert [Reason.UNAVAILABLE] * 2 == [answer.reason for answer in answers(outs)]
    assert len(outs) == 2
    assert [Reason.UNAVAILABLE] == [answer.reason for answer in answers(soon)]
    assert [Reason.ACK] == [answer.reason for answer in answers(later)]
    assert 10 == learnt(worker)


def test_not_now_names_no_incarnation(worker, disk):
    """A store that cannot write does not say whose it is."""
    disk.is_full = True
    (joined,) = answers(worker.commit_batch([inbound(join())])) or [None]

    # A join of a client writes nothing, so it may be let in; a report has to wait.
    assert isinstance(joined, Joined)
    (answer,) = answers(worker.commit_batch([inbound(report(worker))]))
    assert (None, Reason.UNAVAILABLE) == (answer.pinned, answer.reason)


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"\x0a\x02\x08\x01"])
def test_foreign_bytes_change_nothing_but_a_counter(worker, disk, data):
    """They are refused, and the store is as it was."""
    before = disk.load()
    (out,) = worker.commit_batch([inbound(join(), data=data)])

    assert isinstance(out, Refuse)
    assert 1 == sum(counted(worker).values())
    assert before == disk.load()


def test_a_message_is_for_its_own_node_only(worker):
    """The sender by the transport must be the one in the bytes."""
    (out,) = worker.commit_batch([inbound(report(worker, "c"), node="d")])

    assert isinstance(out, Refuse)
    assert "it came as d, and names c" in out.why
    assert {"spoofed": 1} == counted(worker)
    assert 0 == learnt(worker)


def test_another_version_is_refused_by_name(worker):
    """The child gets the known versions as the answer to its own join."""
    message = pb.JoinRequest.FromString(codec.encode(join()))
    message.header.version, message.header.versions[:] = 2, [2, 3]
    (joined,) = answers(worker.commit_batch([inbound(join(), data=message.SerializeToString())]))

    assert (Reason.VERSION, LIFE) == (joined.reason, joined.stamp.incarnation)
    assert "version 1 of the protocol, got version 2 from one that speaks 2, 3" in joined.lines[0]
    assert {"version": 1} == counted(worker)


def test_numbers_that_cannot_be_are_refused_as_such(worker):
    """The answer to the report is INVALID."""
    message = pb.ReportRequest.FromString(codec.encode(report(worker)))
    message.subspace.weight = float("nan")
    (answer,) = answers(
        worker.commit_batch([inbound(report(worker), data=message.SerializeToString())])
    )

    assert isinstance(answer, Answer)
    assert Reason.INVALID == answer.reason
    assert {"not_finite": 1} == counted(worker)
    assert 0 == learnt(worker)


def test_what_cannot_be_under_another_name_is_spoofed(worker):
    """The false name counts first: the answer does not say what else is wrong."""
    message = pb.ReportRequest.FromString(codec.encode(report(worker, "c")))
    message.subspace.weight = float("nan")
    (out,) = worker.commit_batch(
        [inbound(report(worker), node="d", data=message.SerializeToString())]
    )

    assert (Refuse, "denied") == (type(out), out.kind)
    assert {"spoofed": 1} == counted(worker)


def test_a_bug_costs_the_message_that_met_it(worker, clock, monkeypatch):
    """The others get "not now", and are taken a moment later; the process goes on."""
    good, bad = inbound(report(worker, "good")), inbound(report(worker, "bad"))
    step = AggregatorNode.step

    def stumbles(node, event, now):
        if getattr(getattr(event, "message", None), "stamp", (None,))[0] == "bad":
            raise ZeroDivisionError("a bug")
        return step(node, event, now)

    monkeypatch.setattr(AggregatorNode, "step", stumbles)
    outs = worker.commit_batch([good, bad])
    clock.steady += AGAIN_S
    later = worker.commit_batch([good])

    assert [Reason.UNAVAILABLE] == [answer.reason for answer in answers(outs)]
    assert [bad] == [out.inbound for out in outs if isinstance(out, Refuse)]
    assert 1 == worker.tallies.bugs
    assert [Reason.ACK] == [answer.reason for answer in answers(later)]


@pytest.mark.parametrize("where", ["step", "pack", "decode"])
def test_no_bug_ends_the_process(worker, clock, monkeypatch, where):
    """Wherever a batch meets it: on a tick, at the commit, in the bytes."""

    def stumbles(*_, **__):
        raise ZeroDivisionError("a bug")

    said = inbound(report(worker))
    with monkeypatch.context() as patch:
        place = {"step": AggregatorNode, "pack": records, "decode": codec}[where]
        patch.setattr(place, where, stumbles)
        worker.commit_batch([said, said] if where != "step" else [])
        worker.commit_batch([said, said])
    clock.steady += AGAIN_S
    later = worker.commit_batch([said])

    assert worker.tallies.bugs
    assert [Reason.ACK] == [answer.reason for answer in answers(later)]


def test_a_wild_time_does_not_make_the_store_unreadable(worker):
    """An incarnation as late as the wire allows, closed again and again: all can be read."""
    late = fields.MOST // 2
    for i in range(70):
        stamp = Stamp("c", "g", Incarnation(late, i), 1)
        final = replace(report(worker), stamp=stamp, final=True)
        worker.commit_batch([inbound(final)])
    worker.start()

    assert late + 1 == worker.node.ledger("g").member("c").floor


def test_a_question_is_answered_after_its_event_is_committed(worker):
    """An operator who reads "done" can rely on it."""
    worker.commit_batch([inbound(report(worker))])
    said = []
    asked = Asked(None, lambda *_: learnt(worker), said.append)
    (out,) = worker.commit_batch([asked])

    assert isinstance(out, Reply)
    assert 10 == out.value


def test_a_machine_that_starts_again_holds_what_was_acknowledged(worker):
    """Another worker on the same store: same name, same rows."""
    worker.commit_batch([inbound(report(worker))])
    before = worker.node.incarnation
    worker.start()

    assert (before, 10) == (worker.node.incarnation, learnt(worker))


def test_a_report_sent_twice_is_counted_once(worker):
    """In one batch or in two."""
    said = inbound(report(worker))
    worker.commit_batch([said, said])
    outs = worker.commit_batch([said])

    assert [Reason.ACK] == [answer.reason for answer in answers(outs)]
    assert 10 == learnt(worker)


def test_a_report_for_another_store_is_refused_as_such(worker):
    """On a way of its own; on a shared one it is passed over."""
    other = replace(report(worker), pinned=Incarnation(5, 5))
    shared = replace(inbound(other), shared=True)

    assert Reason.WRONG_PARENT == answers(worker.commit_batch([inbound(other)]))[0].reason
    assert [] == answers(worker.commit_batch([shared]))
    assert {"wrong_parent": 1, "stranger": 1} == counted(worker)


def test_what_the_machine_refuses_is_counted_by_its_reason(worker):
    """Another schema, another fence, another content of one number, fewer readings."""
    worker.commit_batch([inbound(report(worker))])
    for reason, said in (
        ("schema", replace(report(worker), fingerprint="0" * 64)),
        ("fenced", replace(report(worker), fence=b"f" * 16)),
        ("equivocation", replace(report(worker), lifetime=11)),
        ("shrunk", report(worker, seq=2, n=5)),
    ):
        before = counted(worker)
        worker.commit_batch([inbound(said)])
        assert before | {reason: 1} == counted(worker)


def test_an_older_report_is_counted_unless_it_is_the_last(worker):
    """A replay changes nothing; a final one announces that no more will come."""
    worker.commit_batch([inbound(report(worker, seq=5, n=20))])
    old = report(worker, seq=4)
    (answer,) = answers(worker.commit_batch([inbound(old)]))
    worker.commit_batch([inbound(replace(old, final=True))])

    assert (Reason.ACK, 5) == (answer.reason, answer.newest)
    assert {"overtaken": 1} == counted(worker)


def test_not_now_is_counted(worker, disk):
    """By those who watch a disk that fails."""
    said = inbound(report(worker))
    disk.is_full = True
    worker.commit_batch([said, said])

    assert {"unavailable": 2} == counted(worker)


def test_a_report_that_comes_again_after_a_restart_is_the_same(worker, disk):
    """Its row holds its bytes and no digest; another report with its number is refused."""
    first = report(worker, "c")
    worker.commit_batch([inbound(first)])
    key = ("row", "g", "c", str(LIFE.created_ms), str(LIFE.nonce))
    kept = records.unpack(key, disk.load()[key])
    worker.node = None
    worker.start()
    again = answers(worker.commit_batch([inbound(first)]))
    other = answers(worker.commit_batch([inbound(replace(first, lifetime=99))]))

    assert b"" == kept.digest
    assert [Reason.ACK] == [answer.reason for answer in again]
    assert [Reason.EQUIVOCATION] == [answer.reason for answer in other]


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_acknowledged_without_the_stores_name(worker, disk, again):
    """Neither a new report nor one whose row is committed already: the program ends instead."""
    worker.commit_batch([inbound(report(worker, "c"))])
    os.unlink(disk.path)
    late = inbound(report(worker, "c" if again else "d"))

    with pytest.raises(StoreGone, match=r"expected the store .* in its place while it is open"):
        worker.commit_batch([late])
