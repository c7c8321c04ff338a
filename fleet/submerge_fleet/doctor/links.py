"""Links: whether the other end is there, proves who it is, and is the one that was meant.

Step by step, so that the first that fails is the one to mend: the name, the port, TLS, and then
what the program itself would do, but for saying anything. A client that runs is not disturbed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from submerge import PeerError, UsageError
from submerge.protocol.messages import Hello, Model
from submerge_client.config.links import Link, UplinkConfig
from submerge_client.uplink import Came, Heard, Opened, Parted, SendRefused
from submerge_client.uplink.broker import Broker
from submerge_client.uplink.factory import make_uplink, password_of, tls_of
from submerge_client.uplink.identity import identity
from submerge_client.uplink.tls import Tls
from submerge_fleet.console.units import in_words
from submerge_fleet.doctor.findings import Finding, fails, ok, warning
from submerge_fleet.doctor.ways import TurnedAway, Unreached, ending_soon, is_broker, reached
from submerge_proto.wire import codec, topics

PATIENCE_S = 5.0
"""For a word of the other end."""

BEHIND_S = 60.0
"""A clock that is so far behind that of who made the model is not in step."""

UNSEEN = "not looked at: whether it takes this group and schema"
"""Only a join is told, and a join is something said."""

BROKER = "BROKER"
"""Whose kit a broker has, this node does not know."""

RUNNING = "is the parent running, under that name? submerge doctor there"


def parent(
    link: UplinkConfig,
    *,
    name: str,
    node: str,
    groups: Sequence[str],
    kit: Path | None,
    now: float,
) -> Iterator[Finding]:
    """Whether a parent is there; what it says of itself is heard, and nothing is said."""
    if link.scheme == "memory":
        yield ok("parent", f"{link.url} is inside one process")
        return
    try:
        way = reached(link, tls_of(link, kit), BROKER if is_broker(link) else name)
        yield from ending_soon(link, way, now)
        heard = _greeting(link, name=name, node=node, groups=groups, kit=kit)
        hello = _hello(heard)
        if hello.node != name:
            raise Unreached(
                f"{link.host}:{link.port} is {hello.node}, and {name} was meant",
                f'mend the url, or say "{hello.node}" where the parent is named',
            )
    except Unreached as error:
        yield fails("parent", error.message, _hint(error, tls_of(link, kit), node, now))
        return
    except UsageError as error:
        yield fails("parent", str(error), "see above, or the configuration")
        return
    kind = "the root" if hello.top else "an aggregator"
    # A broker keeps a hello, whether or not who said it is still there.
    said = "the broker has the hello of" if is_broker(link) else "hello from"
    yield ok("parent", f"{said} {name}, {kind}; {in_words(way.took_s)} to connect; {UNSEEN}")
    for greeting in heard:
        if isinstance(greeting, Model) and greeting.created > now + BEHIND_S:
            behind = in_words(greeting.created - now)
            message = f"it is {behind} behind that of who made the newest model"
            yield warning("clock", message, "timedatectl status, here and at the root")


def broker(
    link: Link, what: str, *, node: str, fleet: str, kit: Path | None, now: float
) -> Iterator[Finding]:
    """Whether a broker lets a node in; `what` for."""
    try:
        way = reached(link, tls_of(link, kit), BROKER)
        yield from ending_soon(link, way, now)
        _from_broker(link, (), fleet=fleet, node=node, kit=kit)
    except Unreached as error:
        yield fails(what, error.message, _hint(error, tls_of(link, kit), node, now))
    except UsageError as error:
        yield fails(what, str(error), "see above, or the configuration")
    else:
        yield ok(what, f"the broker on {link.host}:{link.port} lets {node} in")


def _hint(error: Unreached, tls: Tls | None, node: str, now: float) -> str:
    """What to do; whoever shows a certificate that is of no use need not ask who refused it."""
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
    if is_broker(link):
        topic = topics.hello(link.fleet, name)
        said = _from_broker(link, (topic,), fleet=link.fleet, node=node, kit=kit)
        if not said:
            raise Unreached(
                f"the broker lets {node} in, and has no hello of {name!r} in fleet {link.fleet!r}",
                RUNNING,
            )
        return said
    heard: SimpleQueue[Heard] = SimpleQueue()
    uplink = make_uplink(link, parent=name, node=node, groups=tuple(groups[:1]), kit=kit)
    uplink.open(heard.put)
    try:
        said = _listened(heard)
    finally:
        uplink.close()
    if not said:
        raise Unreached(
            f"{link.host}:{link.port} lets {node} in, and says no hello",
            "it may wait for its own parent: submerge doctor there",
        )
    return said


def _from_broker(
    link: Link, wanted: tuple[str, ...], *, fleet: str, node: str, kit: Path | None
) -> list[Hello | Model]:
    """Return what a broker has on topics, once it has let us in."""
    from submerge_client.uplink.line import BrokerConnection

    heard: SimpleQueue[Heard] = SimpleQueue()
    line = BrokerConnection(
        Broker(link.host, link.port, link.username, password_of(link), tls_of(link, kit)),
        # Not the program's own name: a broker would hang up on the program.
        name=f"submerge:{fleet}:doctor:{node}",
        topics=wanted,
        will=None,
        opened=lambda: heard.put(Opened()),
        parted=lambda why: heard.put(Parted(why)),
        came=lambda _, data: heard.put(Came("watch", data)),
    )
    line.open()
    try:
        return _listened(heard, for_hello=bool(wanted))
    finally:
        line.close()


def _listened(heard: SimpleQueue[Heard], *, for_hello: bool = True) -> list[Hello | Model]:
    """Return what comes before a moment after the hello; nothing if none comes."""
    said: list[Hello | Model] = []
    until = time.monotonic() + PATIENCE_S
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
                    return said
            case Came("watch", data):
                said.append(_read(data))
                # A model comes right behind it, where there is one.
                until = min(until, time.monotonic() + 0.3)
    if not opened:
        raise Unreached(f"no word in {PATIENCE_S:g} s", RUNNING)
    return said


def _read(data: bytes) -> Hello | Model:
    try:
        greeting = codec.decode("watch", data)
    except PeerError as error:
        raise Unreached(
            f"what it says is no hello: {error}", "is its version this one's?"
        ) from error
    if not isinstance(greeting, Hello | Model):
        raise Unreached("what it says is no hello", "is its version this one's?")
    return greeting


def _hello(said: list[Hello | Model]) -> Hello:
    for greeting in said:
        if isinstance(greeting, Hello):
            return greeting
    raise Unreached("it has a model, and says no hello", RUNNING)
