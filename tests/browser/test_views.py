"""Each view, as a person finds it: drawn, readable in the dark and on a phone, and in order."""

from __future__ import annotations

import pytest

from submerge.protocol.summaries import Method
from support.alarmed import alarm
from support.axe import violations
from support.guarded import Guarded
from support.paged_fleet import AT, NODES, OPEN, SCHEMA, PagedFleet, rows_of
from support.views import VIEWS, opened

pytestmark = pytest.mark.slow

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def shown(chromium, tmp_path_factory):
    """Return a view's page; each is opened once, for all tests here only look."""
    pages = {}
    with (
        PagedFleet(tmp_path_factory.mktemp("root")) as fleet,
        Guarded(chromium, at=AT) as visited,
    ):
        visited.has_session(fleet, "read")
        visited.expects("404 GET /nowhere")

        def page_of(view, scheme="light", size=DESK):
            page = pages.get(view) or opened(visited.page(), fleet.origin, view)
            pages[view] = page
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            return page

        yield page_of


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(shown, view, scheme):
    """Contrast in both colour schemes among what it looks for."""
    assert [] == violations(shown(view, scheme))


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_scrolls_no_page_sideways(shown, view):
    page = shown(view, size=PHONE)

    assert 375 == page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_one_title_and_says_where_one_is(shown, view):
    """The heading is the first thing in it, and the navigation marks the view."""
    page = shown(view)
    assert 1 == page.locator("main h1").count()
    assert "submerge" in page.title()

    marked = page.locator("nav [aria-current=page]").all_inner_texts()
    here = {"node": "Fleet", "tree": "Fleet", "login": None, "unknown": None}
    expected = here.get(view, view.capitalize())
    assert ([] if expected is None else [expected]) == marked


@pytest.fixture(scope="module")
def night(chromium, tmp_path_factory):
    """Return a page of a fleet with an incident of three machines, and one that is unlike them."""
    with (
        PagedFleet(tmp_path_factory.mktemp("root")) as fleet,
        Guarded(chromium, at=AT) as visited,
    ):
        visited.has_session(fleet, "operate")
        for i, node in enumerate(NODES[2:5]):
            fleet.reports(node, alarm(node, 10 + i, top=(("pressure", 1.0),)), seed=i)
        rows = rows_of(7)
        rows[:, 2] = rows[:, 2].mean() + 0.5 * (rows[:, 2] - rows[:, 2].mean())
        fleet.house.hears("odd-1", rows, schema=SCHEMA)
        yield fleet, visited.page()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_an_incident_and_the_odd_one_out_are_for_everybody(night, scheme, width):
    """On a phone and a desk, in both colour schemes, and by keys alone."""
    fleet, page = night
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    for view, what in (
        ("now", "#state:has-text('1 incident: pump-3 first')"),
        ("alarms", "#open th:has-text('incident-pump-3')"),
        ("fleet", "#odd p:has-text('odd-1: outflow follows')"),
    ):
        opened(page, fleet.origin, view).wait_for_selector(what)

        assert [] == violations(page)
        assert width == page.evaluate("document.documentElement.scrollWidth")
    odd = page.locator("#odd a").first
    odd.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/node?*node=odd-1*")


def test_a_node_says_how_it_learns_and_by_what_it_is_judged(fleet, visit):
    """With its own words of the algorithm; what an earlier version does not say is left out."""
    page = opened(visit().page(), fleet.origin, "node")
    assert not page.locator("dt:has-text('Judged by')").count()

    own = Method("SAPCA, alpha 0.01, beta 0.1", 7, 0.75, 1.5)
    fleet.house.hears(OPEN, rows_of(1), schema=SCHEMA, method=own)
    page.reload()

    page.wait_for_selector("dd:has-text('its own rows to 75 %, and the fleet')")
    page.wait_for_selector("dd:has-text('by 1.5 nats a row; 0 is a machine like it')")
    page.wait_for_selector("dd:has-text('SAPCA, alpha 0.01, beta 0.1, 7 directions')")


def test_ranks_that_nodes_choose_are_drawn_over_time(fleet, visit):
    """A line for the model and one for each node with a rule, from the versions that have them."""
    for rank in (3, 5):
        own = Method("SAPCA, alpha 0.01, beta 0.1", rank)
        fleet.house.hears(OPEN, rows_of(1), schema=SCHEMA, method=own)
        fleet.house.passes(400.0)
    page = opened(visit().page(), fleet.origin, "model")

    page.wait_for_selector("#ranks figcaption:has-text('Rank of the model, and ranks that nodes')")
    assert ["model", OPEN] == page.locator("#ranks li bdi").all_inner_texts()
    page.locator("#ranks summary").click()
    page.wait_for_selector("#ranks tbody tr")
    newest = page.locator("#ranks tbody tr").first.locator("td").all_inner_texts()
    assert "5" == newest[-1]
