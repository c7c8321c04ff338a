"""A page of nodes from below: an honest one passes, and no other does harm."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError
from submerge_aggregator.http.admin_tree import read_page
from submerge_aggregator.questions.views import NodesPage, NodeView, RowView

ROW = RowView(
    *("1-2", 1.0, 1, 5, 0, 0, 5, 1.0, 2.0, "submerge 1", 0),
    final=False,
    schema="current",
)


def view(name: str, **fields: Any) -> NodeView:
    known = {"group": "g", "kind": "client", "rows": (ROW,), "sealed": ()}
    return NodeView(node=name, **known | {"banned": False, "quarantined": False} | fields)


def page(*names: str, **fields: Any) -> dict[str, Any]:
    """A page as the bytes of a reply have it."""
    made = NodesPage("site", "g", [view(name) for name in names], more=False)
    return msgspec.to_builtins(made) | fields


def test_an_honest_page_is_as_it_was_sent():
    sent = page("a", "b", more=True)
    assert sent == msgspec.to_builtins(read_page(json.dumps(sent).encode(), "g", ""))
    assert [] == read_page(json.dumps(page()).encode(), "g", "z").nodes


HOSTILE = {
    "no JSON": b"\xff{",
    "another shape": b"[1, 2]",
    "deep": b"[" * 100_000,
    "a name that is none": page("a\x1b[2J"),
    "markup": page("<b>"),
    "names that fall": page("b", "a"),
    "a name twice": page("a", "a"),
    "names of the page before": page("A"),
    "another group": page("n", group="h"),
    "a node of another group": page("n") | {"nodes": [page("n")["nodes"][0] | {"group": "h"}]},
    "more of nothing": page(more=True),
    "an aggregator that is none": page("n", aggregator="a b"),
    "a time that never ends": page("n")
    | {"nodes": [page("n")["nodes"][0] | {"quarantined": True, "since_s": 1e300}]},
    "a time that no date has": page("n")
    | {"nodes": [page("n")["nodes"][0] | {"quarantined": True, "since_s": 1e15}]},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_page_is_refused(what):
    sent = HOSTILE[what]
    data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    with pytest.raises(PeerError):
        read_page(data, "g", "a" if what == "names of the page before" else "")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page_or_refused(data):
    try:
        read_page(data, "g", "")
    except PeerError:
        return
    raise AssertionError("no random bytes are a page")
