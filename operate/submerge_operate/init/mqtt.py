"""propose_mqtt(): the channels of a broker's devices."""

from __future__ import annotations

import math
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.sections import BadSetting
from submerge_client.config.tomlfile import quoted
from submerge_client.sensors import needs_extra
from submerge_client.sensors.mqtt.decoder import RebirthRequest
from submerge_client.sensors.mqtt.descriptions import SUBSCRIPTIONS
from submerge_client.sensors.mqtt.topics import wrong_with
from submerge_client.sensors.tally import ProblemTally
from submerge_operate.init.devices import Hearing
from submerge_operate.init.proposal import Choice, FoundChannel, Proposal, choose, exclusions

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

DESCRIBED_S, SILENT_S = 5.0, 0.5
"""Descriptions are retained: they come at once, and end with a silence."""

QUIET_S, LONGEST_S = 20.0, 300.0
"""It stops listening when nothing new came for so long, and at the latest."""

TRY_S = 15.0  # how long a connection may take

LOOK_S = 0.05

ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")  # what says nothing to a person

CURES = (
    ("Connection refused", "nothing listens there: is the broker running, and the port right?"),
    ("not known|name resolution|servname", "there is no machine of that name: use its address"),
    ("timed out", "is the machine on, the address right, and no firewall between?"),
    ("No route to host", "is the machine on, and the address right?"),
    ("unreachable", "is this machine on the network, and the address right?"),
    ("user name or password", "give both: --username NAME --password-file FILE"),
    ("Not authorized", "give --username NAME and --password-file FILE, or have them right"),
    ("self.signed|unable to get local issuer", "give the authority's certificate: --ca FILE"),
    ("doesn't match|not valid for", "use the name that is in the broker's certificate"),
    ("certificate required", "the broker wants a certificate: --cert FILE --key FILE"),
    ("VERSION_NUMBER|LAYER_FAILURE", "no TLS there: write mqtt://, or the port of TLS, 8883"),
    ("reset by peer", "it closed the connection: is it mqtt:// or mqtts://, and the port right?"),
    ("EOF occurred", "the port has no TLS, or wants another: write mqtt://, or port 8883"),
)
"""What to do, by a part of what went wrong."""

CLOSED = "it closed the connection: if the port is for TLS, write mqtts://"


def hear(
    link: Link, topics: Sequence[str], *, listen_s: float | None, rebirth: bool = False
) -> Hearing:
    """Listen to a broker's descriptions, then to its devices."""
    # Without `listen_s` until nothing new came for `QUIET_S`. That counts only once something was
    # heard: until then it listens for `LONGEST_S`.
    hearing = Hearing(topics, rebirth=rebirth)

    def take(message: MQTTMessage) -> Iterable[RebirthRequest]:
        return hearing.take(message.topic, message.payload, retained=message.retain)

    with _Ears(link, SUBSCRIPTIONS, lambda m: hearing.describe(m.topic, m.payload)) as ears:
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
        from submerge_client.sensors.mqtt.readings import KINDS, BrokerListener

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
        """Wait until there is no news for a while, or for the longest time; show how it goes."""
        from rich.console import Console

        begun = last = time.monotonic()
        known, console = news(), Console(stderr=True)
        console.quiet = shown is None or not console.is_terminal
        with console.status("") as status:
            while (now := time.monotonic()) < begun + longest_s:
                if now >= last + quiet_s and (known or not waits):
                    break
                time.sleep(LOOK_S)
                if news() != known:
                    known, last = news(), now
                said = "" if shown is None else shown()
                status.update(f"listening, {now - begun:.0f} of at most {longest_s:.0f} s: {said}")

    def _take(self, message: MQTTMessage) -> Iterable[RebirthRequest]:
        self.messages += 1
        return self._handle(message)

    def _note(self, what: str, /, **facts: object) -> None:
        if what == "subscription refused":
            self.refused = str(facts["topic"])
        elif not what.startswith("subscribed"):
            self._why = self._why or str(facts.get("why") or facts.get("error") or what)
        self._known.set()


def _unreachable(link: Link, why: str) -> UsageError:
    cure = next((cure for part, cure in CURES if re.search(part, why, re.I)), "")
    if not cure:
        cure = "see the broker's log" if link.tls else CLOSED
    said = ERROR_NUMBER.sub("", why)
    return UsageError(f"expected a broker at {link.url}, got: {said}: {cure}")


GIVEN = ("username", "password_file", "ca", "cert", "key")
"""Settings of a link that are options, too."""

PERIODS_S = (10.0, 5.0, 2.0, 1.0)  # seconds between rows: 10, less where channels speak more often

SENSOR = """\
# Where readings come from: messages of devices. A channel is called "device/field".
[sensor]
kind = "mqtt"
url = {url}
{access}# Where devices publish; {{device}} and {{field}} take the place of names.
topics = {topics}
{more}# Seconds between rows.
period_s = {period!r}
"""

