"""Who may do what, at a root that ships, with real certificates: over gRPC and Mosquitto.

The root, Mosquitto and its access control list are the shipped ones (`support.hostile`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from cryptography import x509

from submerge.protocol.machine import SetBan
from submerge.protocol.messages import Counts, Incarnation, Join, Joined, Reason, Report, Stamp
from submerge.protocol.permission import Permission
from submerge_aggregator.downlink import over_grpc
from submerge_client.kit import read_kit
from submerge_client.uplink import Came, Opened
from submerge_client.uplink.over_grpc import GrpcUplink
from submerge_client.uplink.tls import Tls
from submerge_proto.wire import codec
from support.broker import PROGRAM, REQUIRED
from support.certified import LOOPBACK
from support.hostile import CHANNELS, GROUP, MOST_BYTES, OverGrpc, OverMqtt
from support.nodes import new_incarnation
from support.patience import until
from support.ways import Ear
from support.wire import a_report, subspace_of

pytestmark = pytest.mark.slow

FENCE = b"f" * 16
CLIENT, AGGREGATOR = Permission("client", (GROUP,)), Permission("aggregator")


class Site:
    """A root, and a file of what is revoked."""

    def __init__(self, way: type, folder: Path, stack: ExitStack) -> None:
        self.revoked = folder / "revoked.txt"
        self.revoked.write_text("# nothing yet\n")
        self.way = way(folder, stack, security={"revoked": str(self.revoked)})
        self.root = self.way.root
        self.serials: dict[str, int] = {}

    def kit(self, node: str, permission: Permission | None) -> Path:
        """Make a node's kit, or renew it."""
        path = self.way.fleet.kit(node, permission=permission)
        certificate = x509.load_pem_x509_certificate(read_kit(path).cert)
        self.serials[node] = certificate.serial_number
        return path

    def says(self, kit: Path, message: Join | Report) -> Any:
        kind = "join" if isinstance(message, Join) else "report"
        (heard,) = self.way.message(kit, kind, codec.encode(message))
        return heard

    def joins(self, kit: Path, fence: bytes = b"") -> Joined:
        stamp = Stamp(kit.stem, GROUP, new_incarnation(1), 0)
        heard = self.says(kit, Join(stamp, fence, (), b""))
        assert isinstance(heard, Joined), heard
        return heard

    def reports(self, kit: Path, seq: int, fence: bytes = b"", **said: Any) -> Reason:
        stamp = Stamp(kit.stem, GROUP, new_incarnation(1), seq)
        reported: dict[str, Any] = {
            "stamp": stamp,
            "fence": fence,
            "pinned": self.root.incarnation,
            "fingerprint": self.root.schema.fingerprint,
            "summary": subspace_of(len(CHANNELS), [5.0, 4.0, 3.0], schema=self.root.schema),
            "counts": Counts(100 + seq),
            "moments": None,
            "census": None,
            "alarm_status": None,
        }
        heard = self.says(kit, a_report(**reported | said))
        return heard.reason if hasattr(heard, "reason") else heard

    def puts_revoked(self, line: str) -> None:
        """Replace the list at once, and wait until it has been read."""
        admission = self.root._server.worker.admission
        before = admission.revision
        new = self.revoked.with_suffix(".new")
        new.write_text(f"{line}\n")
        new.replace(self.revoked)
        until(lambda: admission.revision != before)

    def watches(self, kit: Path, ear: Ear, stack: ExitStack) -> None:
        """Have a child watch, until the end."""
        target = f"{LOOPBACK}:{self.root.port}"
        how: dict[str, Any] = {"node": kit.stem, "groups": (GROUP,), "limit": MOST_BYTES}
        up = GrpcUplink(target, tls=Tls(kit=kit), **how)
        stack.callback(up.close)
        up.open(ear)


@pytest.fixture(params=[OverGrpc, OverMqtt], ids=lambda way: way.name)
def site(request, tmp_path) -> Iterator[Site]:
    """One of each way."""
    if request.param is OverMqtt and PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_grpc, "LOOK_S", 0.05)
        yield Site(request.param, tmp_path, stack)


@pytest.fixture
def over_mtls(tmp_path) -> Iterator[Site]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_grpc, "LOOK_S", 0.05)
        yield Site(OverGrpc, tmp_path, stack)


