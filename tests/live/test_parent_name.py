"""A child's parent is the aggregator that it is configured for, shown by real gRPC servers.

What a stolen kit may serve as, and that no order of renewing kits cuts off a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from submerge.protocol.permission import Permission
from submerge_aggregator.downlink.over_grpc import GrpcDownlink as Down
from submerge_aggregator.refusals import Refusals
from submerge_client.config.links import UplinkConfig
from submerge_client.uplink import Parted
from submerge_client.uplink.factory import make_uplink
from submerge_client.uplink.tls import Tls
from support.certified import LOOPBACK, Certified
from support.patience import until
from support.ways import Ear, Host

LIMIT = 100_000
HELLO = b"hello"
CLIENT, AGGREGATOR = Permission("client", ("g",)), Permission("aggregator")

pytestmark = pytest.mark.slow


@pytest.fixture
def fleet(tmp_path) -> Certified:
    return Certified(tmp_path)


@contextmanager
def serving(kit, address=f"{LOOPBACK}:0", **more) -> Iterator[Host]:
    """A gRPC server with a kit, which says hello."""
    host = Host(Down(address, limit=LIMIT, tls=Tls(kit=kit), **more))
    try:
        host.publish("", HELLO)
        yield host
    finally:
        host.close()


@contextmanager
def child_of(host: Host, kit, *, parent="root", name="localhost") -> Iterator[Ear]:
    """A child that is configured for a parent, by whatever host name."""
    ear, link = Ear(), UplinkConfig(url=f"grpcs://{name}:{host.downlink.port}")
    up = make_uplink(link, parent=parent, node="pump-1", groups=("g",), kit=kit)
    try:
        up.open(ear)
        yield ear
    finally:
        up.close()


def is_refused(ear: Ear, host: Host) -> str:
    """Wait for three tries that come to nothing; return why."""
    why = ear.parted().why
    until(lambda: host.downlink.handshakes_begun > 5, lambda: "further tries")
    assert all(isinstance(heard, Parted) for heard in ear.heard)
    return why


def test_a_parent_proves_its_own_name_and_no_host(fleet):
    """It may move to another machine, or another name in the DNS, with the kit that it has."""
    root = fleet.kit("root", permission=AGGREGATOR)
    with (
        serving(root) as host,
        child_of(host, fleet.kit("pump-1", permission=CLIENT)) as ear,
    ):
        ear.opened()
        ear.came(HELLO)


def test_a_parent_that_refuses_a_child_has_proven_its_name(fleet):
    """The child does not look at it again by a handshake that comes to nothing, at each try."""
    refusals, closed = Refusals(), SimpleNamespace(revision=0, objection_to_watch=lambda *_: "no")
    root = fleet.kit("root", permission=AGGREGATOR)
    with (
        serving(root, refusals=refusals, admission=closed) as host,
        child_of(host, fleet.kit("pump-1", permission=CLIENT)) as ear,
    ):
        assert "PERMISSION_DENIED: no" == ear.parted().why
        until(lambda: refusals.counts["denied"] > 1, lambda: "a second try")
        assert 1 == host.downlink.handshakes_begun


@pytest.mark.parametrize(
    ("thief", "permission", "said"),
    [
        ("pump-2", CLIENT, "certificate purpose"),
        ("north", AGGREGATOR, "expected aggregator root, got aggregator north"),
        ("broker", Permission("reader"), "expected aggregator root, got reader broker"),
    ],
)
def test_no_other_kit_serves_as_the_parent(fleet, thief, permission, said):
    """Not under its host name either: a client's is for no server, others have another name."""
    hosts = () if permission.role == "client" else ("localhost",)
    stolen = fleet.kit(thief, *hosts, permission=permission)
    with (
        serving(stolen) as host,
        child_of(host, fleet.kit("pump-1", permission=CLIENT)) as ear,
    ):
        assert said in is_refused(ear, host)


def test_before_there_were_roles_another_aggregator_could_serve(fleet):
    """What the name is for: with host names only, a kit for that host is enough."""
    stolen = fleet.kit("north", "localhost")
    with serving(stolen) as host, child_of(host, fleet.kit("pump-1")) as ear:
        ear.opened()


def test_an_old_kit_of_the_parent_serves_until_it_is_renewed(fleet):
    """A child whose kit has a role takes it by its host name, and asks for more each time."""
    root, child = fleet.kit("root", "localhost"), fleet.kit("pump-1", permission=CLIENT)
    with serving(root) as host, child_of(host, child) as ear:
        ear.opened()
        ear.came(HELLO)
        port = host.downlink.port
        host.close()
        # Nothing listens, so it has forgotten the old kit that it has seen.
        ear.until(lambda heard: isinstance(heard, Parted) and "refused" in heard.why)
        before = len(ear.heard)
        stolen = fleet.kit("north", "localhost", permission=AGGREGATOR)
        with serving(stolen, f"{LOOPBACK}:{port}") as other:
            until(lambda: other.downlink.handshakes_begun > 3, lambda: "tries")
        heard = len(ear.heard)
        root = fleet.kit("root", permission=AGGREGATOR)
        with serving(root, f"{LOOPBACK}:{port}"):
            ear.opened()
        assert not [each for each in ear.heard[before:heard] if not isinstance(each, Parted)]


def test_an_old_kit_of_the_parent_does_not_serve_under_another_host(fleet):
    """Old kits are worth what they were, and no more."""
    root = fleet.kit("root", "elsewhere.example")
    with (
        serving(root) as host,
        child_of(host, fleet.kit("pump-1", permission=CLIENT)) as ear,
    ):
        is_refused(ear, host)


def test_a_child_with_an_old_kit_takes_a_new_one_of_the_parent(fleet):
    """By its host name, as before: kits may be renewed in any order."""
    root = fleet.kit("root", "localhost", permission=AGGREGATOR)
    with serving(root) as host, child_of(host, fleet.kit("pump-1")) as ear:
        ear.opened()
