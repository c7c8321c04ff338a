"""propose_mqtt(): the channels of a broker's devices."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.sections import BadSetting
from submerge_client.config.toml_text import quoted
from submerge_client.config.topic_patterns import wrong_with
from submerge_client.sensors import needs_extra
from submerge_operate.init.choosing import Choice, choose, exclusions
from submerge_operate.init.hearing import Hearing
from submerge_operate.init.proposal import FoundChannel, Proposal

PERIODS_S = (10.0, 5.0, 2.0, 1.0)
"""Seconds between rows: 10, and less where channels speak more often."""

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

SCALES = """\
# The units differ: it first measures each channel's mean and deviation."""


@dataclass(frozen=True)
class BrokerOptions:
    """How to listen to a broker.

    topics : Patterns; empty for all that there is.
    username, password_file, ca, cert, key : As in `Link`.
    listen_s : How long; left out, until nothing new comes.
    states : Whether words that have numbers are channels.
    rebirth : Whether edge nodes of Sparkplug B are asked for their names.
    """

    url: str
    topics: tuple[str, ...] = ()
    username: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    listen_s: float | None = None
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
        try:
            return Link(
                url=self.url,
                insecure=self.url.startswith("mqtt://"),
                ca=self.ca,
                cert=self.cert,
                key=self.key,
                username=self.username,
                password_file=self.password_file,
            )
        except BadSetting as error:
            option = str(error.keys[0]) if error.keys else "url"
            option = "from" if option == "url" else option.replace("_", "-")
            raise UsageError(f"--{option}: {error.message}") from error


def propose_mqtt(options: BrokerOptions) -> Proposal:
    """Listen to a broker, and return what its devices say.

    Raises
    ------
    UsageError
        If it cannot be reached, or nothing is heard that could be a channel.
    """
    for topic in options.topics:
        wrong = wrong_with(topic)
        if wrong:
            raise UsageError(f"--topics: expected {wrong}, got {quoted(topic)}")
    link, topics = options.link, options.topics or ("#",)
    with needs_extra("paho", "mqtt"):
        from submerge_operate.init.broker import hear
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
        schema=SchemaConfig(channels=channels, scaling="fleet"),
        schema_note=SCALES,
        found=choice.found,
        left_out=choice.left_out,
        remarks=tuple(_remarks(hearing, options)),
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


def _remarks(hearing: Hearing, options: BrokerOptions) -> Iterable[str]:
    if hearing.unborn and not options.rebirth:
        yield (
            "Sparkplug B: data without names, which come with the next birth of their edge node;"
            " --rebirth asks for it, which publishes a message"
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
    for name in ("password_file", "ca", "cert", "key"):
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
