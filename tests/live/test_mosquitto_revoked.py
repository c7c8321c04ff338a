"""Roles, groups and revocation at a real Mosquitto: rules by `submerge pki acl`, and its CRL.

Mosquitto runs with the file that is shipped; only paths and the port are the test's.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from cryptography import x509

from submerge_client.uplink.tls import Tls
from submerge_operate.pki import authority as crl
from submerge_operate.pki.authority import Authority, crl_of
from submerge_proto.wire import topics
from support.broker import PROGRAM, REQUIRED, Mosquitto
from support.patience import PATIENCE_S, until
from support.shipped_broker import DAY, Peer, Site, forge, generated, peers, shipped

pytestmark = pytest.mark.slow

REPORT = topics.up("f", "north", "n1", "report", "g")
HELLO = topics.hello("f", "north")
MODEL, OTHERS = (topics.model("f", "north", group) for group in ("g", "other-group"))
CONNECT = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test"
WELCOME = b"\x20\x02\x00\x00"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Mosquitto with rules for its nodes, and a list of revoked certificates that is empty."""
    if PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    authority = Authority.create("f", now=datetime.now(UTC), lasts=DAY)
    site = Site(Mosquitto(tmp_path), authority, tmp_path, generated(tmp_path))
    revoke(site)
    site.kit("broker", "127.0.0.1")
    site.broker.start(*shipped(tmp_path, rules=site.rules))
    yield site
    site.broker.stop()


def revoke(site: Site, *kits: Path) -> None:
    """Write the CRL as `submerge pki revoke` does; nothing is said to the broker."""
    found = [x509.load_pem_x509_certificates(kit.read_bytes())[0].serial_number for kit in kits]
    new = site.folder / "crl.new"
    new.write_bytes(crl_of(site.authority, found, now=datetime.now(UTC), number=len(kits) + 1))
    new.replace(site.folder / "crl.pem")


def is_let_in(site: Site, kit: Path) -> bool:
    """Whether the broker answers a CONNECT."""
    try:
        with (
            socket.create_connection((site.broker.host, site.broker.port), PATIENCE_S) as plain,
            Tls(kit=kit).context().wrap_socket(plain, server_hostname=site.broker.host) as way,
        ):
            way.sendall(CONNECT)
            return way.recv(100) == WELCOME
    except (ssl.SSLError, ConnectionError):
        return False


def test_a_client_reads_the_models_of_its_groups_only(site):
    """Whatever it subscribes to; without the rules any kit reads all."""
    every = ("#", MODEL, OTHERS, "submerge/v1/+/+/model/+")
    with peers(site, ("north", ()), ("n1", every), ("other", every)) as (north, child, other):
        for topic in (MODEL, OTHERS):
            north.say(topic, b"a model", retain=True)
        north.say(HELLO, b"marker")

        assert {MODEL, HELLO} == until_hello(child)
        assert {OTHERS, HELLO} == until_hello(other)


def until_hello(peer: Peer) -> set[str]:
    """Return the topics that come, each perhaps more than once: subscriptions overlap."""
    topics = set[str]()
    while HELLO not in topics:
        topics.add(peer.next()[0])
    return topics


def test_a_client_joins_and_reports_in_its_groups_only(site):
    """What it sends for another group reaches nobody, its parent included."""
    own = [topics.up("f", "north", "other", kind, "other-group") for kind in ("join", "report")]
    with peers(site, ("north", topics.all_up("f", "north")), ("other", ())) as (north, child):
        for kind in ("join", "report"):
            forge(site, child_kit(site), topics.up("f", "north", "other", kind, "g"), retain=True)
        for topic in own:
            child.say(topic, b"own")

        assert [(topic, b"own") for topic in own] == [north.next(), north.next()]


def child_kit(site: Site) -> Path:
    return site.folder / "other.kit"


@pytest.mark.parametrize("name", ["n1", "dashboard", "operator"])
def test_only_aggregators_own_topics_below_their_name(site, name):
    """Nobody else can say hello, or answer, not even under its own name."""
    below = f"submerge/v1/f/{name}"
    with peers(site, ("north", ()), (name, ()), ("n2", ("#", f"{below}/#"))) as (north, _, other):
        for topic in ("hello", "model/g", "down/n2/answer"):
            forge(site, site.folder / f"{name}.kit", f"{below}/{topic}", retain=True)
        north.say(HELLO, b"marker")

        assert (HELLO, b"marker") == other.next()


@pytest.mark.parametrize("name", ["operator", "dashboard"])
def test_who_only_reads_cannot_report(site, name):
    """It hears models, and what it sends as a child goes nowhere."""
    own = topics.up("f", "north", name, "report", "g")
    up = topics.all_up("f", "north")
    with peers(site, ("north", up), (name, (MODEL, OTHERS)), ("n1", ())) as (north, reader, child):
        forge(site, site.folder / f"{name}.kit", own)
        child.say(REPORT, b"marker")
        north.say(MODEL, b"a model")

        assert (REPORT, b"marker") == north.next()
        assert (MODEL, b"a model") == reader.next()


