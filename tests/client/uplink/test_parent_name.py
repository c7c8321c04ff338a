"""Which name a parent has to prove: a child's own certificate decides, and no setting.

tests/live/test_parent_name.py shows what comes of it with real servers.
"""

from __future__ import annotations

import pytest

from submerge.protocol.names import RESERVED
from submerge.protocol.permission import Permission
from submerge_client.kit import read_kit
from submerge_client.uplink.tls import ParentName, Tls, identity
from submerge_proto.wire import topics
from support.certified import Certified

NAME = (("grpc.ssl_target_name_override", "root.submerge.invalid"),)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Certified:
    return Certified(tmp_path_factory.mktemp("kits"))


def options(tls, parent="root"):
    return ParentName(parent, "127.0.0.1", 1, tls).options()


@pytest.mark.parametrize("role", ["client", "aggregator", "reader", "operator"])
def test_a_child_whose_kit_has_a_role_asks_for_its_parent(fleet, role):
    """So do aggregators, of the one above."""
    kit = fleet.kit(f"a-{role}", permission=Permission(role, ("g",)))

    assert NAME == options(Tls(kit=kit))


def test_three_files_of_a_kit_ask_for_the_same(fleet):
    """They are the same certificate."""
    kit = read_kit(fleet.kit("files", permission=Permission("client")))
    paths = [fleet.folder / f"files.{name}" for name in ("authority", "cert", "key")]
    for path, data in zip(paths, (kit.authority, kit.cert, kit.key), strict=True):
        path.write_bytes(data)

    assert NAME == options(Tls(*paths))


def test_without_a_role_the_host_name_is_checked(fleet):
    """A kit from before, an authority of another kind, or no certificate of one's own."""
    assert () == options(Tls(kit=fleet.kit("old")))
    assert () == options(Tls(ca=fleet.folder / "ca.pem"))
    assert () == options(Tls())
    assert () == options(Tls(kit=fleet.kit("new", permission=Permission("client"))), parent="")


def test_a_renewed_kit_asks_from_its_next_connection_on(fleet):
    """It is read again, like the certificate itself."""
    name = ParentName("root", "127.0.0.1", 1, Tls(kit=fleet.kit("renewed")))
    assert () == name.options()
    fleet.kit("renewed", permission=Permission("client"))

    assert NAME == name.options()


def test_a_server_that_is_not_there_is_no_old_one(fleet):
    """Only a certificate that was seen lets a child ask for less."""
    name = ParentName(
        "root", "127.0.0.1", 1, Tls(kit=fleet.kit("lone", permission=Permission("client")))
    )

    assert "unreachable" == name.parted("unreachable", proven=False)
    assert NAME == name.options()


def test_an_identity_has_role_and_hosts_apart(fleet):
    """The name that children ask for is no host, and neither is a URI."""
    kit = fleet.kit("root", "x.org", "10.0.0.7", permission=Permission("aggregator", ("g",)))

    found = identity(Tls(kit=kit))

    assert ("x.org", "10.0.0.7") == found.hosts
    assert Permission("aggregator", ("g",)) == found.permission
    assert None is identity(Tls(kit=fleet.kit("old"))).permission


def test_every_word_of_topics_is_reserved():
    """No node's name is one: then nothing below a name is anything else."""
    node, group, fleet = "N", "G", "F"
    found = {
        segment
        for topic in (
            *(topics.up(fleet, node, node, kind, group) for kind in ("join", "report")),
            *(topics.down(fleet, node, node, kind) for kind in ("joined", "answer")),
            *(topics.state(fleet, node, node), topics.hello(fleet, node)),
            *(topics.model(fleet, node, group), topics.score(fleet, node)),
            *(topics.alarm(fleet, node), topics.alarm_state(fleet, node)),
            topics.discovery(fleet, fleet, node, node),
        )
        for segment in topic.split("/")
    } - {node, group, fleet}

    assert found <= RESERVED
