"""Hostile and broken peers: each is refused by type and counted once, and changes nothing.

Over gRPC with mutual TLS, and over MQTT through Mosquitto with the settings and the ACL that are
shipped. "Nothing" is the store's bytes and the model's. Where the handshake or the broker refuses,
that is asserted, and that the root hears nothing of it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from submerge.protocol.messages import Counts, Join, Reason, Report, Stamp
from submerge_aggregator.downlink import over_grpc
from submerge_client.uplink.over_grpc import SERVICE, THROTTLED
from submerge_client.uplink.tls import Tls
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, forms, topics
from support.broker import PROGRAM, REQUIRED
from support.certified import LOOPBACK, Certified
from support.hostile import BURST, FLEET, GROUP, MOST_BYTES, ROOT, OverGrpc, OverMqtt
from support.nodes import new_incarnation
from support.patience import until
from support.wire import a_report, subspace_of

pytestmark = pytest.mark.slow

REPORT = f"/{SERVICE}/Report"
AGGREGATORS = ["another-fence", "a-copy-of-a-store"]
"""Kits have no role here: without being listed these would be clients."""
LATE_S = 2.0
"""What a connection may take to its first call; on real lines it may take longer."""


@pytest.fixture(scope="module", params=[OverGrpc, OverMqtt], ids=lambda way: way.name)
def way(request, tmp_path_factory) -> Iterator[Any]:
    """A root, and the way to it; two honest nodes have reported."""
    if request.param is OverMqtt and PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_grpc, "PATIENCE_S", LATE_S)
        patch.setattr(over_grpc, "LOOK_S", 0.05)
        folder = tmp_path_factory.mktemp(request.param.name)
        way = request.param(folder, stack, listen={"aggregators": AGGREGATORS})
        for node in ("honest", "upright"):
            Peer(way, node).has_reported(7)
        yield way


class Peer:
    """A node with a kit, and what an honest one of its name would say."""

    def __init__(self, way: Any, node: str) -> None:
        self.way, self.node, self.kit = way, node, way.fleet.kit(node)
        self.me, self.schema = way.root.incarnation, way.root.schema

    def report(self, seq: int = 7, **said: Any) -> Report:
        """Return a report that is taken."""
        seed = sum(self.node.encode())
        reported = {
            "stamp": Stamp(self.node, GROUP, new_incarnation(1), seq),
            "pinned": self.me,
            "fingerprint": self.schema.fingerprint,
            "summary": subspace_of(6, [5.0, 4.0, 3.0], schema=self.schema, seed=seed),
            "counts": Counts(100 + seq),
            "moments": None,
            "census": None,
            "alarm_status": None,  # it names alarms of its own node alone
        }
        return a_report(**reported | said)

    def join(self, **said: Any) -> Join:
        """Return a join that is taken."""
        reported = {"stamp": Stamp(self.node, GROUP, new_incarnation(1), 0), "fence": b""}
        return Join(**{**reported, "past_fences": (), "schema": b"", **said})

    def message(self, message: Report | Join | bytes, **how: Any) -> Any:
        """Say it; return what comes back."""
        kind = "join" if isinstance(message, Join) else "report"
        data = message if isinstance(message, bytes) else codec.encode(message)
        (heard,) = self.way.message(self.kit, kind, data, **how)
        return heard

    def has_reported(self, seq: int, **said: Any) -> None:
        """Be taken."""
        answer = self.message(self.report(seq, **said))
        assert Reason.ACK is answer.reason, answer


# -- what is said --------------------------------------------------------------------------

Said = Callable[[Peer], Report | Join | bytes]


def mutated(change: Callable[[Any], object]) -> Said:
    """An honest report whose bytes are changed on the way."""

    def said(peer: Peer) -> bytes:
        form = forms.report(peer.report())
        change(form)
        return form.SerializeToString()

    return said


def sigma(*values: float, energy: float = 100.0) -> Said:
    """Other singular values."""

    def change(form: Any) -> None:
        form.subspace.sigma = np.array(values, dtype="<f8").tobytes()
        form.subspace.energy = energy

    return mutated(change)


def stretched(form: Any) -> None:
    """Make one column a tenth too long."""
    columns = np.frombuffer(form.subspace.columns, dtype="<f4").copy()
    columns[:6] *= 1.1
    form.subspace.columns = columns.tobytes()


def hole(form: Any) -> None:
    """Put a NaN into the mean."""
    form.subspace.mean = np.array([1, 2, np.nan, 4, 5, 6], dtype="<f8").tobytes()


def one_more(peer: Peer) -> Report:
    """Be of seven channels, all of which add up."""
    return peer.report(summary=replace(subspace_of(7, [5.0, 4.0]), schema=peer.schema.fingerprint))


def replayed(peer: Peer) -> Report:
    """Say again what was said before the newest."""
    for seq in (8, 9):
        peer.has_reported(seq)
    return peer.report(8)


def over(peer: Peer) -> Report:
    """Go on with a life that has ended."""
    peer.has_reported(8, final=True)
    return peer.report(9)


def double(peer: Peer) -> Report:
    """Say two things under one number."""
    peer.has_reported(8)
    return peer.report(8, lifetime=300)


def fenced_off(peer: Peer) -> Report:
    """Speak for an aggregator's store that another process speaks for now."""
    assert Reason.ACK is peer.message(peer.join(fence=b"a" * 16)).reason
    return peer.report(fence=b"b" * 16)


