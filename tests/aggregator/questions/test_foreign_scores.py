"""A page of scores from below: an honest one passes, and no other does harm."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError
from submerge_aggregator.history.answers import ScoresAsked, ScoreSteps
from submerge_aggregator.history.file import NodeLevels, ScoresPage
from submerge_aggregator.http.admin_tree import read_scores

ASKED = ScoresAsked("g", ScoreSteps(6_000, 600), after="A")
ONE = ASKED._replace(node="n")


def page(*names: str, **fields: Any) -> dict[str, Any]:
    """A page as the bytes of a reply have it."""
    nodes = [NodeLevels(name, b"\x01\x80") for name in names]
    return msgspec.to_builtins(ScoresPage("site", "g", 600, 6_000, nodes)) | fields


def test_an_honest_page_is_as_it_was_sent() -> None:
    """Nothing of it is changed; of one node, too."""
    sent = page("a", "b", more=True)

    assert sent == msgspec.to_builtins(read_scores(json.dumps(sent).encode(), ASKED))
    assert [] == read_scores(json.dumps(page()).encode(), ONE).nodes
    assert ["n"] == [each.node for each in read_scores(json.dumps(page("n")).encode(), ONE).nodes]


UNEVEN = [{"node": "a", "levels": "AQ=="}, {"node": "b", "levels": "AQE="}]
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
    "more of nothing": page(more=True),
    "an aggregator that is none": page("n", aggregator="a b"),
    "other steps": page("n", step_s=60),
    "another time": page("n", first_s=0),
    "no base64": page("n", nodes=[{"node": "n", "levels": "%%%"}]),
    "uneven levels": page("n", nodes=UNEVEN),
    "too many levels": page("n", nodes=[{"node": "n", "levels": "AAAA" * 673}]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_no_honest_aggregator_sends_is_refused(what: str) -> None:
    """It changes nothing, and asking for the next page comes to an end."""
    sent = HOSTILE[what]
    body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()

    with pytest.raises(PeerError):
        read_scores(body, ASKED)


def test_another_node_than_the_one_that_was_asked_for_is_refused() -> None:
    """So that no child answers for its neighbours."""
    with pytest.raises(PeerError, match="expected scores of n"):
        read_scores(json.dumps(page("o")).encode(), ONE)


@given(st.binary(max_size=60) | st.recursive(st.none() | st.text(), st.lists, max_leaves=9).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
def test_any_bytes_are_a_page_or_refused(body: bytes) -> None:
    """Nothing else is raised."""
    try:
        read_scores(body, ASKED)
    except PeerError:
        return
    raise AssertionError("no such page was drawn")
