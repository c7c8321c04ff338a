"""What `submerge doctor` says of parents and brokers that are there, or are not what was meant."""

from __future__ import annotations

import time

import pytest

from submerge.protocol.messages import Hello, Incarnation
from submerge.protocol.permission import Permission
from submerge_aggregator.downlink.config import MqttListen
from submerge_aggregator.downlink.over_grpc import GrpcDownlink as Down
from submerge_client.config.links import UplinkConfig
from submerge_client.uplink import Opened, Parted
from submerge_client.uplink.broker import Broker, Publication
from submerge_client.uplink.line import BrokerConnection
from submerge_client.uplink.over_mqtt import MqttUplink as Up
from submerge_client.uplink.tls import Tls
from submerge_operate.doctor import links
from submerge_operate.doctor.findings import Finding
from submerge_proto.wire import codec, topics
from support.certified import LOOPBACK, Certified
from support.patience import until
from support.ways import Ear, Host

LIMIT = 100_000

pytestmark = pytest.mark.slow


def hello(node="root") -> bytes:
    return codec.encode(Hello(node, Incarnation(1_600_000_000_000, 7), True, 1))


HELLO = hello()


@pytest.fixture
def fleet(tmp_path) -> Certified:
    return Certified(tmp_path)


def parent(url, *, kit=None, insecure=False, name="root", later_s=0.0):
    """Findings of the parent at a url, and of the certificates on the way."""
    link = UplinkConfig(url=url, insecure=insecure, fleet="f")
    return list(
        links.parent(
            link, name=name, node="pump-1", groups=("g",), kit=kit, now=time.time() + later_s
        )
    )


@pytest.fixture
def root(fleet):
    """A gRPC server that asks for certificates; `host` is the one that its own names."""
    hosts = []

    def start(host=LOOPBACK, *, message=HELLO, name="root", permission=None):
        kit = fleet.kit(name, host, lasts_s=8 * 86400, permission=permission)
        hosts.append(Host(Down(f"{LOOPBACK}:0", limit=LIMIT, tls=Tls(kit=kit))))
        if message:
            hosts[-1].publish("", message)
        return f"grpcs://{LOOPBACK}:{hosts[-1].downlink.port}"

    yield start
    for each in hosts:
        each.close()


def test_a_parent_that_is_there_says_hello(root, fleet):
    """By its name, over TLS, to who has a kit of its authority."""
    (found,) = parent(root(), kit=fleet.kit("pump-1"))

    assert "ok" == found.state
    assert found.message.startswith("hello from root, the root;")


def test_a_parent_s_certificate_that_ends_soon_is_a_warning(root, fleet):
    """Its children will be shut out, and they are the first to see it."""
    found = parent(root(), kit=fleet.kit("pump-1"), later_s=7.5 * 86400)

    assert [("certificate", "warning"), ("parent", "ok")] == [each[:2] for each in found]


def test_a_parent_under_another_name_is_not_the_one_that_was_meant(root, fleet):
    """A url with another aggregator's port."""
    (found,) = parent(root(message=hello("north")), kit=fleet.kit("pump-1"))

    assert "fails" == found.state
    assert "is north, but the configured parent is root" in found.message


def test_a_certificate_for_another_host_is_told_from_a_foreign_one(root, fleet):
    """The one has to be issued for that name."""
    (found,) = parent(root("elsewhere.example"), kit=fleet.kit("pump-1"))

    assert "fails" == found.state
    assert "--host" in found.hint


def test_a_parent_is_known_by_its_own_name_where_kits_have_roles(root, fleet):
    """Whatever host it runs on; a kit of the parent from before is a warning, not a failure."""
    kit = fleet.kit("pump-1", permission=Permission("client"))
    url = root("elsewhere.example", permission=Permission("aggregator"))
    assert ["ok"] == [each.state for each in parent(url, kit=kit)]

    old, found = parent(root(), kit=kit)
    assert ("warning", "ok") == (old.state, found.state)
    assert "submerge pki renew root --role aggregator" == old.hint


def test_another_aggregator_at_the_parents_host_is_named(root, fleet):
    """Its certificate is good, and for another name."""
    kit = fleet.kit("pump-1", permission=Permission("client"))
    url = root(name="north", permission=Permission("aggregator"))

    (found,) = parent(url, kit=kit)

    assert "fails" == found.state
    assert "root.submerge.invalid" in found.message
    assert "is root the parent there?" in found.hint


def test_a_parent_of_another_authority_is_not_to_be_trusted(root, tmp_path_factory):
    """Nor is this node, over there."""
    stranger = Certified(tmp_path_factory.mktemp("stranger"))
    (found,) = parent(root(), kit=stranger.kit("pump-1"))

    assert "fails" == found.state
    assert "authority" in found.hint


def test_a_node_that_the_parent_does_not_know_is_refused_after_the_handshake(root, fleet):
    """TLS 1.3 lets a client believe that it is in; the watch shows that it is not."""
    fleet.kit("pump-1")
    (found,) = parent(root(), kit=fleet.kit("pump-2"))

    assert "fails" == found.state
    assert "pump-2" in found.message