@pytest.mark.parametrize("permission", [None, CLIENT], ids=["no role", "client"])
def test_a_clients_kit_with_a_fence_changes_nothing(site, permission):
    """Two reports of 3.3e38 samples: a name that is new, and one that has reported as a client."""
    known, new = site.kit("pump-1", permission), site.kit("pump-2", permission)
    assert Reason.ACK is site.reports(known, 1)
    before = site.root.held()
    for kit in (known, new):
        answer = site.joins(kit, FENCE)
        assert (Reason.DENIED, b"") == (answer.reason, answer.schema)
        assert answer.lines
        for seq in (2, 3):
            assert Reason.DENIED is site.reports(kit, seq, FENCE, counts=Counts(2**60))

    assert before == site.root.held()
    assert 6 == site.root.counts["denied"]
    assert Reason.ACK is site.reports(known, 2)


def test_a_role_and_a_group_in_the_certificate_are_checked(over_mtls):
    """Join, report and watch; one who may hears the hello and goes on."""
    stack, ears = ExitStack(), {}
    may = {
        "pump-1": CLIENT,
        "site-1": AGGREGATOR,
        "dash": Permission("reader", (GROUP,)),
        "attic-1": Permission("client", ("attic",)),
        "boss": Permission("operator"),
    }
    kits = {node: over_mtls.kit(node, permission) for node, permission in may.items()}
    joined = {
        node: over_mtls.joins(kit, FENCE if node == "site-1" else b"").reason
        for node, kit in kits.items()
    }
    with stack:
        for node in ("pump-1", "dash", "attic-1"):
            ears[node] = Ear()
            over_mtls.watches(kits[node], ears[node], stack)
        for node in ("pump-1", "dash"):
            ears[node].opened()
        assert "PERMISSION_DENIED: its groups are attic, got room" in ears["attic-1"].parted().why

    denied = dict.fromkeys(("dash", "attic-1", "boss"), Reason.DENIED)
    assert {"pump-1": Reason.ACK, "site-1": Reason.ACK, **denied} == joined
    assert Reason.DENIED is over_mtls.reports(kits["dash"], 1)
    assert Reason.DENIED is over_mtls.reports(kits["attic-1"], 1)
    assert not [ear for ear in ears["attic-1"].heard if isinstance(ear, Came)]


def test_a_stream_that_is_open_ends_when_its_kit_is_revoked(over_mtls):
    """By serial number, by name, and by a ban; the neighbour's stays open."""
    with ExitStack() as stack:
        ears = {node: Ear() for node in ("a", "b", "c", "d")}
        kits = {node: over_mtls.kit(node, CLIENT) for node in ears}
        for node, ear in ears.items():
            over_mtls.watches(kits[node], ear, stack)
            ear.opened()
        over_mtls.puts_revoked(f"serial {over_mtls.serials['a']:X} # sold\nnode b")
        over_mtls.root._does(over_mtls.root._server.ask(lambda *_: None, SetBan("c")))

        assert "is in [security] revoked" in ears["a"].parted().why
        assert "its name is in [security] revoked" in ears["b"].parted().why
        assert "an operator has banned it" in ears["c"].parted().why
        refused = [over_mtls.reports(kits[node], 1) for node in ears]
        assert [Reason.DENIED, Reason.DENIED, Reason.BANNED, Reason.ACK] == refused
        # It was opened, and that is all beside models.
        assert [Opened()] == [each for each in list(ears["d"].heard) if not isinstance(each, Came)]
        over_mtls.puts_revoked("# none")
        ears["a"].opened()


def test_a_name_that_is_revoked_is_refused_on_both_ways(site):
    """Without a restart, and let in again in the same way."""
    kit = site.kit("pump-1", CLIENT)
    assert Reason.ACK is site.reports(kit, 1)
    site.puts_revoked("node pump-1")
    assert Reason.DENIED is site.reports(kit, 2)
    site.puts_revoked("node pump-2")
    assert Reason.ACK is site.reports(kit, 3)


def test_a_ban_is_heard_on_both_ways(site):
    kit = site.kit("pump-1", None)
    assert Reason.ACK is site.reports(kit, 1)
    site.root._does(site.root._server.ask(lambda *_: None, SetBan("pump-1")))

    assert Reason.BANNED is site.reports(kit, 2)
    assert Reason.BANNED is site.joins(kit).reason
    assert Incarnation is type(site.root.incarnation)
