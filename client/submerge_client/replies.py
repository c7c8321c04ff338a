"""ClientReplies: what a client says to a question, as JSON of at most `MOST_BODY` bytes.

Settings are said without secrets, readings only if `share_values = true`. A bug costs the one who
asks a reply, and not the node its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec.structs import fields

from submerge import UsageError, __version__
from submerge._linalg import Array
from submerge.client.node import ClientNode
from submerge.client.recent_rows import recent_readings, recent_statistics
from submerge.protocol.machine import Now
from submerge.protocol.messages import MOST_BODY, Question
from submerge.stats.statistic import By
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.sections import SHOWN, Section, choices
from submerge_client.logs import say
from submerge_proto.wire.parts import text

HIDDEN = "(hidden)"

CUTS = (1000, 200, 40, 10, 2)
"""Entries of a list or a table that are shown, and a quarter of the letters of a text: the first
with which it fits."""

Kind = Literal["client", "aggregator"]


class SettingsReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node replies when it is asked for its settings; `cut`: some were too long to send."""

    node: str
    kind: Kind
    software: str
    settings: dict[str, Any]
    cut: bool = False


def settings_reply(node: str, kind: Kind, config: Section) -> bytes:
    """Return a configuration without its secrets, as JSON of at most `MOST_BODY` bytes."""
    settings = shown_settings(config)
    for most in (None, *CUTS):
        reply = SettingsReply(
            node=node,
            kind=kind,
            software=f"submerge/{__version__}",
            settings=settings if most is None else _cut(settings, most),
            cut=most is not None,
        )
        body = msgspec.json.encode(reply)
        if len(body) <= MOST_BODY:
            break
    return body


def shown_settings(config: Section) -> dict[str, Any]:
    """Return a section as plain values, without its secrets."""
    tag = type(config).__struct_config__.tag_field
    kind = {} if tag is None else {tag: type(config).__struct_config__.tag}
    return kind | {
        each.name: _shown(getattr(config, each.name), choices(each.type)) for each in fields(config)
    }


def _shown(value: Any, kinds: Iterable[Any]) -> Any:
    """Return a value as far as the types that it may have allow it."""
    if isinstance(value, Section):
        return shown_settings(value)
    if isinstance(value, tuple):
        inner = [each for kind in kinds if get_origin(kind) is tuple for each in _of(kind, 0)]
        return [_shown(each, inner) for each in value]
    if isinstance(value, dict):
        tables = [kind for kind in kinds if get_origin(kind) is dict]
        keys, values = ([each for kind in tables for each in _of(kind, i)] for i in (0, 1))
        # Two hidden keys are still two entries.
        return {
            key if _shown(key, keys) == key else f"{HIDDEN} {i}": _shown(each, values)
            for i, (key, each) in enumerate(value.items(), 1)
        }
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return value if any(_may_be_shown(value, kind) for kind in kinds) else HIDDEN
    return value


def _of(kind: Any, i: int) -> tuple[Any, ...]:
    return choices(get_args(kind)[i])


