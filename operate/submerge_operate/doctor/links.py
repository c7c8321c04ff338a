"""Checks of links, step by step: the first failure is the one to correct."""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from submerge import PeerError, UsageError
from submerge.protocol.messages import Hello, Model
from submerge.protocol.names import SERVER_DOMAIN
from submerge.protocol.permission import Permission
from submerge_client.config.links import Link, UplinkConfig
from submerge_client.uplink import Came, Heard, Opened, Parted, SendRefused
from submerge_client.uplink.broker import COMMAND_S, Publication, broker_of
from submerge_client.uplink.factory import make_uplink
from submerge_client.uplink.tls import ParentName, Tls, alternatives, identity, shown_by, tls_of
from submerge_files.console.units import in_words, moment
from submerge_operate.doctor.findings import Finding, fails, ok, warning
from submerge_proto.wire import codec, topics

if TYPE_CHECKING:
    from submerge_aggregator.downlink.config import MqttListen
    from submerge_client.uplink.line import BrokerConnection

BEHIND_S = 60.0  # seconds by which a clock may be behind that of the model's maker

UNCHECKED = "not checked: whether it accepts this group and schema"
"""Only a join shows that, and doctor sends nothing."""

BROKER = "BROKER"  # in hints, for the name of a broker's kit, which this node does not know

RULES = "may it read and write its own topics? submerge pki acl"

RUNNING = "is the parent running under that name? run submerge doctor there"


def parent(
    link: UplinkConfig, *, name: str, node: str, groups: Sequence[str], kit: Path | None, now: float
) -> Iterator[Finding]:
    """Check that a parent answers under its name; nothing is sent to it."""
    if link.scheme == "memory":
        yield ok("parent", f"{link.url} is inside one process")
        return
    try:
        way = connect(link, tls_of(link, kit), BROKER if link.is_broker else name)
        yield from ending_soon(link, way, now)
        yield from without_role(link, tls_of(link, kit), way, name)
        heard = _greeting(link, name=name, node=node, groups=groups, kit=kit)
        hello = _hello(heard)
        if hello.node != name:
            raise Unreached(
                f"{link.host}:{link.port} is {hello.node}, but the configured parent is {name}",
                f'correct the url, or name "{hello.node}" as the parent',
            )
    except Unreached as error:
        yield fails("parent", error.message, _hint(error, tls_of(link, kit), node, now))
        return
    except UsageError as error:
        yield fails("parent", str(error), "see above, or the configuration")
        return
    kind = "the root" if hello.top else "an aggregator"
    # A broker keeps a hello even if its sender no longer runs.
    what = "the broker has the hello of" if link.is_broker else "hello from"
    yield ok("parent", f"{what} {name}, {kind}; {in_words(way.took_s)} to connect; {UNCHECKED}")
    for greeting in heard:
        if isinstance(greeting, Model) and greeting.created > now + BEHIND_S:
            behind = in_words(greeting.created - now)
            message = f"it is {behind} behind the clock of the newest model's maker"
            yield warning("clock", message, "timedatectl status, here and at the root")


def broker(
    link: Link, what: str, *, node: str, fleet: str, kit: Path | None, now: float
) -> Iterator[Finding]:
    """Check that a broker accepts a node; `what` is the name of the check."""
    try:
        way = connect(link, tls_of(link, kit), BROKER)
        yield from ending_soon(link, way, now)
        _from_broker(link, (), fleet=fleet, node=node, kit=kit)
    except Unreached as error:
        yield fails(what, error.message, _hint(error, tls_of(link, kit), node, now))
    except UsageError as error:
        yield fails(what, str(error), "see above, or the configuration")
    else:
        yield ok(what, f"the broker on {link.host}:{link.port} accepts {node}")


def keeping(link: MqttListen, *, node: str, kit: Path | None) -> Iterator[Finding]:
    """Check what an aggregator needs of its broker: one message is published, and taken back."""
    topic, token = topics.trial(link.fleet, node), secrets.token_bytes(16)
    published = comes = False
    try:
        with _opened(link, topic, node=node, kit=kit) as (line, heard):
            line.put(topic, Publication(topic, token, retain=True))
            published = True
            comes = _comes(heard, token)
            until = time.monotonic() + PATIENCE_S
            while line.unacknowledged and time.monotonic() < until:
                time.sleep(0.01)
            acknowledged = not line.unacknowledged
        with _opened(link, topic, node=node, kit=kit) as (line, heard):
            kept = _comes(heard, token)
            line.put(topic, Publication(topic, b"", retain=True))
    except Unreached as error:
        if published and not comes:
            what = f"it does not take a message of QoS 1 that it is to keep: {error.message}"
            yield fails("broker", what, error.hint)
        else:
            yield warning("broker", f"what it keeps is not known: {error.message}", error.hint)
        return
    found = {
        f"it delivers no message of {topic} to who has subscribed": comes,
        "it acknowledges no message of QoS 1": acknowledged,
        "it keeps no retained message: a child that starts waits for the next model": kept,
    }
    for what, is_well in found.items():
        if not is_well:
            yield warning("broker", what, "docs/brokers.md says what is needed, and why")
    if all(found.values()):
        yield ok("broker", "it acknowledges, delivers and keeps messages (QoS 1, retained)")


