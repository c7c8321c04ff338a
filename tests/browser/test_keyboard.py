"""By keys alone: to each part of a view, through the fleet, and to an order and back."""

from __future__ import annotations

import pytest

from support.paged_fleet import NODES, OPEN
from support.views import opened

pytestmark = pytest.mark.slow


@pytest.fixture
def page(fleet, visit):
    """The fleet, for somebody who may give every order."""
    visited = visit()
    visited.has_session(fleet, "operate")
    return opened(visited.page(), fleet.origin, "fleet")


def focused(page):
    """Return what has the focus, in a word: its text, its label or its tag."""
    return page.evaluate(
        "(() => { const e = document.activeElement;"
        " return (e.innerText || e.labels?.[0]?.innerText || e.ariaLabel || e.tagName).trim(); })()"
    )


def presses(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def tabs_to(page, text, key="Tab"):
    """Press Tab until something has the focus."""
    seen = []
    for _ in range(60):
        page.keyboard.press(key)
        seen.append(focused(page))
        if seen[-1] == text:
            return
    raise AssertionError(f"no {text!r} among {seen}")


def test_the_first_key_offers_to_skip_to_the_content(page):
    """It can be seen while it has the focus, and leads past the navigation."""
    presses(page, "Tab")
    assert "Skip to the content" == focused(page)
    assert page.locator(".skip").bounding_box()["y"] >= 0

    presses(page, "Enter")
    assert "main" == page.evaluate("document.activeElement.id")


def test_tab_goes_through_the_page_as_it_is_read(page):
    """Whatever can be used has a place in it that is seen: each has an outline."""
    order, outlined = [], set()
    for _ in range(14):
        presses(page, "Tab")
        order.append(focused(page))
        outlined.add(
            page.evaluate(
                "(() => { const s = getComputedStyle(document.activeElement);"
                " return s.outlineStyle !== 'none' || s.boxShadow !== 'none'; })()"
            )
        )
    names = [each.partition("\n")[0] for each in order]
    assert ["Skip to the content", "submerge", "Now", "Fleet", "Alarms", "Model", "Health"] == (
        names[:7]
    )
    assert "Log out" in names
    assert {True} == outlined


def test_a_column_is_sorted_and_a_node_is_opened(page):
    """The head that was pressed keeps the focus; the links of the rows follow."""
    tabs_to(page, "node")
    presses(page, "Enter")
    page.wait_for_selector("th[aria-sort=ascending] button[data-column=node]")
    assert "node" == focused(page)

    presses(page, "Space")
    page.wait_for_selector("th[aria-sort=descending] button[data-column=node]")
    tabs_to(page, NODES[-1])
    presses(page, "Enter")
    page.wait_for_url("**/node?**")
    page.wait_for_selector(f"h1:has-text('{NODES[-1]}')")


def test_an_order_is_given_and_another_is_not(page, fleet):
    """Escape closes the dialog, whose first key is the harmless one; the focus goes back."""
    page.goto(f"{fleet.origin}/node?group=room&node={OPEN}")
    page.wait_for_selector("#to-node button:text-is('Ban')")
    tabs_to(page, "Quarantine")
    presses(page, "Enter")
    page.wait_for_selector("dialog[open]")
    assert "Cancel" == focused(page)
    presses(page, "Escape")
    page.wait_for_selector("dialog", state="detached")
    assert "Quarantine" == focused(page)
    assert not fleet.get(f"/api/nodes/room/{OPEN}").json["quarantined"]

    presses(page, "Enter", "Tab")
    assert "Quarantine" == focused(page)
    presses(page, "Enter")
    page.wait_for_selector("#given p:has-text('done')")
    assert "Release" == focused(page)


def test_tab_stays_in_an_open_dialog(page, fleet):
    page.goto(f"{fleet.origin}/node?group=room&node={OPEN}")
    page.click("#to-node button:text-is('Ban')")
    inside = set()
    for _ in range(5):
        presses(page, "Tab")
        inside.add(
            page.evaluate(
                "document.activeElement === document.body"
                " || document.activeElement.closest('dialog') !== null"
            )
        )
    assert {True} == inside
