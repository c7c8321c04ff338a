"""What is recorded: joins and what the machine notes once committed, refusals once a minute."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import Incarnation, Join, Stamp
from submerge.protocol.permission import Permission
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge_aggregator import batch
from submerge_aggregator.audit import AuditLog
from submerge_aggregator.batch import AGAIN_S
from submerge_aggregator.downlink import Inbound, PeerIdentity
from submerge_aggregator.refusals import HARMLESS, MINUTE_S, REASONS, Refusals
from submerge_aggregator.worker import AGAIN_S as STORE_AGAIN_S
from submerge_aggregator.worker import CommitWorker
from submerge_proto.wire import codec
from support.faulty import FaultyStore
from support.house import House
from support.nodes import new_incarnation

SCHEMA = Schema.anonymous(4)
ROWS = np.random.default_rng(0).normal(size=(60, 6))


class Clock:
    """Stands still until the test moves it."""

    steady = 100.0

    def __call__(self) -> Now:
        return Now(self.steady, 1.7e9 + self.steady)


class Remembered(AuditLog):
    """An audit log in memory."""

    def __init__(self) -> None:
        super().__init__(None)
        self.entries: list[dict] = []

    def record(self, event: str, /, **facts: object) -> None:
        self.entries.append({"event": event, **facts})


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def audit():
    return Remembered()


@pytest.fixture
def disk(tmp_path):
    return FaultyStore(tmp_path / "s.db")


@pytest.fixture
def worker(disk, clock, audit):
    """A root's worker, started; what its start has recorded is forgotten."""
    settings, rng = AggregatorSettings("root", None), np.random.default_rng(0)
    plans = {"g": GroupPlan(Subspaces(2), SCHEMA)}
    worker = CommitWorker(
        lambda: AggregatorNode(settings, plans, rng), disk, clock, record=audit.record
    )
    worker.start()
    assert [{"event": "store", "what": "new store", "why": "there was none"}] == audit.entries
    audit.entries.clear()
    yield worker
    worker.close()


def join(node="c", life=7, *, fence=b"", peer="ipv4:10.0.0.7:51234", schema=SCHEMA, shared=False):
    """A join as it comes over a transport."""
    stamp = Stamp(node, "g", Incarnation(1_700_000_000_000, life), 0)
    data = codec.encode(Join(stamp, fence, (), schema.canonical))
    return Inbound("join", data, node, shared, lambda *_: None, lambda *_: None, peer)


def test_a_join_is_recorded_with_who_and_whence(worker, audit):
    """Node, group, kind, incarnation and address."""
    worker.commit_batch(
        [join(), join("site", fence=bytes(range(16))), join("m", peer="", shared=True)]
    )

    facts = {"event": "join", "group": "g", "incarnation": str(Incarnation(1_700_000_000_000, 7))}
    address = {"address": "ipv4:10.0.0.7:51234"}
    assert [
        facts | {"node": "c", "kind": "client"} | address,
        facts | {"node": "site", "kind": "aggregator"} | address,
        facts | {"node": "m", "kind": "client", "address": "broker"},
    ] == audit.entries


def test_a_join_with_a_certificate_is_recorded_with_its_role_groups_and_serial(worker, audit):
    uris = Permission("client", ("g", "hall")).uris
    identity = PeerIdentity("certificate", uris, 0xBEEF)
    worker.commit_batch([replace(join(), identity=identity)])

    (entry,) = audit.entries
    certificate = {"role": "client", "groups": ("g", "hall"), "serial": f"{0xBEEF:040X}"}
    assert certificate.items() <= entry.items()


def test_the_same_join_is_recorded_once_an_hour(worker, clock, audit):
    """Another port is no new entry; another address and another incarnation are."""
    for each in (
        join(),
        join(),
        join(peer="ipv4:10.0.0.7:9"),
        join(peer="ipv4:10.0.0.8:9"),
        join(life=8),
    ):
        worker.commit_batch([each])
    assert 3 == len(audit.entries)
    clock.steady += AGAIN_S
    worker.commit_batch([join()])
    assert 4 == len(audit.entries)