@contextmanager
def _line(
    link: Link, *wanted: str, fleet: str, node: str, kit: Path | None
) -> Iterator[tuple[BrokerConnection, SimpleQueue[Heard]]]:
    """Connect to a broker, and yield the connection and what is heard on topics."""
    from submerge_client.uplink.line import BrokerConnection

    heard: SimpleQueue[Heard] = SimpleQueue()
    line = BrokerConnection(
        broker_of(link, kit),
        # Not the program's client id: a broker would disconnect the program.
        name=f"submerge:{fleet}:doctor:{node}",
        topics=wanted,
        opened=lambda: heard.put(Opened()),
        parted=lambda why: heard.put(Parted(why)),
        came=lambda _, data: heard.put(Came("watch", data)),
    )
    line.open()
    try:
        yield line, heard
    finally:
        line.close()


@contextmanager
def _opened(
    link: MqttListen, topic: str, *, node: str, kit: Path | None
) -> Iterator[tuple[BrokerConnection, SimpleQueue[Heard]]]:
    with _line(link, topic, fleet=link.fleet, node=node, kit=kit) as (line, heard):
        try:
            first = heard.get(timeout=_patience(link))
        except Empty:
            raise Unreached(f"no answer in {_patience(link):g} s", "see its log") from None
        if isinstance(first, Parted):
            raise Unreached(first.why, RULES)
        yield line, heard


def _patience(link: Link) -> float:
    """Return how long a connection may take: a program may have to print a password first."""
    return PATIENCE_S + (COMMAND_S if link.password_command else 0.0)


def _comes(heard: SimpleQueue[Heard], data: bytes) -> bool:
    """Return whether a message comes; raises Unreached if the connection ends."""
    until = time.monotonic() + PATIENCE_S
    while (left := until - time.monotonic()) > 0:
        try:
            match heard.get(timeout=left):
                case Came(_, found) if found == data:
                    return True
                case Parted(why):
                    raise Unreached(why, RULES)
        except Empty:
            return False
    return False


def _hint(error: Unreached, tls: Tls | None, node: str, now: float) -> str:
    """Return what to do; a bad certificate of this node explains a refusal."""
    if isinstance(error, TurnedAway) and tls is not None and tls.proves:
        try:
            own = identity(tls)
        except UsageError:
            return "see certificate above"
        if own.node != node or not own.begins <= now < own.until:
            return "see certificate above"
    return error.hint


def _greeting(
    link: UplinkConfig, *, name: str, node: str, groups: Sequence[str], kit: Path | None
) -> list[Hello | Model]:
    if link.is_broker:
        topic = topics.hello(link.fleet, name)
        greetings = _from_broker(link, (topic,), fleet=link.fleet, node=node, kit=kit)
        if not greetings:
            raise Unreached(
                f"the broker accepts {node}, but has no hello of {name!r} in fleet {link.fleet!r}",
                RUNNING,
            )
        return greetings
    heard: SimpleQueue[Heard] = SimpleQueue()
    uplink = make_uplink(link, parent=name, node=node, groups=tuple(groups[:1]), kit=kit)
    uplink.open(heard.put)
    try:
        greetings = _receive(heard)
    finally:
        uplink.close()
    if not greetings:
        raise Unreached(
            f"{link.host}:{link.port} accepts {node}, but sends no hello",
            "it may wait for its own parent: run submerge doctor there",
        )
    return greetings


def _from_broker(
    link: Link, wanted: tuple[str, ...], *, fleet: str, node: str, kit: Path | None
) -> list[Hello | Model]:
    """Return the messages that a broker has on topics, once connected."""
    with _line(link, *wanted, fleet=fleet, node=node, kit=kit) as (_, heard):
        return _receive(heard, for_hello=bool(wanted), within_s=_patience(link))


def _receive(
    heard: SimpleQueue[Heard], *, for_hello: bool = True, within_s: float | None = None
) -> list[Hello | Model]:
    """Return messages until a moment after the hello; none if no hello comes."""
    greetings: list[Hello | Model] = []
    within_s = PATIENCE_S if within_s is None else within_s
    until = time.monotonic() + within_s
    opened = False
    while time.monotonic() < until:
        try:
            item = heard.get(timeout=max(0.01, until - time.monotonic()))
        except Empty:
            break
        match item:
            case Parted(why) | SendRefused(why):
                raise TurnedAway(why, "submerge pki show KIT; is it banned, or of another fleet?")
            case Opened():
                opened = True
                if not for_hello:
                    return greetings
            case Came("watch", data):
                greetings.append(_read(data))
                # A model, if there is one, follows at once.
                until = min(until, time.monotonic() + 0.3)
    if not opened:
        raise Unreached(f"no answer in {within_s:g} s", RUNNING)
    return greetings


