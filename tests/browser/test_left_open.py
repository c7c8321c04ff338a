"""A page that is left open: it shows what is new by itself, also after the root began again."""

from __future__ import annotations

import pytest

from submerge_aggregator.page import watched
from submerge_aggregator.page.fleet_tree import FRESH_S
from support.paged_fleet import OPEN, PagedFleet
from support.programs import free_port
from support.views import opened

pytestmark = pytest.mark.slow

OPENED = ("now", "fleet", "node", "alarms", "model", "health")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    """A test does not wait for the next look."""
    monkeypatch.setattr(watched, "LOOK_S", 0.05)


def root(folder, port, rounds):
    return PagedFleet(folder, rounds=rounds, address=f"127.0.0.1:{port}")


def test_what_is_new_is_shown_by_itself(fleet, visit):
    """An alarm ends, and a node comes: nobody loads the page again."""
    page = opened(visit().page(), fleet.origin, "now")
    assert f"1 open alarm: inflow of {OPEN}" == page.inner_text("#state")
    fleet.reports(OPEN)

    page.wait_for_selector("#state:has-text('No open alarms')")


def test_it_goes_on_after_a_restart_of_the_root(tmp_path, visit):
    """Each view says that nobody answers, asks on, and is right again; the session holds, too."""
    port, visited = free_port(), visit()
    # What an open page asks while nobody answers.
    visited.expects("net::ERR_", "503 GET /")
    with root(tmp_path, port, 3) as paged:
        visited.has_session(paged, "operate")
        pages = {view: opened(visited.page(), paged.origin, view) for view in OPENED}
        for page in pages.values():
            page.evaluate("window.mine = true")
    for page in pages.values():
        page.wait_for_selector("#link:has-text('does not answer')")

    with root(tmp_path, port, 0) as paged:
        paged.house.passes(3600.0)
        paged.reports("newcomer")
        paged.house.passes(FRESH_S)  # a page may have asked before it came
        for page in pages.values():
            page.wait_for_selector("#link:empty", state="attached")
            assert page.evaluate("window.mine")
        pages["fleet"].wait_for_selector("#nodes th:has-text('newcomer')")
        assert "night (operate)" == pages["fleet"].inner_text(".who span")
        visited.context.close()


def test_many_pages_of_a_browser_are_all_right(fleet, visit):
    """A browser has six connections to a host, and none of them is held."""
    visited = visit()
    pages = [opened(visited.page(), fleet.origin, "now") for _ in range(8)]
    fleet.reports(OPEN)

    for page in pages:
        page.wait_for_selector("#state:has-text('No open alarms')")


def test_a_page_whose_questions_are_refused_says_why(fleet, visit):
    """As behind a proxy's mistake: else it would stay blank."""
    visited = visit()
    visited.expects("Failed to load resource", "403", "Refused", "not from here")
    page = visited.page()
    page.route("**/api/", lambda route: route.fulfill(status=403, json={"error": "not from here"}))
    page.goto(f"{fleet.origin}/")

    page.wait_for_selector("#link:has-text('not from here')")
    visited.context.close()