def _may_be_shown(text: str, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return text in get_args(kind)
    return origin is Annotated and any(
        isinstance(each, msgspec.Meta) and each.extra == SHOWN for each in get_args(kind)[1:]
    )


def _cut(value: Any, most: int) -> Any:
    """Return a value whose lists, tables and texts are not long."""
    if isinstance(value, str) and len(value) > 4 * most + 40:
        return f"{value[: 4 * most]}... ({len(value)} letters)"
    if isinstance(value, list):
        rest = [f"... and {len(value) - most} more"] if len(value) > most else []
        return [*(_cut(each, most) for each in value[:most]), *rest]
    if isinstance(value, dict):
        # The sections themselves are few: only tables of any names are long.
        long = len(value) > max(most, 40)
        some = list(value.items())[: most if long else None]
        more = {"...": f"and {len(value) - most} more"} if long else {}
        return {_cut(key, most): _cut(each, most) for key, each in some} | more
    return value


LETTERS = 200  # of a channel's name, or of its unit; what is longer is cut


class Blamed(NamedTuple):
    """A channel, as an index into those that are named, and its share in a score."""

    channel: int
    share: float


class KindScores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statistic at each row; an alarm is raised above the limit, None while it has none."""

    kind: By
    limit: float | None
    values: list[float]


class RecentReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scores of the newest rows; for each, at most three channels to blame, the largest first."""

    node: str
    group: str
    version: int
    provisional: bool
    at: list[float]
    kinds: list[KindScores]
    channels: list[str]
    blame: list[list[Blamed]]


class ShownChannel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    unit: str


class ValuesReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Readings of the newest rows by channel, in its unit, and what others say; None is a gap."""

    node: str
    group: str
    channels: list[ShownChannel]
    at: list[float]
    values: list[list[float | None]]
    expected: list[list[float | None]]
    sd: list[float | None]  # how far each is off typically; None if nothing predicts it


MOST_READINGS = 2600  # in a reply, with as many expected values: about 24 bytes a pair

Replies = Callable[[ClientNode, Question, Now], tuple[bytes, str]]
"""Returns JSON, or why there is none, in one line."""


class ClientReplies:
    """Says what a client's configuration allows."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def __call__(self, node: ClientNode, question: Question, _: Now) -> tuple[bytes, str]:
        """Return JSON, or why there is none, in one line."""
        me = self._config.node
        try:
            match question.topic:
                case "settings":
                    return settings_reply(me, "client", self._config), ""
                case "recent":
                    return _recent(node), ""
                case "values" if self._config.share_values:
                    return _values(node), ""
                case "values":
                    return b"", (
                        f"{me} keeps its readings to itself: share_values = true in its"
                        " configuration lets operators look at them"
                    )
        except UsageError as error:
            return b"", f"{me}: {error}"
        except Exception as error:  # a bug costs a reply, not the rows of the node
            why = f"{type(error).__name__}: {error}"
            say("question not answered", level="warning", topic=question.topic, why=why)
            return b"", f"{me} cannot reply: see its log"
        return b"", f"{me} knows nothing of {question.topic}"


def no_replies(node: ClientNode, *_: object) -> tuple[bytes, str]:
    """Say nothing: for nodes that are made by a program, without a configuration."""
    return b"", f"{node.settings.node} has no configuration that it could show"


def _recent(node: ClientNode) -> bytes:
    found, names = recent_statistics(node.monitor), node.current.schema.names
    named = sorted({channel for row in found.blame for channel, _ in row})
    places = {channel: place for place, channel in enumerate(named)}
    reply = RecentReply(
        node=node.settings.node,
        group=node.settings.group,
        version=found.version,
        provisional=found.provisional,
        at=_times(found.at),
        kinds=[
            KindScores(
                kind=kind,
                limit=_short(found.limits[kind]),
                values=[_rounded(each) for each in values.tolist()],
            )
            for kind, values in found.values.items()
        ],
        channels=[text(names[channel], LETTERS) for channel in named],
        blame=[[Blamed(places[i], round(share, 3)) for i, share in row] for row in found.blame],
    )
    return msgspec.json.encode(reply)


def _values(node: ClientNode) -> bytes:
    schema, most = node.current.schema, MOST_READINGS
    while True:
        found = recent_readings(node.monitor, schema, most)
        reply = ValuesReply(
            node=node.settings.node,
            group=node.settings.group,
            channels=[
                ShownChannel(name=text(each.name, LETTERS), unit=text(each.unit, LETTERS))
                for each in schema.named[: found.values.shape[1]]
            ],
            at=_times(found.at),
            values=[_numbers(each) for each in found.values.T],
            expected=[_numbers(each) for each in found.expected.T],
            sd=_numbers(found.sd),
        )
        body = msgspec.json.encode(reply)
        if len(body) <= MOST_BODY or len(found.at) == 1:
            return body
        most //= 2


def _times(at: Array) -> list[float]:
    return [round(each, 3) for each in at.tolist()]


def _numbers(values: Array) -> list[float | None]:
    """Return numbers with the digits that a picture shows; None for those that are none."""
    return [_short(each) for each in values.tolist()]


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else _rounded(value)


def _rounded(value: float) -> float:
    return float(f"{value:.7g}")
