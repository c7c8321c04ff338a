"""deploy/mosquitto: what a node with a certificate may do at the broker, and who may not come.

Mosquitto runs with the files that are shipped; only paths and the port are the test's. Each test
holds for the rules that are shipped, and for those that `submerge pki acl` writes.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from submerge_client.alarms.over_mqtt import configs
from submerge_client.uplink.tls import Tls
from submerge_operate.pki.authority import Authority, crl_of
from submerge_proto.wire import topics
from support.broker import PROGRAM, REQUIRED, Mosquitto
from support.patience import PATIENCE_S, until
from support.shipped_broker import (
    DAY,
    SHIPPED,
    Peer,
    Site,
    forge,
    generated,
    named_kit,
    peers,
    shipped,
)

pytestmark = pytest.mark.slow

JOIN = topics.up("f", "north", "n1", "join", "g")
REPORT = topics.up("f", "north", "n1", "report", "g")
HELLO = topics.hello("f", "north")


@pytest.fixture(params=["shipped", "generated"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Mosquitto as it is shipped, or with rules made for its nodes."""
    if PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    authority = Authority.create("f", now=datetime.now(UTC), lasts=DAY)
    rules = SHIPPED / "acl" if request.param == "shipped" else generated(tmp_path)
    site = Site(Mosquitto(tmp_path), authority, tmp_path, rules)
    (tmp_path / "crl.pem").write_bytes(crl_of(authority, (), now=datetime.now(UTC), number=1))
    site.kit("broker", "127.0.0.1")
    site.broker.start(*shipped(tmp_path, rules=rules))
    yield site
    site.broker.stop()


# -- what is allowed ---------------------------------------------------------------------


def test_child_and_parent_hear_one_another(site):
    """Joins and reports go up, answers, hellos and models come down."""
    down = topics.down("f", "north", "n1", "answer")
    model = topics.model("f", "north", "g")
    up = topics.all_up("f", "north")
    with peers(site, ("north", up), ("n1", (down, HELLO, model))) as (north, child):
        for topic in (JOIN, REPORT, topics.up("f", "north", "n1", "job", "g")):
            child.say(topic)
            assert topic == north.next()[0]
        for topic in (HELLO, down, model):
            north.say(topic)
            assert topic == child.next()[0]


def test_a_report_waits_for_its_parent(site):
    """It is kept, also over a restart of the broker; so is the last will's topic."""
    state = topics.state("f", "north", "n1")
    with peers(site, ("n1", ())) as (child,):
        child.say(REPORT, b"kept", retain=True)
        child.say(state, b"online", retain=True)
    site.broker.stop()
    site.broker.start(*shipped(site.folder, rules=site.rules))

    with peers(site, ("north", (REPORT, state))) as (north,):
        assert {(REPORT, b"kept"), (state, b"online")} == {north.next(), north.next()}


def test_scores_are_for_dashboards(site):
    """A node says its own, and who draws dashboards hears all; no other node does."""
    every = ("submerge/v1/+/score/+",)
    own, others = topics.score("f", "n1"), topics.score("f", "n2")
    watching = [("dashboard", every), ("n3", (*every, "submerge/v1/+/+/hello"))]
    with peers(site, ("n1", ()), ("north", ()), *watching) as (child, north, dashboard, curious):
        forge(site, site.folder / "n1.kit", others)
        child.say(own, b"own")
        north.say(HELLO)

        assert (own, b"own") == dashboard.next()
        assert (HELLO, b"x") == curious.next()


def test_alarms_are_for_dashboards_and_home_assistant(site):
    """A node says its own, with what is to be made of it; no other node hears, or says, that."""
    own = {
        topics.alarm("f", "n1"),
        topics.alarm_state("f", "n1"),
        *configs("homeassistant", "f", "n1", "g"),
    }
    with peers(site, ("n1", ())) as (child,):
        for topic in own:
            child.say(topic, b"own", retain=True)
    every = ("submerge/v1/+/alarm/#", "homeassistant/#")
    watching = [("homeassistant", every), ("dashboard", every), ("n3", (*every, HELLO))]
    with peers(site, *watching, ("north", ())) as (home, dashboard, curious, north):
        home.say("homeassistant/status", b"online")
        north.say(HELLO)

        assert {(topic, b"own") for topic in own} == {home.next() for _ in own}
        assert ("homeassistant/status", b"online") == home.next()
        shown = {topic for topic in own if topic.startswith("submerge")}
        assert shown == {dashboard.next()[0] for _ in shown}
        assert (HELLO, b"x") == curious.next()


