"""What a client replies: it passes the border above, it fits, and readings need a setting."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from submerge import Channel
from submerge.protocol.machine import Now
from submerge.protocol.messages import MOST_BODY, Incarnation, Question
from submerge_aggregator.http.admin_tree import read_recent, read_values
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.tomlfile import decoded
from submerge_client.replies import ClientReplies, no_replies
from support.drilled import SCHEMA, SETTINGS, SixChannels

NOW = Now(0.0, 0.0)
TABLE = {
    "node": "n",
    "group": "g",
    "parent": "root",
    "state": "n.state",
    "uplink": {"url": "memory://root"},
    "schema": {"channels": ["a"]},
    "sensor": {"kind": "ndjson"},
}


def node(client: SixChannels, schema: Any = SCHEMA) -> Any:
    """What stands in for a node: what a reply is made of."""
    return SimpleNamespace(
        monitor=client.intake.monitor, settings=SETTINGS, current=SimpleNamespace(schema=schema)
    )


def asks(topic: str, of: Any, **settings: bool) -> tuple[bytes, str]:
    replies = ClientReplies(decoded(TABLE | settings, ClientConfig))
    return replies(of, Question("n", "g", Incarnation(1, 1), 7, (), topic), NOW)


def test_what_a_client_replies_passes_the_border():
    """Scores and readings, as the aggregator reads them, of the same rows."""
    client = SixChannels()
    body, problem = asks("recent", node(client))
    recent = read_recent(body, "n", "g")
    assert ("", 256) == (problem, len(recent.at))
    assert all(0 < each.share <= 1 for row in recent.blame for each in row)
    assert {"x0", "x1", "x2", "x3", "x4", "x5"} == set(recent.channels)

    body, problem = asks("values", node(client), share_values=True)
    values = read_values(body, "n", "g")
    assert ("", recent.at) == (problem, values.at)
    held = client.intake.monitor.recent_rows.rows
    assert held == pytest.approx(np.array(values.values).T, rel=1e-6)


def test_readings_stay_with_a_node_whose_configuration_does_not_share_them():
    """By default, whoever asks; scores and settings are said."""
    of = node(SixChannels())
    for settings in ({}, {"share_values": False}):
        body, problem = asks("values", of, **settings)
        assert not body
        assert problem.startswith("n keeps its readings to itself: share_values = true")
        assert asks("recent", of, **settings)[0]
        assert asks("settings", of, **settings)[0]


def test_names_and_units_of_channels_are_cut_and_printable():
    schema = replace(
        SCHEMA, channels=tuple(Channel(f"{i}\x1b[2J" + "x" * 9000, "\n") for i in range(6))
    )
    client = SixChannels()
    for topic in ("recent", "values"):
        body, problem = asks(topic, node(client, schema), share_values=True)
        assert (True, "") == (len(body) <= MOST_BODY, problem)
        assert b"\x1b" not in body


def test_a_wide_node_sends_as_many_rows_as_there_is_room_for(monkeypatch):
    """The newest ones."""
    monkeypatch.setattr("submerge_client.replies.MOST_BODY", 2000)
    client = SixChannels()
    body, _ = asks("values", node(client), share_values=True)
    values = read_values(body, "n", "g")

    assert len(body) <= 2000
    assert 1 < len(values.at) < 256
    assert values.at[-1] == pytest.approx(client.now.wall)


def test_without_rows_or_a_configuration_it_says_why():
    body, problem = asks("recent", node(SixChannels(rows=0)))
    assert (b"", "n: no row has come yet under a settled schema") == (body, problem)
    assert (b"", "n has no configuration that it could show") == no_replies(node(SixChannels(0)))
    assert (b"", "n knows nothing of weather") == asks("weather", node(SixChannels(0)))
