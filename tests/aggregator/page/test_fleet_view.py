"""The view `fleet`, in a browser: the same nodes as a list and as a tree."""

from __future__ import annotations

import json
import time

import pytest

from submerge_aggregator.page.fleet_tree import STATES
from support.paged import Paged

pytestmark = pytest.mark.slow


def row(under: str, node: str, kind: str = "client", state: str = "armed", **more) -> dict:
    known = {
        "open": int(state == "alarm"), "nodes": 1, "heard_s": time.time(), "learnt": 100,
        "withheld": 0, "lost": 0, "model": 1, "software": "submerge 1", "certified_until_s": 0.0,
        "wanted": "", "note": "",
    }  # fmt: skip
    return known | {"under": under, "node": node, "kind": kind, "state": state} | more


ROWS = [
    row("", "site-1", "aggregator"),
    row("", "site-2", "aggregator"),
    row("site-2", "room-a", "aggregator"),
    *(row("site-1", f"quiet-{i}") for i in range(3)),
    row("site-2/room-a", "loud", state="alarm"),
    *(row("site-2/room-a", f"many-{i:04d}") for i in range(600)),
    row("", "here", state="silent"),
]


@pytest.fixture(scope="module")
def paged(tmp_path_factory):
    with Paged(tmp_path_factory.mktemp("root")) as paged:
        yield paged


@pytest.fixture
def page(chromium, paged):
    """The view, with nodes that are made up."""
    page = chromium.new_page(viewport={"width": 375, "height": 740})
    page.context.add_cookies([paged.browsers_cookie])
    answer = {"group": "room", "at": time.time(), "rows": ROWS, "silent": [], "more": False}
    page.route("**/data/fleet/**", lambda route: route.fulfill(body=json.dumps(answer)))
    page.goto(f"{paged.origin}/fleet?group=room")
    page.wait_for_selector(f"#nodes [data-rows='{len(ROWS)}']")
    yield page
    page.close()


def summaries(page) -> list[str]:
    return page.locator("#tree summary .name").all_inner_texts()


def test_the_list_has_the_worst_first_and_sorts(page):
    """A head that was pressed keeps the focus, and says the order."""
    names = page.locator("#nodes tbody th")
    assert ["loud", "here"] == names.all_inner_texts()[:2]

    page.click("button[data-column=node]")
    page.wait_for_selector("th[aria-sort=ascending] button[data-column=node]")
    assert "here" == names.first.inner_text()
    assert "node" == page.evaluate("document.activeElement.dataset.column")


def test_the_branch_with_the_worst_comes_first(page):
    """A closed branch says how many nodes are below, and what is wrong with them."""
    page.click("#ways button[value=tree]")

    assert ["site-2", "site-1"] == summaries(page)
    first = page.locator("#tree summary").first.inner_text()
    assert "602 below" in first
    assert "alarm 1" in " ".join(first.split())
    assert 1 == page.locator("#tree tbody tr").count()  # what is closed is not built


def test_a_branch_opens_by_keys_and_shows_many_by_parts(page):
    page.click("#ways button[value=tree]")
    for name in ("site-2", "room-a"):
        page.focus(f"#tree summary:has-text('{name}')")
        page.keyboard.press("Enter")
    table = page.locator("#tree details details tbody tr")
    page.wait_for_selector("#tree details details tbody tr")
    assert "loud" == table.first.locator("th").inner_text()
    assert 250 == table.count()

    page.click("#tree button:has-text('Show 250 of 351 more')")
    assert 500 == table.count()


def test_a_search_opens_where_it_finds(page):
    """What does not match is left out, in the list as in the tree; none is said."""
    page.click("#ways button[value=tree]")
    page.fill("#search", "loud")
    page.wait_for_selector("#tree details details tbody tr")
    assert ["site-2", "room-a"] == summaries(page)
    assert ["loud"] == page.locator("#tree tbody th").all_inner_texts()

    page.fill("#search", "nothing is called so")
    assert "No node is like this." == page.inner_text("#tree")


def test_a_state_filters(page):
    """Its choice says how many nodes are in it, for each of the states that there are."""
    assert len(STATES) + 1 == page.locator("#state option").count()
    page.select_option("#state", "silent")
    page.wait_for_selector("#nodes [data-rows='1']")

    assert "silent (1)" == page.inner_text("#state option[value=silent]")
    assert ["here"] == page.locator("#nodes tbody th").all_inner_texts()


def test_a_phone_scrolls_the_table_and_not_the_page(page):
    assert 375 == page.evaluate("document.documentElement.scrollWidth")
    page.click("#ways button[value=tree]")
    page.click("#tree summary >> nth=0")
    assert 375 == page.evaluate("document.documentElement.scrollWidth")
