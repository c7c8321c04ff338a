"""Admission at work: in front of a commit worker, whose store tells what names stand for."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Forget, Now, SetBan
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
from submerge.protocol.permission import Permission
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge_aggregator.admission.control import (
    MOST_COUNTED,
    AdmissionControl,
    AdmissionRules,
    standing_of,
)
from submerge_aggregator.admission.roster import RevokedList, RosterEntry
from submerge_aggregator.batch import Asked, Down
from submerge_aggregator.downlink import UNPROVEN, Inbound, PeerIdentity
from submerge_aggregator.store import Store
from submerge_aggregator.worker import CommitWorker
from submerge_proto.wire import codec

SCHEMA, SUMMARIES = Schema.anonymous(4), Subspaces(2)
FENCE = b"f" * 16
LEGACY, BROKER = PeerIdentity("certificate", (), 7), PeerIdentity("broker")
LIVES = {node: Incarnation(1_700_000_000_000 + i, i) for i, node in enumerate(("site", "c1", "c2"))}


def certified(role: Any, *groups: str) -> PeerIdentity:
    return PeerIdentity("certificate", Permission(role, groups).uris, 8)


class Root:
    """A root's worker on a store; `reports` and `joins` say what a node says, and are answered."""

    def __init__(self, path: Any, rules: AdmissionRules | None = None) -> None:
        settings, plans = AggregatorSettings("root", None), {"g": GroupPlan(SUMMARIES, SCHEMA)}
        self.worker = CommitWorker(
            lambda: AggregatorNode(settings, plans, np.random.default_rng(0)),
            Store(path),
            lambda: Now(100.0, 1.7e9 + 100.0),
            admission=AdmissionControl(rules),
        )
        self.worker.start()
        self.seqs = itertools.count(1)

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.close()

    def posts(self, message: Join | Report, identity: PeerIdentity) -> Joined | Answer:
        """Hand a message over; return the answer."""
        kind, data = codec.kind_of(message), codec.encode(message)
        node = None if identity.proof == "none" else message.stamp.node
        inbound = Inbound(
            *(kind, data, node, False, lambda *_: None, lambda *_: None), identity=identity
        )
        (answer,) = (
            codec.decode(out.kind, out.data)
            for out in self.worker.commit_batch([inbound])
            if isinstance(out, Down) and out.inbound is not None
        )
        assert isinstance(answer, Joined | Answer)
        return answer

    def joins(self, node: str, identity: PeerIdentity, fence: bytes = b"") -> Joined:
        stamp = Stamp(node, "g", LIVES.get(node, Incarnation(1_700_000_000_000, 99)), 0)
        answer = self.posts(Join(stamp, fence, (), b""), identity)
        assert isinstance(answer, Joined)
        return answer

    def reports(self, node: str, identity: PeerIdentity, fence: bytes = b"") -> Answer:
        """Report more than before."""
        assert self.worker.node is not None
        seq = next(self.seqs)
        learner = SUMMARIES.learner(SCHEMA)
        rows = np.random.default_rng(0).standard_normal((10 + seq, 4))
        learner.learn(rows, rows)
        stamp = Stamp(node, "g", LIVES.get(node, Incarnation(1_700_000_000_000, 99)), seq)
        answer = self.posts(
            Report(
                stamp=stamp,
                final=False,
                pinned=self.worker.node.incarnation,
                fence=fence,
                fingerprint=SCHEMA.fingerprint,
                summary=learner.summary(),
                moments=None,
                counts=Counts(10 + seq),
                as_of=1.7e9,
                synced=True,
                version=0,
                lifetime=10 + seq,
            ),
            identity,
        )
        assert isinstance(answer, Answer)
        return answer

    def is_ordered(self, event: Any) -> None:
        self.worker.commit_batch([Asked(event, lambda *_: None, lambda _: None)])

    @property
    def kept(self) -> dict[Any, bytes]:
        return self.worker.store.load()

    @property
    def denied(self) -> int:
        return self.worker.refusals.counts["denied"]