def test_one_that_says_no_hello_may_wait_for_its_own_parent(root, fleet, monkeypatch):
    """An aggregator that belongs to none yet says nothing to its children."""
    monkeypatch.setattr(links, "PATIENCE_S", 0.5)
    (found,) = parent(root(message=b""), kit=fleet.kit("pump-1"))

    assert "fails" == found.state


def test_what_is_no_tls_server_is_told_as_that(fleet):
    """A port without TLS, and a url that expects it."""
    host = Host(Down(f"{LOOPBACK}:0", limit=LIMIT))
    try:
        url = f"grpcs://{LOOPBACK}:{host.downlink.port}"
        (found,) = parent(url, kit=fleet.kit("pump-1"))
    finally:
        host.close()

    assert "fails" == found.state
    assert "TLS with" in found.message


# Over a broker


@pytest.fixture
def kept(mosquitto):
    """A broker that keeps the hello of `root`."""
    opened: list[bool] = []
    line = BrokerConnection(
        Broker(LOOPBACK, mosquitto.port),
        name="root",
        topics=(),
        will=None,
        opened=lambda: opened.append(True),
        parted=lambda _: None,
        came=lambda *_: None,
    )
    line.open()
    line.put("hello", Publication(topics.hello("f", "root"), HELLO, retain=True))
    until(lambda: bool(opened) and not line.waiting)
    line.close()
    return f"mqtt://{LOOPBACK}:{mosquitto.port}"


def test_a_broker_has_the_hello_of_a_parent(kept):
    """Which says that it was there, and under that name."""
    (found,) = parent(kept, insecure=True)

    assert ("ok", "the broker has the hello of root") == (found.state, found.message.split(",")[0])


def test_a_broker_without_the_hello_of_that_parent_is_told(kept, monkeypatch):
    """A name that is misspelt, or another fleet."""
    monkeypatch.setattr(links, "PATIENCE_S", 0.5)
    (found,) = parent(kept, insecure=True, name="rooot")

    assert "fails" == found.state
    assert "no hello of 'rooot' in fleet 'f'" in found.message


def test_a_client_that_runs_is_not_chased_off(kept, mosquitto):
    """A broker hangs up on an older connection of the same name."""
    ear = Ear()
    at = Broker(LOOPBACK, mosquitto.port)
    client = Up(at, fleet="f", parent="root", node="pump-1", groups=(), limit=LIMIT)
    client.open(ear)
    try:
        ear.opened()
        parent(kept, insecure=True)
        parent(kept, insecure=True)

        assert not [each for each in ear.heard if isinstance(each, Parted)]
        assert 1 == len([each for each in ear.heard if isinstance(each, Opened)])
    finally:
        client.close()


def test_a_broker_that_lets_a_node_in_is_enough_for_scores(kept):
    """Nothing is asked of it, and nothing said."""
    link = UplinkConfig(url=kept, insecure=True, fleet="f")
    (found,) = links.broker(link, "scores", node="pump-1", fleet="f", kit=None, now=time.time())

    assert ("scores", "ok") == found[:2]


def test_what_is_no_broker_is_told_as_that(monkeypatch):
    """gRPC listens there."""
    monkeypatch.setattr(links, "PATIENCE_S", 2.0)
    host = Host(Down(f"{LOOPBACK}:0", limit=LIMIT))
    try:
        (found,) = parent(f"mqtt://{LOOPBACK}:{host.downlink.port}", insecure=True)
    finally:
        host.close()

    assert "fails" == found.state


def kept_by(mosquitto) -> list[Finding]:
    link = MqttListen(url=f"mqtt://{LOOPBACK}:{mosquitto.port}", insecure=True, fleet="f")
    return list(links.keeping(link, node="root", kit=None))


def test_what_a_broker_keeps_is_tried_and_taken_back(mosquitto):
    for _ in range(2):  # nothing is left of the first time
        (found,) = kept_by(mosquitto)
        assert ("ok", "it acknowledges, delivers and keeps messages (QoS 1, retained)") == (
            found.state,
            found.message,
        )


@pytest.mark.parametrize("setting", ["retain_available false", "max_qos 0"])
def test_a_broker_that_takes_no_message_to_keep_is_told(mosquitto, setting):
    """It hangs up: no report would ever arrive."""
    mosquitto.stop()
    mosquitto.start(setting)
    (found,) = kept_by(mosquitto)

    assert "fails" == found.state
    assert "it does not take a message of QoS 1 that it is to keep" in found.message


def test_rules_that_forbid_it_are_told(mosquitto, tmp_path):
    mosquitto.stop()
    (tmp_path / "acl").write_text("topic read other\n")
    mosquitto.start(f"acl_file {tmp_path / 'acl'}")
    (found,) = kept_by(mosquitto)

    assert "fails" == found.state
    assert "refuses a message of submerge:f:doctor:root: not authorized" in found.message
    assert "submerge pki acl" in found.hint