def test_only_the_broker_looks_into_itself(site):
    """$SYS says who comes and goes: it is for the health check."""
    sys = "$SYS/broker/version"
    with peers(site, (site.folder / "broker.kit", (sys,)), ("n1", (sys, HELLO)), ("north", ())) as (
        broker,
        child,
        north,
    ):
        assert sys == broker.next()[0]
        north.say(HELLO)
        assert HELLO == child.next()[0]


# -- what is not -------------------------------------------------------------------------

FORGED = (
    topics.up("f", "north", "n2", "report", "g"),
    topics.up("f", "north", "n2", "join", "g"),
    topics.state("f", "north", "n2"),
    topics.hello("f", "north"),
    topics.model("f", "north", "g"),
    topics.down("f", "north", "n2", "answer"),
    topics.down("f", "north", "n1", "answer"),
    # A job is opened by what comes down: no client can do that, for another or for itself.
    topics.up("f", "north", "n2", "job", "g"),
    topics.down("f", "north", "n2", "job"),
    topics.down("f", "north", "n1", "job"),
    topics.score("f", "n2"),
    topics.alarm("f", "n2"),
    topics.alarm_state("f", "n2"),
    topics.alarm("f", "n1") + "/state/x",
    topics.discovery("homeassistant", "sensor", "n2", "score"),
    topics.discovery("homeassistant", "switch", "n1", "alarm"),
    "homeassistant/sensor/n1/score/state",
    "homeassistant/sensor/n1/config",
    "homeassistant/device/n1/config",
    "homeassistant/status",
    "submerge/v2/f/north/up/n1/report/g",
    "submerge/v1/f/north/up/n1x/report/g",
    "submerge/v1/f/north/up//report/g",
    "garbage",
    "$SYS/broker/version",
)


@pytest.mark.parametrize("retain", [False, True])
def test_a_child_speaks_for_nobody_else(site, retain):
    """What it may not write reaches nobody, and nothing of it is kept."""
    every = "#", "$SYS/broker/version"
    kit = site.folder / "broker.kit"
    with peers(site, ("n1", ()), ("north", every), ("n2", every)) as (child, north, other):
        for topic in FORGED:
            forge(site, site.folder / "n1.kit", topic, retain=retain)
        child.say(JOIN, b"marker")
        north.say(HELLO, b"marker")

        assert (JOIN, b"marker") == north.next()
        assert {(HELLO, b"marker")} == {north.next(), other.next()}
    with peers(site, ("n1", ()), ("north", every), ("n2", every), (kit, every)) as (
        child,
        north,
        other,
        broker,
    ):
        child.say(JOIN, b"marker")
        north.say(HELLO, b"marker")

        assert [(JOIN, b"marker"), (HELLO, b"marker")] == [north.next(), north.next()]
        assert (HELLO, b"marker") == other.next()
        assert b"mosquitto" in broker.next()[1]


def test_a_parent_writes_below_no_other_parent(site):
    """Neither hello nor answers of another, nor what that one's children say."""
    south = "submerge/v1/f/south"
    forged = ("hello", "model/g", "down/n1/answer", "up/n1/report/g", "up/north2/report/g")
    below = f"{south}/up/north/report/g"
    with peers(site, ("north", ()), ("south", ("#",))) as (north, listening):
        for each in forged:
            forge(site, site.folder / "north.kit", f"{south}/{each}")
        north.say(below, b"its own report")

        assert (below, b"its own report") == listening.next()


def test_answers_are_for_one(site):
    """Who subscribes to everything hears what is said to him, and what is said to all."""
    mine, others = (topics.down("f", "north", node, "answer") for node in ("n1", "n2"))
    with peers(site, ("north", ()), ("n1", ("#", others))) as (north, child):
        north.say(others, b"for another")
        north.say(REPORT, b"kept", retain=True)
        north.say(mine, b"for it")

        assert (mine, b"for it") == child.next()


