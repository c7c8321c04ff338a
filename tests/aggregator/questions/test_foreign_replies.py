"""What a node replied about itself: an honest reply passes, and no other does harm."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError
from submerge_aggregator.http.admin_tree import (
    DEEPEST,
    read_recent,
    read_settings,
    read_values,
)

RECENT = {
    "node": "n",
    "group": "g",
    "version": 3,
    "provisional": False,
    "at": [1.7e9, 1.7e9 + 1],
    "kinds": [
        {"kind": "distance", "limit": 20.5, "values": [1.0, 2.0]},
        {"kind": "channel", "limit": None, "values": [0.0, 1e300]},
    ],
    "channels": ["a", "größe"],
    "blame": [[[1, 0.7], [0, 0.3]], []],
}
VALUES = {
    "node": "n",
    "group": "g",
    "channels": [{"name": "a", "unit": "m³"}, {"name": "b", "unit": ""}],
    "at": [1.7e9, 1.7e9 + 1],
    "values": [[1.0, None], [-3.5, 1e9]],
    "expected": [[1.0, 2.0], [None, 1e9]],
    "sd": [0.1, None],
}
SETTINGS = {
    "node": "n",
    "kind": "client",
    "software": "submerge/1.0",
    "settings": {"uplink": {"url": "grpcs://x"}, "n": [1, 2.5, None, True]},
    "cut": False,
}

READ: dict[str, tuple[dict[str, Any], Callable[[bytes], Any]]] = {
    "recent": (RECENT, lambda body: read_recent(body, "n", "g")),
    "values": (VALUES, lambda body: read_values(body, "n", "g")),
    "settings": (SETTINGS, lambda body: read_settings(body, "n")),
}


@pytest.mark.parametrize("topic", READ)
def test_an_honest_reply_is_as_it_was_sent(topic):
    sent, read = READ[topic]
    assert sent == json.loads(msgspec.json.encode(read(json.dumps(sent).encode())))


@pytest.mark.parametrize("topic", READ)
@pytest.mark.parametrize("body", [b"", b"\xff{", b"[1]", b"[" * 100_000, b'{"node":"n"}', b"null"])
def test_what_is_no_reply_is_refused(topic, body):
    with pytest.raises(PeerError):
        READ[topic][1](body)


HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "scores of another node": (RECENT, {"node": "m"}),
    "scores of another group": (RECENT, {"group": "h"}),
    "a version below zero": (RECENT, {"version": -1}),
    "a version without end": (RECENT, {"version": 2**70}),
    "fewer scores than rows": (RECENT, {"at": [1.0]}),
    "more rows than a client holds": (
        RECENT,
        {
            "at": [1.0] * 257,
            "blame": [[]] * 257,
            "kinds": [],
        },
    ),
    "a kind twice": (RECENT, {"kinds": [RECENT["kinds"][0]] * 2}),
    "a kind that is none": (RECENT, {"kinds": [RECENT["kinds"][0] | {"kind": "<b>"}]}),
    "a time that no date has": (RECENT, {"at": [1.0, 1e15]}),
    "a time before all": (RECENT, {"at": [-1.0, 1.0]}),
    "a channel that is not named": (RECENT, {"blame": [[[2, 0.5]], []]}),
    "a channel below zero": (RECENT, {"blame": [[[-1, 0.5]], []]}),
    "a channel twice": (RECENT, {"blame": [[[0, 0.5], [0, 0.5]], []]}),
    "four channels": (
        RECENT,
        {"channels": list("abcd"), "blame": [[[i, 0.1] for i in range(4)], []]},
    ),
    "a share over one": (RECENT, {"blame": [[[0, 1.5]], []]}),
    "terminal commands": (RECENT, {"channels": ["a\x1b[2J", "b"]}),
    "a mark of direction": (RECENT, {"channels": ["a\u202e", "b"]}),
    "a name without end": (RECENT, {"channels": ["a" * 60_000, "b"]}),
    "one more field": (RECENT, {"more": 1}),
    "readings of another node": (VALUES, {"node": "m"}),
    "a channel too few": (VALUES, {"channels": VALUES["channels"][:1]}),
    "a row too many": (VALUES, {"values": [[1.0, 2.0, 3.0], [1.0, 2.0]]}),
    "expected in another shape": (VALUES, {"expected": []}),
    "sd below zero": (VALUES, {"sd": [-0.1, 1.0]}),
    "sd in another shape": (VALUES, {"sd": [1.0]}),
    "a unit in two lines": (VALUES, {"channels": [{"name": "a", "unit": "m\n"}] * 2}),
    "settings of another node": (SETTINGS, {"node": "m"}),
    "a kind of node that is none": (SETTINGS, {"kind": "root"}),
    "a version with commands": (SETTINGS, {"software": "\x1b[2J"}),
    "settings that are none": (SETTINGS, {"settings": [1]}),
    "a number that is not finite": (SETTINGS, {"settings": {"n": 10**400}}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_reply_is_refused(what):
    sent, fields = HOSTILE[what]
    read = next(read for honest, read in READ.values() if honest is sent)
    with pytest.raises(PeerError):
        read(json.dumps(sent | fields).encode())


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, "1e999"])
@pytest.mark.parametrize("topic", ["recent", "values"])
def test_what_is_no_number_is_refused(topic, number):
    """JSON has none of these, and Python writes them."""
    sent, read = READ[topic]
    text = json.dumps(sent).replace("1.0", str(number) if isinstance(number, str) else repr(number))
    text = text.replace("nan", "NaN").replace("inf", "Infinity")
    with pytest.raises(PeerError):
        read(text.encode())


def test_settings_are_shown_without_what_cannot_be_printed():
    """A channel may be called anything; and no table is deeper than those of ours."""
    odd = {"a\x1b[2J": ["b\u202ec", {"d\n": "e\x00"}]}
    read = read_settings(json.dumps(SETTINGS | {"settings": odd}).encode(), "n")
    assert {"a?[2J": ["b?c", {"d?": "e?"}]} == read.settings

    deep: Any = 1
    for _ in range(DEEPEST + 1):
        deep = [deep]
    with pytest.raises(PeerError, match="deep at most"):
        read_settings(json.dumps(SETTINGS | {"settings": {"a": deep}}).encode(), "n")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(data=st.data(), topic=st.sampled_from(sorted(READ)))
def test_what_passes_can_be_shown(data, topic):
    """Whatever is put in the place of a field, it is refused, or printable and finite."""
    sent, read = READ[topic]
    field = data.draw(st.sampled_from(sorted(sent)))
    body = json.dumps(sent | {field: data.draw(json_values)}).encode()
    try:
        shown = msgspec.to_builtins(read(body))
    except PeerError:
        return
    for text, number in _leaves(shown):
        assert text.isprintable()
        assert math.isfinite(number)


def _leaves(value: Any) -> list[tuple[str, float]]:
    if isinstance(value, str):
        return [(value, 0.0)]
    if isinstance(value, int | float):
        return [("", float(value))]
    if isinstance(value, dict):
        return [leaf for pair in value.items() for each in pair for leaf in _leaves(each)]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    return []