def test_a_kit_from_before_roles_goes_on_as_it_was(site):
    """As a child and as a parent, until it is renewed with a role: nobody is cut off."""
    up, down = topics.all_up("f", "old"), topics.down("f", "north", "old", "answer")
    mine = topics.up("f", "old", "n1", "report", "g")
    every = (*up, down, MODEL)
    with peers(site, ("old", every), ("n1", ("submerge/v1/f/old/hello",)), ("north", ())) as (
        old,
        child,
        north,
    ):
        child.say(mine)
        assert mine == old.next()[0]
        old.say("submerge/v1/f/old/hello")
        assert "submerge/v1/f/old/hello" == child.next()[0]
        for topic in (down, MODEL):
            north.say(topic)
            assert topic == old.next()[0]


# -- revocation --------------------------------------------------------------------------


def test_a_signal_makes_a_revocation_hold_for_new_connections(site):
    """SIGHUP reads the list again; another node, and a new kit of this one, come in."""
    kit, other = site.kit("n1"), site.kit("n2")
    assert is_let_in(site, kit)
    revoke(site, kit)

    site.broker.reload()
    until(lambda: not is_let_in(site, kit), lambda: "the revoked kit to be refused")

    assert is_let_in(site, other)
    assert is_let_in(site, site.kit("n1"))


def test_an_open_connection_of_a_revoked_node_can_do_nothing_after_the_signal(site):
    """With new rules: it hears nothing more, and its next message goes nowhere and ends it."""
    up = topics.all_up("f", "north")
    with peers(site, ("north", up), ("n1", (MODEL,)), ("n2", (MODEL,))) as (north, child, other):
        kit = site.folder / "n1.kit"
        revoke(site, kit)
        generated(site.folder, "n1")
        site.broker.reload()
        until(lambda: not is_let_in(site, kit), lambda: "the revoked kit to be refused")

        north.say(MODEL, b"secret")
        assert (MODEL, b"secret") == other.next()
        assert child.heard.empty()
        # Mosquitto hangs up, and the connection is not let in again.
        child.put(REPORT, b"forged")
        until(lambda: not child.connected, lambda: "the connection to end")
        other.say(topics.up("f", "north", "n2", "report", "g"), b"marker")
        assert b"marker" == north.next()[1]
        assert child.heard.empty()


def test_a_restart_of_the_broker_ends_open_connections(site):
    """The way for the rules that are shipped, which know no names; others come back."""
    with peers(site, ("n1", ()), ("north", topics.all_up("f", "north"))) as (child, north):
        revoke(site, site.folder / "n1.kit")
        site.broker.stop()
        until(lambda: not child.connected, lambda: "the connection to end")
        site.broker.start(*shipped(site.folder, rules=site.rules))
        report = topics.up("f", "north", "n2", "report", "g")
        with peers(site, ("n2", ())) as (other,):
            other.say(report, b"back", retain=True)

            assert (report, b"back") == north.next()
        assert not is_let_in(site, site.folder / "n1.kit")
        assert not child.connected


def test_an_expired_list_shuts_out_every_node(site, monkeypatch):
    """Which is why the list of an authority outlives it, and all that it has signed."""
    listed = x509.load_pem_x509_crl((site.folder / "crl.pem").read_bytes())
    assert site.authority.until < listed.next_update_utc
    kit = site.kit("n1")
    assert is_let_in(site, kit)

    monkeypatch.setattr(crl, "AFTER", datetime.now(UTC) - timedelta(hours=1) - site.authority.until)
    revoke(site)
    site.broker.reload()

    until(lambda: not is_let_in(site, kit), lambda: "the expired list to be read")


def test_a_broker_without_its_list_does_not_start(site):
    """It is written with the authority, and by `revoke` without a name."""
    settings = shipped(site.folder, rules=site.rules)
    site.broker.stop()
    (site.folder / "crl.pem").unlink()

    with suppress(RuntimeError):  # it opens its port first, and may end a moment later
        site.broker.start(*settings)
    until(lambda: not site.broker.runs, lambda: "Mosquitto to give up")

    said = (site.folder / "mosquitto.log").read_text()
    assert f'Unable to load certificate revocation file "{site.folder}/crl.pem"' in said


def test_two_authorities_need_a_list_each(site):
    """While a fleet moves from one to the other: without its list, nodes of one are shut out."""
    other = Authority.create("f", now=datetime.now(UTC), lasts=DAY)
    broker, old, new = site.folder / "broker.kit", site.kit("n1"), site.kit("n2", authority=other)
    for kit, authority in ((broker, other), (old, other), (new, site.authority)):
        kit.write_bytes(kit.read_bytes() + authority.pem)
    site.broker.stop()
    site.broker.start(*shipped(site.folder, rules=site.rules))
    assert (True, False) == (is_let_in(site, old), is_let_in(site, new))

    path = site.folder / "crl.pem"
    path.write_bytes(path.read_bytes() + crl_of(other, (), now=datetime.now(UTC), number=1))
    site.broker.reload()

    until(lambda: is_let_in(site, new), lambda: "both lists to be read")
    assert is_let_in(site, old)