def says_everything(root: Root, kits: dict[str, PeerIdentity]) -> list[Reason]:
    """Have all three nodes report, and join again as after a restart."""
    return [
        answer.reason
        for node, fence in (("site", FENCE), ("c1", b""), ("c2", b""))
        for answer in (root.joins(node, kits[node], fence), root.reports(node, kits[node], fence))
    ]


ACKS = [Reason.ACK] * 6
RENEWED = {
    "site": certified("aggregator"),
    "c1": certified("client", "g"),
    "c2": certified("client"),
}


# -- nothing but a counter ---------------------------------------------------------------


@pytest.mark.parametrize("identity", [LEGACY, BROKER, certified("client"), certified("reader")])
def test_a_denied_join_gets_no_schema_and_changes_nothing(tmp_path, identity):
    """Its line says why; the store's bytes are the same, and one is counted."""
    with Root(tmp_path / "s.db") as root:
        before = root.kept
        answer = root.joins("site", identity, FENCE)

        assert (Reason.DENIED, b"", 1) == (answer.reason, answer.schema, root.denied)
        assert len(answer.lines) == 1
        assert FENCE == answer.fence
        assert before == root.kept


@pytest.mark.parametrize("identity", [LEGACY, BROKER, certified("client")])
def test_a_clients_kit_with_a_fence_is_denied_and_its_row_stays(tmp_path, identity):
    """Known as a client: neither two reports with a fence nor a join change a byte."""
    with Root(tmp_path / "s.db") as root:
        assert Reason.ACK is root.reports("c1", identity).reason
        before = root.kept
        answers = [
            root.joins("c1", identity, FENCE),
            *(root.reports("c1", identity, FENCE) for _ in range(2)),
        ]

        assert [Reason.DENIED] * 3 == [answer.reason for answer in answers]
        assert before == root.kept
        assert Reason.ACK is root.reports("c1", identity).reason


def test_a_denied_child_recognises_the_answer(tmp_path):
    """It is pinned to this store, and echoes the fence: else the child would pass it over."""
    with Root(tmp_path / "s.db") as root:
        answer = root.reports("site", LEGACY, FENCE)

        assert root.worker.node is not None
        assert (Reason.DENIED, root.worker.node.incarnation, FENCE) == (
            *(answer.reason, answer.pinned, answer.fence),
        )


# -- what a name stands for ----------------------------------------------------------------


def test_a_name_stands_for_what_it_was_until_it_is_forgotten(tmp_path):
    """Through a broker, from where names are believed."""
    with Root(tmp_path / "s.db", AdmissionRules(aggregators=("*",))) as root:
        node = root.worker.node
        assert node is not None
        assert Reason.ACK is root.reports("c1", BROKER).reason
        assert Reason.ACK is root.joins("site", BROKER, FENCE).reason
        assert ("client", "aggregator", None) == tuple(
            standing_of(node, name) for name in ("c1", "site", "c2")
        )
        assert Reason.DENIED is root.joins("c1", BROKER, FENCE).reason
        assert Reason.DENIED is root.reports("site", BROKER).reason
        for name in ("c1", "site"):
            root.is_ordered(Forget("g", name))

        assert standing_of(node, "c1") is None
        assert (
            Reason.STALE is root.joins("c1", BROKER, FENCE).reason
        )  # it may ask; that one is over


def test_sealed_readings_keep_a_name(tmp_path):
    """A client that was silent for a month comes back as a client, and as nothing else."""
    with Root(tmp_path / "s.db") as root:
        root.reports("c1", BROKER)
        node = root.worker.node
        assert node is not None
        ledger = node.ledger("g")
        assert ledger is not None
        ledger.seal("c1", LIVES["c1"])

        assert () == ledger.live("c1")
        assert "client" == standing_of(node, "c1")


def test_a_link_without_tls_is_believed_as_before(tmp_path):
    """Without TLS no name is proven: a fence makes an aggregator, and its lack a client."""
    with Root(tmp_path / "s.db") as root:
        assert ACKS == says_everything(root, dict.fromkeys(LIVES, UNPROVEN))
        assert 0 == root.denied


