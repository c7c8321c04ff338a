"""Each order in a browser: its dialog, what it does at the aggregator, and how far it is."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from support.paged_fleet import OPEN, OVER
from support.views import opened

pytestmark = pytest.mark.slow


@pytest.fixture
def visited(fleet, visit):
    """Somebody who may give every order."""
    visited = visit()
    visited.has_session(fleet, "operate")
    return visited


class Order(NamedTuple):
    """A button, its path in the admin API, what a node is then; `first`: an order before it."""

    label: str
    path: str
    says: dict[str, object]
    first: str = ""


ORDERS = [
    Order("Quarantine", "nodes/room/{}/quarantine", {"quarantined": True}),
    Order("Release", "nodes/room/{}/release", {"quarantined": False}, "nodes/room/{}/quarantine"),
    Order("Ban", "bans/{}/ban", {"banned": True}),
    Order("Unban", "bans/{}/unban", {"banned": False}, "bans/{}/ban"),
]


def node_of(fleet, node=OPEN):
    return fleet.get(f"/api/nodes/room/{node}").json


def says(page, words):
    """Wait until the line of the order says something."""
    page.wait_for_selector(f"#given p:has-text('{words}')")


@pytest.mark.parametrize("order", ORDERS, ids=[each.label for each in ORDERS])
def test_an_order_of_the_aggregator_is_done_when_it_is_taken(fleet, visited, order):
    """Cancel gives none; confirming gives one, and the button is for the way back."""
    if order.first:
        fleet.house.asks("POST", f"/{order.first.format(OPEN)}")
    page = opened(visited.page(), fleet.origin, "node")
    button = page.locator("#to-node button", has_text=order.label).first
    button.click()
    page.click("dialog button:text-is('Cancel')")
    assert [] == [each for each in visited.asked if each.startswith("POST")]
    assert order.says != {name: node_of(fleet)[name] for name in order.says}

    button.click()
    assert OPEN in page.inner_text("dialog")
    page.click("dialog button.main")
    says(page, f"{order.label} {OPEN}: done")
    assert order.says == {name: node_of(fleet)[name] for name in order.says}
    posted = f"POST /api/{order.path.format(OPEN)}"
    assert [posted] == [each for each in visited.asked if each.startswith("POST")]


@pytest.mark.parametrize(("label", "state"), [("Pause", "paused"), ("Resume", "armed")])
def test_an_order_of_a_node_is_done_when_the_node_says_so(fleet, visited, label, state):
    """Until then it is taken, and on its way."""
    node = "pump-1"
    if label == "Resume":
        fleet.house.asks("POST", f"/nodes/room/{node}/pause")
        reports(fleet, node, "paused")
    page = visited.page()
    page.goto(f"{fleet.origin}/node?group=room&node={node}")
    page.click(f"#to-node button:text-is('{label}')")
    page.click("dialog button.main")
    says(page, "taken, on its way")

    reports(fleet, node, state)
    says(page, f"{label} {node}: done")


def reports(fleet, node, state):
    """Have a node hear what was set, and report that it is so."""

    (desired,) = fleet.reports(node, state=state).desired_states
    fleet.reports(node, state=state, desired=desired.number)


def test_a_node_that_is_forgotten_is_gone(fleet, visited):
    """The dialog says how many readings leave the model, and that it cannot be undone."""
    page = opened(visited.page(), fleet.origin, "node")
    page.click("#to-node button:text-is('Forget')")
    said = page.inner_text("dialog")
    assert "400 readings of pump-2 leave the model" in said
    assert "This cannot be undone." in said

    page.click("dialog button.main")
    says(page, f"Forget {OPEN}: done")
    assert [] == node_of(fleet)["rows"]


@pytest.mark.parametrize(("word", "verdict"), [("normal", "accepted"), ("a fault", "rejected")])
def test_a_verdict_on_an_alarm_is_done_when_its_node_confirms_it(fleet, visited, word, verdict):
    page = opened(visited.page(), fleet.origin, "alarms")
    page.click(f"#open button:text-is('This is {word}')")
    page.click("dialog button.main")
    says(page, "taken, on its way")
    page.wait_for_selector(f"#open small:has-text('to be {word}')")

    (known,) = fleet.alarms(OPEN)
    fleet.reports(OPEN, replace(known, verdict=verdict))
    says(page, f"{OPEN}-3 is {word}: done")
    page.wait_for_selector(f"#open .badge.{verdict}")


def test_a_drill_is_ordered_where_its_node_is(fleet, visited):
    """The view of the model has what it found out, and points there."""
    page = opened(visited.page(), fleet.origin, "model")
    page.wait_for_selector("#drill:has-text('the view of a node has the order')")
    page.goto(f"{fleet.origin}/node?group=room&node={OVER}")
    page.click("#to-node button:text-is('Drill')")
    page.click("dialog button.main")

    says(page, "taken, on its way")
    assert f"POST /api/nodes/room/{OVER}/drill" in visited.asked


def test_an_order_that_is_refused_says_why_and_stays_open(fleet, visited):
    """The aggregator's words stand in the dialog."""
    page = opened(visited.page(), fleet.origin, "node")
    visited.expects("409 POST")
    page.route("**/api/nodes/**", lambda route: route.fulfill(status=409, body='{"error": "no"}'))
    page.click("#to-node button:text-is('Quarantine')")
    page.click("dialog button.main")

    page.wait_for_selector("dialog .problem:has-text('It was refused: no')")
    assert not node_of(fleet)["quarantined"]