UNBORN = """\
Sparkplug B: data without names, which come with the next birth of their edge node; --rebirth asks \
for it, which publishes a message"""

SCALES = """\
# Each channel counts by what a person would notice in its unit; one whose unit it does not know is
# measured first."""


@dataclass(frozen=True)
class BrokerOptions:
    url: str
    topics: tuple[str, ...] = ()  # patterns; empty for all
    username: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    listen_s: float | None = None  # left out, until nothing new comes
    states: bool = False
    rebirth: bool = False

    @property
    def link(self) -> Link:
        """The connection. UsageError if it is none."""
        if "@" in self.url:
            # It is not shown: it would stay in a log.
            raise UsageError(
                "--from: expected a broker's url without a user's name and password: give"
                " --username NAME and --password-file FILE"
            )
        if self.username is not None and self.password_file is None:
            raise UsageError("--username: expected --password-file FILE beside it, got nothing")
        try:
            return Link(
                url=self.url,
                insecure=self.url.startswith(("mqtt://", "ws://")),
                **{name: getattr(self, name) for name in GIVEN},
            )
        except BadSetting as error:
            option = str(error.keys[0]) if error.keys else "url"
            option = "from" if option == "url" else option.replace("_", "-")
            raise UsageError(f"--{option}: {error.message}") from error


def propose_mqtt(options: BrokerOptions) -> Proposal:
    for topic in options.topics:
        wrong = wrong_with(topic)
        if wrong:
            raise UsageError(f"--topics: expected {wrong}, got {quoted(topic)}")
    link, topics = options.link, options.topics or ("#",)
    with needs_extra("paho", "mqtt"):
        pass
    hearing = hear(link, topics, listen_s=options.listen_s, rebirth=options.rebirth)
    described = hearing.described()  # first: names that it adds may make others longer
    choice = choose(
        hearing.fields, described, hearing.retained, hearing.words, with_states=options.states
    )
    if not choice.found:
        raise _nothing(hearing, choice, topics)
    patterns = hearing.patterns(each.name for each in choice.found)
    channels = tuple(ChannelConfig(name=each.name, unit=each.unit) for each in choice.found)
    return Proposal(
        source=f"the devices of {options.url}",
        sensor=_sensor(options, patterns, choice),
        schema=SchemaConfig(channels=channels, scaling="units"),
        schema_note=SCALES,
        found=choice.found,
        left_out=choice.left_out,
        remarks=(UNBORN,) if hearing.unborn and not options.rebirth else (),
        discover=True,
    )


def _nothing(hearing: Hearing, choice: Choice, topics: Sequence[str]) -> UsageError:
    on = ", ".join(topics)
    if not hearing.messages:
        return UsageError(
            f"expected messages on {on}, got none: correct --topics (mosquitto_sub -t '#' -v shows"
            " what there is), or give seldom devices more time, --listen 600"
        )
    why = "; ".join(dict.fromkeys(each.why for each in choice.left_out)) or "no numbers"
    return UsageError(
        f"expected numbers that change on {on}, got {hearing.messages} messages without ({why}):"
        " give it more time, --listen 600, or other --topics"
    )


def _sensor(options: BrokerOptions, patterns: Sequence[str], choice: Choice) -> str:
    more = ""
    excluded = exclusions(choice)
    if excluded:
        more += f"# What is never a channel.\nexclude = {_list(excluded)}\n"
    if choice.states:
        numbers = ", ".join(f"{quoted(word)} = {n:g}" for word, n in choice.states.items())
        more += f"# Numbers for words.\nstates = {{ {numbers} }}\n"
    if options.rebirth:
        more += "# Ask edge nodes for their names, which publishes a message.\nrebirth = true\n"
    return SENSOR.format(
        url=quoted(options.url),
        access=_access(options),
        topics=_list(patterns),
        more=more,
        period=period_of(choice.found),
    )


def _access(options: BrokerOptions) -> str:
    lines = []
    if not options.link.tls:
        lines.append("# Without TLS others on the network can read and forge readings.")
        lines.append("insecure = true")
    if options.username is not None:
        lines.append(f"username = {quoted(options.username)}")
    for name in GIVEN[1:]:
        path = getattr(options, name)
        if path is not None:
            lines.append(f"{name} = {quoted(str(path.absolute()))}")
    return "".join(f"{line}\n" for line in lines)


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def period_of(found: Sequence[FoundChannel]) -> float:
    """Return seconds between rows: 10, or less where most channels speak more often."""
    # Of what spoke once no rate is known: it is none of the fast ones.
    usual = statistics.median(each.every_s or math.inf for each in found)
    return next((period for period in PERIODS_S if period <= usual), PERIODS_S[-1])