def copied(peer: Peer) -> Join:
    """Ask to speak for a store of which another copy already does."""
    assert Reason.ACK is peer.message(peer.join(fence=b"a" * 16)).reason
    return peer.join(fence=b"b" * 16)


class Case(NamedTuple):
    """What is said, under which reason it is counted, and what comes back.

    A status is gRPC's: over MQTT there is only silence. `shared`: the reason on a broker, where
    it differs.
    """

    said: Said
    reason: str
    reported: Reason | str = Reason.INVALID
    shared: str = ""


DENIED, FOREIGN = "PERMISSION_DENIED", "INVALID_ARGUMENT"
CASES = {
    "spoofed node": Case(
        mutated(lambda form: setattr(form.header, "node", "honest")), "spoofed", DENIED
    ),
    "replayed old report": Case(replayed, "overtaken", Reason.ACK),
    "a life that is over": Case(over, "stale", Reason.STALE),
    "NaN": Case(mutated(hole), "not_finite"),
    "NaN as weight": Case(
        mutated(lambda form: setattr(form.subspace, "weight", np.nan)), "not_finite"
    ),
    "wrong d": Case(mutated(lambda form: setattr(form.subspace, "dim", 7)), "shape"),
    "wrong d that adds up": Case(one_more, "invalid"),
    "non-orthonormal basis": Case(mutated(stretched), "not_orthonormal"),
    "unsorted sigma": Case(sigma(3.0, 4.0, 5.0), "unsorted"),
    "negative sigma": Case(sigma(5.0, 4.0, -3.0), "range"),
    "huge sigma": Case(sigma(1e30, 4.0, 3.0, energy=2e60), "range"),
    "huge sigma, little energy": Case(sigma(1e9, 4.0, 3.0), "energy"),
    "huge weight": Case(mutated(lambda form: setattr(form.subspace, "weight", 1e30)), "range"),
    "another fingerprint": Case(
        lambda peer: peer.report(fingerprint="0" * 64), "schema", Reason.SCHEMA
    ),
    "another fence": Case(fenced_off, "fenced", Reason.FENCED),
    "a fence from a client": Case(
        lambda peer: peer.report(fence=b"b" * 16), "denied", Reason.DENIED
    ),
    "a fence in a join": Case(lambda peer: peer.join(fence=b"b" * 16), "denied", Reason.DENIED),
    "a copy of a store": Case(copied, "lineage", Reason.LINEAGE),
    "equivocation": Case(double, "equivocation", Reason.EQUIVOCATION),
    "for another store": Case(
        lambda peer: peer.report(pinned=new_incarnation(9)),
        "wrong_parent",
        Reason.WRONG_PARENT,
        "stranger",
    ),
    "another version": Case(
        mutated(lambda form: setattr(form.header, "version", 2)), "version", Reason.VERSION
    ),
    "no message": Case(lambda _: b"\xff" * 40, "malformed", FOREIGN),
    "oversize": Case(lambda _: bytes(MOST_BYTES + 1), "oversize", "RESOURCE_EXHAUSTED"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_type_and_changes_nothing(way, name):
    """One more of its reason, none of any other; the store's bytes and the model's stay."""
    said, reason, reported, shared = CASES[name]
    if way.name == "mqtt" and (shared or isinstance(reported, str)):
        reason, reported = shared or reason, ""
    peer = Peer(way, name.replace(" ", "-").replace(",", ""))
    words = said(peer)

    with unshaken(way, **{reason: 1}):
        heard = peer.message(words, silent=reported == "")

        assert reported == getattr(heard, "reason", heard)


# -- how much is said ------------------------------------------------------------------------


def test_a_flood_is_held_to_the_pace(way):
    """The burst is taken; what is more is refused unread; the others are heard as ever."""
    peer = Peer(way, "wild")
    data = codec.encode(peer.report())
    answers = way.message(peer.kit, "report", *[data] * BURST)

    with unshaken(way, throttled=1):
        (heard,) = way.message(peer.kit, "report", data, silent=True)

        assert [Reason.ACK] * BURST == [answer.reason for answer in answers]
        assert (f"UNAVAILABLE {THROTTLED}" if way.name == "grpc" else "") == heard
    Peer(way, "calm").has_reported(1)


def test_a_bomb_is_refused_before_it_is_unpacked(way):
    """Thirty megabytes in thirty kilobytes; Mosquitto knows no compression."""
    if way.name == "mqtt":
        pytest.skip("MQTT has no compression")
    peer = Peer(way, "bomber")
    with unshaken(way, oversize=1):
        (heard,) = way.calls(
            Tls(kit=peer.kit), REPORT, bytes(30 << 20), compression=grpc.Compression.Gzip
        )

        assert "RESOURCE_EXHAUSTED" == heard


def test_a_call_that_says_nothing_is_not_taken_for_a_large_one(way):
    """And a topic without bytes for what it is: a report that was taken back."""
    peer = Peer(way, "mute")
    if way.name == "mqtt":
        with unshaken(way, empty=1):
            assert [""] == way.message(peer.kit, "report", b"", silent=True)
        return
    with unshaken(way, malformed=1):
        assert [FOREIGN] == way.calls(Tls(kit=peer.kit), REPORT, b"")


# -- who comes, and by which way ---------------------------------------------------------------


def test_what_is_said_elsewhere_goes_nowhere(way):
    """A method that there is not; at a broker, a topic that is another's, or nobody's."""
    peer = Peer(way, "astray")
    if way.name == "grpc":
        with unshaken(way, foreign_topic=2):
            for method in (f"/{SERVICE}/Forget", "/another.Service/Report"):
                (heard,) = way.calls(Tls(kit=peer.kit), method, b"do it")
                assert "UNIMPLEMENTED" == heard
        return
    peer.has_reported(7)
    forged = codec.encode(Peer(way, "honest").report(8))
    with unshaken(way):
        for topic in (
            topics.up(FLEET, ROOT, "honest", "report", GROUP),
            topics.up(FLEET, ROOT, "", "report", GROUP),
            topics.model(FLEET, ROOT, GROUP),
        ):
            with way.visitor(peer.kit) as visitor:  # the broker hangs up
                visitor.say(topic, forged)
        # What it says in its own place comes after all that, and is heard.
        peer.has_reported(7)


def test_nobody_watches_under_anothers_name(way):
    """At a broker the ACL says who reads what: tests/live/test_mosquitto_acl.py."""
    if way.name == "mqtt":
        pytest.skip("nobody is asked for a watch")
    peer = Peer(way, "curious")
    request = pb.WatchRequest(header=forms.report(peer.report()).header)
    request.header.node = "honest"
    with unshaken(way, spoofed=1):
        (heard,) = way.calls(Tls(kit=peer.kit), f"/{SERVICE}/Watch", request.SerializeToString())

        assert DENIED == heard


def test_a_certificate_that_names_nobody_is_nobody(way):
    """Of the right authority; without a common name it speaks for no node at all."""
    peer = Peer(way, "nameless")
    kit = nameless(way.fleet)
    if way.name == "mqtt":
        with unshaken(way):
            assert not lets_in(way, Tls(kit=kit).context())
        return
    with unshaken(way, spoofed=1):
        (heard,) = way.calls(Tls(kit=kit), REPORT, codec.encode(peer.report()))

        assert DENIED == heard


@pytest.mark.parametrize("who", ["wrong CA", "no certificate", "plain text"])
def test_who_proves_nothing_is_not_let_in(way, who, tmp_path):
    """The handshake comes to nothing: over gRPC that is counted; the broker hangs up."""
    ca = tmp_path / "ca.pem"
    ca.write_bytes(way.fleet.authority.pem)
    forged = Certified(tmp_path).kit("honest")
    tls = Tls(ca, forged, forged) if who == "wrong CA" else Tls(ca)
    if way.name == "mqtt":
        with unshaken(way):
            assert not lets_in(way, None if who == "plain text" else tls.context())
        return
    data = codec.encode(Peer(way, "honest").report(8))
    with unshaken(way, handshake=1):
        (heard,) = way.calls(None if who == "plain text" else tls, REPORT, data)

        assert "UNAVAILABLE" == heard


# -- the rest --------------------------------------------------------------------------------


@contextmanager
def unshaken(way: Any, **reasons: int) -> Iterator[None]:
    """What is done inside is counted under these reasons and no others, and changes nothing."""
    held, before = way.root.held(), way.root.counts
    expected = before | {reason: n + before.get(reason, 0) for reason, n in reasons.items()}
    yield
    with suppress(AssertionError):  # or it is said what came in its place
        until(lambda: expected == way.root.counts)
    assert expected == way.root.counts
    assert held == way.root.held()


def lets_in(way: OverMqtt, context: ssl.SSLContext | None) -> bool:
    """Whether the broker answers a CONNECT with a yes."""
    connect = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x"
    try:
        with socket.create_connection((way.broker.host, way.broker.port), 5.0) as plain:
            if context is None:
                plain.sendall(connect)
                return plain.recv(4) == b"\x20\x02\x00\x00"
            with context.wrap_socket(plain, server_hostname=LOOPBACK) as safe:
                safe.sendall(connect)
                return safe.recv(4) == b"\x20\x02\x00\x00"
    except (ssl.SSLError, ConnectionError):
        return False


def nameless(fleet: Certified) -> Path:
    """Return a kit that its authority has signed for an organization, and no node."""
    made = fleet.authority.certify("x", (), now=datetime.now(UTC), lasts=timedelta(hours=1))
    old = x509.load_pem_x509_certificate(made.certificate)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "test")]))
        .issuer_name(old.issuer)
        .public_key(old.public_key())
        .serial_number(old.serial_number)
        .not_valid_before(old.not_valid_before_utc)
        .not_valid_after(old.not_valid_after_utc)
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    signed = builder.sign(fleet.authority.key, hashes.SHA256())
    pem = signed.public_bytes(serialization.Encoding.PEM)
    return fleet.write("nobody", "nobody", made.key, pem, fleet.authority.pem)
