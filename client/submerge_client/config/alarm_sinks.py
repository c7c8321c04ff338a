"""BrokerConfig, WebhookConfig, SinkKind: destinations of alarms beside the uplink's broker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import SplitResult, quote, urlsplit

from msgspec import Meta
from msgspec.structs import asdict

from submerge_client.config.decoding import decoded
from submerge_client.config.links import Link, UplinkConfig, check_insecure, is_here
from submerge_client.config.plugins import plugins
from submerge_client.config.sections import (
    SHOWN,
    AnyText,
    Name,
    Secret,
    Section,
    placed,
    refusal,
    shown,
)

if TYPE_CHECKING:
    from submerge_client.alarms import Sink
    from submerge_client.alarms.journal import Journal

PREFIX = r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*"
"""The topic prefixes that Home Assistant allows."""

TOPIC = re.compile(r"/([A-Za-z0-9_-]{1,64})/?")
"""The path of a url that is a topic of ntfy."""

Prefix = Annotated[
    str,
    Meta(
        pattern=rf"^({PREFIX})?\Z",
        description='a topic such as "homeassistant", or ""',
        extra=SHOWN,
    ),
]
Shape = Literal["alertmanager", "ntfy", "json"]


class BrokerConfig(Link, frozen=True, kw_only=True):
    """A broker for alarms or scores only.

    fleet : Left out, the uplink's.
    """

    fleet: Name | None = None

    def beside(self, uplink: UplinkConfig) -> UplinkConfig:
        """Return the broker as a link, with the uplink's fleet by default."""
        return UplinkConfig(**{**asdict(self), "fleet": self.fleet or uplink.fleet})


class WebhookConfig(Section, frozen=True, kw_only=True):
    """A server that gets a POST for each start and each end.

    url : The server for "alertmanager", the topic for "ntfy", any url that takes a POST for "json".
    shape : Alertmanager, a topic of ntfy, or any other. One of "json", "alertmanager", "ntfy".
    token_file : A file that holds a token and nothing else; it is sent as `Authorization: Bearer`.
    ca : Certificates of trusted authorities; left out, the system's.
    insecure : Required for http:// to another machine. Others on the network can then read and
        forge messages.
    link : A page about the node; {node}, {group} and {id} are replaced.
    """

    url: Secret
    shape: Shape = "json"
    token_file: Path | None = None
    ca: Path | None = None
    insecure: bool = False
    link: Secret | None = None

    def __post_init__(self) -> None:
        parts = _parts("url", self.url)
        if self.shape == "ntfy" and not TOPIC.fullmatch(parts.path):
            # Not shown: a topic works as a password.
            raise refusal(
                "url",
                expected="a topic of ntfy, https://host/topic",
                got=f"{origin(self.url)}/...",
                hint="a topic has 1 to 64 of A-Z a-z 0-9 _ -",
            )
        if self.shape == "alertmanager" and parts.query:
            raise refusal(
                "url",
                expected="the server's, such as https://host:9093",
                got="one with a question mark",
            )
        if parts.scheme == "https":
            check_insecure(self.insecure, "https://")
        else:
            self._check_plain(parts)
        if self.link is not None:
            _parts("link", self.link_of("n", "g", "i"))

    def _check_plain(self, parts: SplitResult) -> None:
        if not (self.insecure or is_here(parts.hostname or "")):
            raise refusal(
                "url",
                expected="https://",
                got=origin(self.url),
                hint="say insecure = true if the network is trusted, or use https://",
            )
        if self.ca is not None:
            raise refusal(
                "ca",
                expected="none with http://, which has no TLS",
                got=shown(self.ca),
                hint="leave it out, or use https://",
            )

    @property
    def stays_here(self) -> bool:
        """Whether nothing of it leaves this machine."""
        return is_here(urlsplit(self.url).hostname or "")

    @property
    def topic(self) -> str:
        """The topic of ntfy in the url."""
        found = TOPIC.fullmatch(urlsplit(self.url).path)
        return found[1] if found else ""

    def link_of(self, node: str, group: str, name: str) -> str:
        """Return the page about one alarm; "" if there is none."""
        link = self.link or ""
        for key, value in {"{node}": node, "{group}": group, "{id}": name}.items():
            link = link.replace(key, quote(value, safe=""))
        return link


SinkTable = dict[AnyText, Any]
"""A table [[alarms.sink]] as it stands in the file: its kind says what else is in it."""


class SinkKind(Section, frozen=True, kw_only=True):
    """The settings of a sink that another package adds, by an entry point (`submerge.sinks`).

    A subclass has `tag_field="kind"`, and the entry point's name as its tag.
    """

    def open(self, journal: Journal, *, name: str, group: str) -> Sink:
        """Return the sink for the alarms of a group; it delivers each start and each end once.

        journal : What each sink has delivered; this one by `name`.

        Raises UsageError if it cannot be used as it is configured.
        """
        raise NotImplementedError


def sinks_of_others(tables: Sequence[Mapping[str, Any]]) -> tuple[SinkKind, ...]:
    """Return the settings of sinks that other packages add."""
    found = []
    kinds = {entry.name: entry for entry in plugins("submerge.sinks")} if tables else {}
    for i, table in enumerate(tables):
        with placed("sink", i):
            kind = table.get("kind")
            if not isinstance(kind, str) or kind not in kinds:
                words = " or ".join(map(shown, kinds)) or "a kind that an installed package offers"
                got = "nothing" if kind is None else shown(kind)
                raise refusal("kind", expected=words, got=got, hint="install its package")
            section: type[SinkKind] = kinds[kind].load()
            found.append(decoded(dict(table), section))
    return tuple(found)


def origin(url: str) -> str:
    """Return a url's scheme, host and port: paths and queries of webhooks are secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _parts(key: str, url: str) -> SplitResult:
    """Return the parts of a url. An error does not show it: it may be a secret."""
    expected = "https://host/path"
    if key == "link":
        expected += ", with {node}, {group} or {id} where these belong"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:  # a port of 70000, brackets that do not close
        raise refusal(key, expected=expected, got=f"something else ({error})") from None
    if parts.username is not None or parts.password is not None:
        raise refusal(
            key,
            expected=expected,
            got="a url with a user's name",
            hint="put a token into a file that token_file names",
        )
    fine = url.isascii() and url.isprintable() and not set(url) & set(' {}"<>\\^`|')
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment or not fine:
        raise refusal(key, expected=expected, got="something else")
    return parts