def _read(data: bytes) -> Hello | Model:
    try:
        greeting = codec.decode("watch", data)
    except PeerError as error:
        raise Unreached(
            f"it sends something else than a hello: {error}", "has it the same version?"
        ) from error
    if not isinstance(greeting, Hello | Model):
        raise Unreached("it sends something else than a hello", "has it the same version?")
    return greeting


def _hello(greetings: list[Hello | Model]) -> Hello:
    for greeting in greetings:
        if isinstance(greeting, Hello):
            return greeting
    raise Unreached("it has a model, but sends no hello", RUNNING)


PATIENCE_S = 5.0  # seconds for each step


class Unreached(Exception):
    """A connection failed, with a message and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


class TurnedAway(Unreached):
    """The other end answers, but refuses this node."""


class Connected(NamedTuple):
    took_s: float
    peer: dict[str, Any]


def connect(link: Link, tls: Tls | None, end: str) -> Connected:
    """Connect, up to TLS; `end`: the other end's node name, for hints."""
    at, host = f"{link.host}:{link.port}", link.host
    began = time.monotonic()
    try:
        with socket.create_connection((host, link.port), timeout=PATIENCE_S) as bare:
            if tls is None:
                return Connected(time.monotonic() - began, {})
            context = tls.context()
            if not link.is_broker:
                context.set_alpn_protocols(["h2"])
            name = host if link.is_broker else _name_of(link, tls, end)
            with context.wrap_socket(bare, server_hostname=name) as safe:
                if not link.is_broker and safe.selected_alpn_protocol() != "h2":
                    raise _no_grpc(at)
                return Connected(time.monotonic() - began, safe.getpeercert() or {})
    except socket.gaierror as error:
        raise Unreached(
            f"unknown host {host!r}: {error.strerror}",
            "is the name right? is there a network? getent hosts " + host,
        ) from error
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of {at}: {error.verify_message}"
        raise Unreached(message, _tls_hint(error, host, end)) from error
    except ssl.SSLError as error:
        if "NO_APPLICATION_PROTOCOL" in (error.reason or ""):
            raise _no_grpc(at) from error
        raise Unreached(
            f"TLS with {at} failed: {error.reason or error}",
            "is the port right, and does it use TLS?",
        ) from error
    except ConnectionRefusedError as error:
        raise Unreached(f"nothing listens on {at}", "is it running? is the port right?") from error
    except TimeoutError as error:
        raise Unreached(
            f"{at} does not answer in {PATIENCE_S:g} s", "a firewall? ping it from here"
        ) from error
    except OSError as error:
        raise Unreached(
            f"{at}: {error.strerror or error}", "is there a network? ip route"
        ) from error


def _name_of(link: Link, tls: Tls, parent: str) -> str:
    """Return the name that a parent proves: its own, or its host's (`ParentName`)."""
    expected = ParentName(parent, link.host, link.port, tls).expected
    shown = shown_by(link.host, link.port, tls) if expected else {}
    return expected if Permission.of(alternatives(shown, "URI")) else link.host


def without_role(link: Link, tls: Tls | None, way: Connected, parent: str) -> Iterator[Finding]:
    """Warn if a parent's certificate is from before there were roles, and ours is not."""
    if tls is None or link.is_broker or Permission.of(alternatives(way.peer, "URI")):
        return
    if ParentName(parent, link.host, link.port, tls).expected:
        yield warning(
            "certificate",
            f"that of {parent} has no role, so only its host name can be checked",
            f"submerge pki renew {parent} --role aggregator",
        )


def ending_soon(link: Link, way: Connected, now: float) -> Iterator[Finding]:
    """Warn if the other end's certificate ends soon."""
    if not way.peer:
        return
    begins, until = (
        float(ssl.cert_time_to_seconds(str(way.peer[each]))) for each in ("notBefore", "notAfter")
    )
    if until - now < (until - begins) / 8:
        yield warning(
            "certificate",
            f"{link.host}:{link.port} has one with {in_words(until - now)} left: {moment(until)}",
            "submerge pki renew, for the other end",
        )


def _no_grpc(at: str) -> Unreached:
    return Unreached(
        f"{at} uses TLS, but not gRPC",
        "is that an MQTT broker? then use mqtts://; or the parent's port",
    )


def _tls_hint(error: ssl.SSLCertVerificationError, host: str, end: str) -> str:
    reason = error.verify_message.lower()
    if SERVER_DOMAIN in reason:
        return f"is {end} the parent there? submerge pki show, at both ends"
    if "mismatch" in reason or "not valid for" in reason:
        return (
            f"is the url right? submerge pki renew {end} --host {host}, and a --host for every"
            " other name that it serves under: they replace the old ones"
        )
    if "not yet valid" in reason:
        return "is this machine's clock right? timedatectl status"
    if "expired" in reason:
        return "submerge pki renew, for the other end; or is this machine's clock right?"
    return "is it of the same authority? submerge pki show KIT, at both ends"