def test_joins_under_many_names_take_bounded_memory(worker, audit, monkeypatch):
    """The oldest is forgotten."""
    monkeypatch.setattr(batch, "MOST_KNOWN", 8)
    for number in range(40):
        worker.commit_batch([join(f"c{number}")])
    worker.commit_batch([join("c39"), join("c0")])
    assert 41 == len(audit.entries)
    assert 8 == len(worker._entries._known)


def test_what_is_not_committed_is_not_recorded(worker, disk, clock, audit):
    """The batch has not happened; when it is sent again, it is recorded."""
    site = join("site", fence=bytes(16))
    with disk.full():
        worker.commit_batch([site])
    assert [] == audit.entries
    clock.steady += STORE_AGAIN_S
    worker.commit_batch([site])
    assert ["join"] == [entry["event"] for entry in audit.entries]


def test_a_join_that_is_refused_is_no_join(worker, audit):
    """Another schema: no entry of a node that joined."""
    worker.commit_batch([join(schema=Schema.anonymous(5))])
    assert [] == [entry for entry in audit.entries if entry["event"] == "join"]


def test_notes_of_the_machine_are_recorded_by_their_kind(worker, audit):
    """Quarantine, a rejected model, a new store; others are for the log alone."""
    for what in ("node quarantined", "model rejected", "ignored"):
        worker._entries.add_note(Note(what, {"node": "c"}))
    worker.commit_batch([])
    assert [("quarantine", "c"), ("model", "c")] == [(e["event"], e["node"]) for e in audit.entries]


def test_refusals_are_recorded_once_a_minute_each_with_their_number(clock, audit):
    """Whatever a flood is; what honest nodes do every day is in no entry."""
    refusals = Refusals(lambda: clock.steady, audit.record)
    for number in range(500):
        refusals.count("spoofed", f"n{number}", why="another name", count=7)
        refusals.count("throttled", "n1")
    for reason in HARMLESS:
        refusals.count(reason, "n1")
    first = [(entry["reason"], entry["count"], entry["node"]) for entry in audit.entries]
    assert [("spoofed", 1, "n0"), ("throttled", 1, "n1")] == first
    clock.steady += MINUTE_S
    for _ in range(3):
        refusals.count("spoofed", "n9")
    assert ("spoofed", 500, "n9") == tuple(
        audit.entries[-1][k] for k in ("reason", "count", "node")
    )
    assert 3 == len(audit.entries)


def test_every_reason_can_be_recorded(clock, audit):
    """None is missing a counter."""
    refusals = Refusals(lambda: clock.steady, audit.record)
    for reason in REASONS:
        refusals.count(reason)
    assert len(REASONS) - len(HARMLESS) == len(audit.entries)


def test_orders_are_recorded_and_bans_as_bans(tmp_path):
    """Each that was carried out, with what it changed; those that were refused as `denied`."""
    audit = Remembered()
    with House(tmp_path) as house:
        house.server.order_log._record = audit.record
        house.hears("c", ROWS)
        house.hears("c", ROWS[:9], incarnation=new_incarnation(2))
        for verb in ("pause", "quarantine", "forget?ban=1", "forget?ban=2", "burn"):
            house.asks("POST", f"/nodes/room/c/{verb}")
    assert [("order", "pause"), ("order", "quarantine"), ("ban", "forget")] == [
        (entry["event"], entry["verb"]) for entry in audit.entries if "verb" in entry
    ]
    assert {("c", "room")} == {(e["node"], e["group"]) for e in audit.entries if "verb" in e}
    assert {("unknown", "socket")} == {(e["by"], e["address"]) for e in audit.entries}
    assert [
        ("POST /nodes/room/c/forget", "ban is 0 or 1, got '2'"),
        ("POST /nodes/room/c/burn", "POST /nodes/room/c/burn: expected forget, drop, quarantin"),
    ] == [(e["what"], e["why"][:57]) for e in audit.entries if e["event"] == "denied"]


@pytest.mark.slow
def test_recording_from_many_threads_loses_no_entry(clock):
    """The log has a lock, and refusals come from any thread."""
    audit, interval = Remembered(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    refusals = Refusals(lambda: clock.steady, audit.record)
    threads = [
        threading.Thread(target=lambda: [refusals.count("spoofed") for _ in range(2000)])
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    sys.setswitchinterval(interval)
    clock.steady += MINUTE_S
    refusals.count("spoofed")
    assert 16_001 == sum(entry["count"] for entry in audit.entries)
