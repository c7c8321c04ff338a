"""ClientReplies: what a client says to a question, as JSON of at most `MOST_BODY` bytes.

1. Settings are said without secrets (`shown_settings`).
2. Scores are said of the rows in memory.
3. Readings leave the node only if its configuration says `share_values = true`.
4. It raises nothing: a bug costs the one who asks a reply, and not the node its rows.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import msgspec

from submerge import UsageError
from submerge._linalg import Array
from submerge.client.node import ClientNode
from submerge.client.recent_rows import recent_readings, recent_statistics
from submerge.protocol.machine import Now
from submerge.protocol.messages import MOST_BODY, Question
from submerge_client.asked.shapes import (
    LETTERS,
    Blamed,
    KindScores,
    RecentReply,
    ShownChannel,
    ValuesReply,
)
from submerge_client.asked.shown_settings import settings_reply
from submerge_client.config.client_config import ClientConfig
from submerge_client.logs import say
from submerge_proto.wire.parts import text

MOST_READINGS = 2600
"""In a reply, with as many expected values: about 24 bytes a pair."""

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
        except Exception as error:  # promise 4
            why = f"{type(error).__name__}: {error}"
            say("question not answered", level=logging.WARNING, topic=question.topic, why=why)
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