# -- from kits without roles to kits with roles -------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(LIVES)))
@pytest.mark.parametrize("before", [LEGACY, UNPROVEN], ids=["upgraded", "from no TLS"])
def test_kits_are_renewed_in_any_order_and_every_report_is_taken(tmp_path, order, before):
    """A store of before, the new version on it, one kit after the other, and the last step."""
    path = tmp_path / "s.db"
    with Root(path) as root:  # as yesterday: no certificate was looked at
        assert ACKS == says_everything(root, dict.fromkeys(LIVES, UNPROVEN))
    kits = dict.fromkeys(LIVES, before)
    with Root(path) as root:
        assert ACKS == says_everything(root, kits)
        for node in order:
            kits[node] = RENEWED[node]
            assert ACKS == says_everything(root, kits)
    with Root(path, AdmissionRules(legacy_kits=False)) as root:
        assert ACKS == says_everything(root, kits)
        assert (0, 0) == (root.worker.admission.legacy_kits, root.denied)
        assert Reason.DENIED is root.reports("c1", LEGACY).reason


def test_a_store_that_is_lost_needs_the_roster(tmp_path):
    """Without it an aggregator with an old kit is refused there; with it nothing is."""
    kits = dict.fromkeys(LIVES, LEGACY)
    with Root(tmp_path / "new.db") as root:
        refused = [Reason.DENIED, Reason.DENIED, *[Reason.ACK] * 4]
        assert refused == says_everything(root, kits)
    with Root(
        tmp_path / "other.db", AdmissionRules(roster={"site": RosterEntry("aggregator")})
    ) as root:
        assert ACKS == says_everything(root, kits)


# -- counted, and asked again -------------------------------------------------------------


def test_kits_without_a_role_are_counted_by_name(tmp_path, monkeypatch):
    """Each once, and only certificates; the number is bounded."""
    with Root(tmp_path / "s.db") as root:
        control = root.worker.admission
        for identity in (LEGACY, LEGACY, BROKER, UNPROVEN, certified("client")):
            root.reports("c1", identity)
        assert 1 == control.legacy_kits
        control.objection_to_watch(LEGACY, "dashboard", "g")
        assert 2 == control.legacy_kits
        monkeypatch.setattr(control, "_legacy", {str(n) for n in range(MOST_COUNTED)})
        root.reports("c2", LEGACY)
        assert MOST_COUNTED == control.legacy_kits


def test_a_ban_is_an_objection_to_a_watch_and_raises_the_revision(tmp_path):
    """Whatever the kit; and the release takes both back."""
    with Root(tmp_path / "s.db") as root:
        control, kit = root.worker.admission, certified("client")
        first = control.revision
        root.is_ordered(SetBan("c1"))

        assert control.objection_to_watch(kit, "c1", "g") == "an operator has banned it"
        assert control.objection_to_watch(kit, "c2", "g") is None
        assert first < control.revision
        assert Reason.BANNED is root.reports("c1", kit).reason
        second = control.revision
        root.reports("c2", kit)
        assert second == control.revision
        root.is_ordered(SetBan("c1", banned=False))
        assert control.objection_to_watch(kit, "c1", "g") is None


def test_who_is_revoked_is_denied_at_the_next_call():
    """A list that changes raises the revision, too."""

    class File:
        content = RevokedList()

        def current(self) -> RevokedList:
            return self.content

    file = File()
    control = AdmissionControl(revoked=file)  # type: ignore[arg-type]
    kit = certified("client")
    first = control.revision
    assert control.objection_to_watch(kit, "c1", "g") is None
    file.content = RevokedList(frozenset({8}))

    assert "revoked" in (control.objection_to_watch(kit, "c1", "g") or "")
    assert first < control.revision
    assert control.objection_to_watch(kit._replace(serial=9), "c1", "g") is None


def test_a_kit_without_a_role_is_named_at_debug_level(tmp_path, caplog):
    """So that an operator can find out which."""
    with Root(tmp_path / "s.db") as root, caplog.at_level(logging.DEBUG):
        root.reports("c1", LEGACY)
        root.reports("c1", LEGACY)

    assert 1 == [record.getMessage() for record in caplog.records].count("kit without a role")