def test_what_children_say_is_for_their_parent(site):
    """No other parent and no other child hears a report, kept or not."""
    with peers(site, ("n1", ())) as (child,):
        child.say(REPORT, b"kept", retain=True)
    curious = ("#", REPORT)
    with peers(site, ("n1", ()), ("south", curious), ("n2", curious), ("north", ())) as (
        child,
        south,
        other,
        north,
    ):
        child.say(REPORT, b"now", retain=True)
        north.say(HELLO, b"marker")

        assert {(HELLO, b"marker")} == {south.next(), other.next()}


def test_a_payload_over_the_limit_goes_nowhere(site):
    """122880 bytes pass, one more does not; nodes check before."""
    with peers(site, ("n1", ()), ("north", topics.all_up("f", "north"))) as (child, north):
        too_large = Peer(site, site.folder / "n1.kit")
        too_large.say(REPORT, bytes(122_881))
        too_large.close()
        child.say(REPORT, bytes(122_880))

        assert 122_880 == len(north.next()[1])


def test_a_packet_over_the_limit_is_not_waited_for(site):
    """Its first bytes announce 100 MB, and the broker hangs up: no room is made for it."""
    context = Tls(kit=site.kit("n1")).context()
    with (
        socket.create_connection((site.broker.host, site.broker.port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=site.broker.host) as way,
    ):
        way.sendall(CONNECT)
        assert WELCOME == _received(way)
        way.sendall(b"\x32\x80\xc2\xd7\x2f")

        assert b"" == _received(way)


@pytest.mark.parametrize("name", ["+", "#", "n1/report/+", "+/up/n1"])
def test_a_name_with_wildcards_is_no_key_to_all(site, name):
    """An authority of one's own may sign any name; Mosquitto grants such a one no pattern."""
    kit = site.folder / "wild.kit"
    kit.write_bytes(named_kit(site.authority, name))
    with peers(site, ("n1", ()), ("north", ()), (kit, ("#",))) as (child, _, wild):
        child.say(REPORT, b"secret", retain=True)
        wild.say(topics.up("f", "north", "n1", "join", "g"), b"forged")
        wild.close()

        assert wild.heard.empty()


# -- who may not come --------------------------------------------------------------------


def test_who_has_no_certificate_is_not_let_in(site):
    """Not even to say a name."""
    context = ssl.create_default_context(cadata=site.authority.pem.decode())

    assert b"" == _first_word(site, context)


def test_a_stranger_is_not_let_in(site):
    """A certificate of another authority, whatever name it has."""
    stranger = Authority.create("f", now=datetime.now(UTC), lasts=DAY)
    kit = site.kit("n1", authority=stranger)
    context = Tls(kit=kit).context()
    context.load_verify_locations(cadata=site.authority.pem.decode())

    assert b"" == _first_word(site, context)


def test_nobody_is_let_in_without_tls(site):
    """The port speaks nothing else."""
    with socket.create_connection((site.broker.host, site.broker.port), PATIENCE_S) as plain:
        plain.sendall(CONNECT)

        assert b"" == _received(plain)


def test_a_certificate_opens_the_door(site):
    """The counterpart of the three above: the same bytes, answered."""
    assert WELCOME == _first_word(site, Tls(kit=site.kit("n1")).context())


def test_a_renewed_kit_is_read_at_a_signal(site):
    """SIGHUP: who comes after it is shown the new certificate; nobody is sent away."""
    with peers(site, ("n1", ()), ("north", ("#",))) as (child, north):
        before = _serial(site)
        site.kit("broker", "127.0.0.1")
        site.broker.reload()
        until(lambda: before != _serial(site))
        child.say(JOIN, b"still here")
        assert (JOIN, b"still here") == north.next()


WELCOME = b"\x20\x02\x00\x00"
CONNECT = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test"


def _first_word(site: Site, context: ssl.SSLContext) -> bytes:
    """Return what the broker says to a CONNECT; b"" if it hangs up."""
    try:
        with (
            socket.create_connection((site.broker.host, site.broker.port), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=site.broker.host) as way,
        ):
            way.sendall(CONNECT)
            return _received(way)
    except (ssl.SSLError, ConnectionError):
        return b""


def _received(way: socket.socket) -> bytes:
    try:
        return way.recv(100)
    except ConnectionError:
        return b""


def _serial(site: Site) -> str:
    """Return the number of the certificate that the broker shows."""
    context = Tls(kit=site.folder / "n1.kit").context()
    address = site.broker.host, site.broker.port
    with (
        socket.create_connection(address, PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=site.broker.host) as way,
    ):
        return str((way.getpeercert() or {})["serialNumber"])
