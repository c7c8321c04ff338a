"""A question that cannot be answered costs its reply, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from submerge.protocol.machine import Now
from submerge.protocol.messages import Incarnation, Question
from submerge_client import replies
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.tomlfile import decoded

TABLE = {
    "node": "n",
    "group": "g",
    "parent": "root",
    "state": "n.state",
    "share_values": True,
    "uplink": {"url": "memory://root"},
    "schema": {"channels": ["a"]},
    "sensor": {"kind": "ndjson"},
}


@pytest.mark.parametrize("topic", ["settings", "recent", "values"])
def test_a_bug_in_a_reply_does_not_end_the_client(topic: str, monkeypatch: Any) -> None:
    """A page asks every two seconds: the client would end again and again."""

    def fails(*_: object) -> bytes:
        raise FloatingPointError("a bug")

    for each in ("settings_reply", "_recent", "_values"):
        monkeypatch.setattr(replies, each, fails)
    asked = Question("n", "g", Incarnation(1, 1), 7, (), topic)
    node: Any = None  # what fails does not look at it
    said = replies.ClientReplies(decoded(TABLE, ClientConfig))(node, asked, Now(0.0, 0.0))

    assert (b"", "n cannot reply: see its log") == said
