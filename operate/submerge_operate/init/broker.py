"""hear(): listens to a broker until it has said what it has, and says what is wrong with it."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import click
from paho.mqtt.client import MQTTMessage

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.sensors.mqtt.decoder import RebirthRequest
from submerge_client.sensors.mqtt.descriptions import SUBSCRIPTIONS
from submerge_client.sensors.mqtt.listener import KINDS, BrokerListener
from submerge_client.sensors.tally import ProblemTally
from submerge_operate.init.hearing import Hearing

DESCRIBED_S, SILENT_S = 5.0, 0.5
"""Descriptions are retained: they come at once, and end with a silence."""

QUIET_S, LONGEST_S = 20.0, 300.0
"""It stops listening when nothing new came for so long, and at the latest."""

TRY_S = 15.0
"""How long a connection may take."""

LOOK_S = 0.05

ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
"""What says nothing to a person."""

CURES = (
    ("Connection refused", "nothing listens there: is the broker running, and the port right?"),
    ("Name or service not known", "there is no machine of that name: use its address"),
    ("name resolution", "there is no machine of that name: use its address"),
    ("nodename nor servname", "there is no machine of that name: use its address"),
    ("timed out", "is the machine on, the address right, and no firewall between?"),
    ("No route to host", "is the machine on, and the address right?"),
    ("unreachable", "is this machine on the network, and the address right?"),
    ("user name or password", "give both: --username NAME --password-file FILE"),
    ("Not authorized", "give --username NAME and --password-file FILE, or have them right"),
    ("self-signed", "give the authority's certificate: --ca FILE"),
    ("self signed", "give the authority's certificate: --ca FILE"),
    ("unable to get local issuer", "give the authority's certificate: --ca FILE"),
    ("doesn't match", "use the name that is in the broker's certificate"),
    ("not valid for", "use the name that is in the broker's certificate"),
    ("certificate required", "the broker wants a certificate: --cert FILE --key FILE"),
    ("WRONG_VERSION_NUMBER", "the port has no TLS: write mqtt://, or the port of TLS, 8883"),
    ("RECORD_LAYER_FAILURE", "the port has no TLS: write mqtt://, or the port of TLS, 8883"),
    ("reset by peer", "it closed the connection: is it mqtt:// or mqtts://, and the port right?"),
    ("EOF occurred", "the port has no TLS, or wants another: write mqtt://, or port 8883"),
)
"""What to do, by a part of what went wrong."""

CLOSED = "it closed the connection: if the port is for TLS, write mqtts://"


def hear(
    link: Link, topics: Sequence[str], *, listen_s: float | None, rebirth: bool = False
) -> Hearing:
    """Listen to a broker's descriptions, then to its devices.

    topics : Patterns.
    listen_s : How long; left out, until nothing new came for `QUIET_S`.
    rebirth : Ask edge nodes of Sparkplug B for their births.

    Raises
    ------
    UsageError
        If the broker cannot be reached, or does not let us in.

    Nothing new is news only once something was heard: until then it listens for `LONGEST_S`.
    """
    hearing = Hearing(topics, rebirth=rebirth)

    def describe(message: MQTTMessage) -> Iterable[RebirthRequest]:
        hearing.describe(message.topic, message.payload)
        return ()

    def take(message: MQTTMessage) -> Iterable[RebirthRequest]:
        return hearing.take(message.topic, message.payload, retained=message.retain)

    with _Ears(link, SUBSCRIPTIONS, describe) as ears:
        ears.wait(lambda: ears.messages, quiet_s=SILENT_S, longest_s=DESCRIBED_S)
    subscriptions = hearing.begin()
    with _Ears(link, subscriptions, take) as ears:
        ears.wait(
            lambda: hearing.names,
            quiet_s=QUIET_S if listen_s is None else listen_s,
            waits=True,
            longest_s=LONGEST_S if listen_s is None else listen_s,
            shown=lambda: f"{hearing.messages:,} messages, {hearing.names:,} fields",
        )
        refused = ears.refused
    if refused and not hearing.messages:
        raise UsageError(f"{link.url} refuses to let us hear {refused}: permit it, or other topics")
    return hearing


class _Ears:
    """A connection to a broker while the body runs; it begins when it hears."""

    def __init__(
        self,
        link: Link,
        subscriptions: Sequence[str],
        handle: Callable[[MQTTMessage], Iterable[RebirthRequest]],
    ) -> None:
        self._link, self._handle = link, handle
        self._tally = ProblemTally(self._note, *KINDS)
        self._listener = BrokerListener(
            link, subscriptions, self._take, tally=self._tally, note=self._note
        )
        self._thread = threading.Thread(target=self._listener.listen, daemon=True)
        self._known = threading.Event()
        self._why: str | None = None
        self.refused = ""
        self.messages = 0

    def __enter__(self) -> _Ears:
        self._thread.start()
        came = self._known.wait(TRY_S)
        if not came or self._why is not None:
            self.__exit__()
            raise _unreachable(self._link, "no answer: timed out" if not came else self._why or "")
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.end()
        self._thread.join(1.0)

    def wait(
        self,
        news: Callable[[], int],
        *,
        quiet_s: float,
        longest_s: float,
        waits: bool = False,
        shown: Callable[[], str] | None = None,
    ) -> None:
        """Wait until there is no news for a while, or for the longest time; show how it goes.

        waits : whether the while begins with the first news
        """
        begun = last = time.monotonic()
        known = news()
        with _Progress(shown) as progress:
            while (now := time.monotonic()) < begun + longest_s:
                if now >= last + quiet_s and (known or not waits):
                    break
                time.sleep(LOOK_S)
                if news() != known:
                    known, last = news(), now
                progress.show(begun, longest_s)

    def _take(self, message: MQTTMessage) -> Iterable[RebirthRequest]:
        self.messages += 1
        return self._handle(message)

    def _note(self, what: str, /, **facts: object) -> None:
        if what == "subscription refused":
            self.refused = str(facts["topic"])
        elif not what.startswith("subscribed"):
            self._why = self._why or str(facts.get("why") or facts.get("error") or what)
        self._known.set()


class _Progress:
    """A line on a terminal that changes while the body runs."""

    def __init__(self, shown: Callable[[], str] | None) -> None:
        self._shown = shown if sys.stderr.isatty() else None

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            click.echo("\r\x1b[K", nl=False, err=True)

    def show(self, begun: float, longest_s: float) -> None:
        """Show it."""
        if self._shown is not None:
            passed = time.monotonic() - begun
            line = f"\rlistening, {passed:.0f} of at most {longest_s:.0f} s: {self._shown()}\x1b[K"
            click.echo(line, nl=False, err=True)


def _unreachable(link: Link, why: str) -> UsageError:
    cure = next((cure for part, cure in CURES if part.lower() in why.lower()), "")
    if not cure:
        cure = "see the broker's log" if link.tls else CLOSED
    said = ERROR_NUMBER.sub("", why)
    return UsageError(f"expected a broker at {link.url}, got: {said}: {cure}")
