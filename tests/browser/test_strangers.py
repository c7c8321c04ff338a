"""Pages of other sites, in the browser of somebody who may give every order: they get nothing."""

from __future__ import annotations

import pytest

from support.chromium import STRANGER
from support.paged_fleet import NODES
from support.stranger import Stranger

pytestmark = pytest.mark.slow

NOTHING = {"nothing", "", "closed"}


@pytest.fixture(params=[STRANGER, "127.0.0.1"])
def visited(fleet, visit, request):
    """A stranger's page; at the second address it is the same site to a browser, on another port.

    So the cookie is sent from there.
    """
    visited = visit()
    visited.has_session(fleet, "operate")
    with Stranger(request.param, fleet.origin) as stranger:
        page = visited.page()
        page.goto(stranger.url)
        visited.page_of_stranger = page
        yield visited
    # That it is refused is what is wanted; which words a browser has for it is its own matter.
    visited.expects("console: ", "40", f"asks another host: http://{STRANGER}")


def quarantined(fleet):
    return fleet.get(f"/api/nodes/room/{NODES[0]}").json["quarantined"]


@pytest.mark.parametrize("way", ["read", "marks", "script", "frame"])
def test_it_reads_nothing(visited, way):
    """Neither the fleet, nor what changes, nor a script, nor the page in a frame."""
    said = visited.page_of_stranger.evaluate(f"tries.{way}()")

    assert NODES[0] not in said
    assert said in NOTHING


@pytest.mark.parametrize("way", ["blind", "asked"])
def test_it_orders_nothing(visited, fleet, way):
    said = visited.page_of_stranger.evaluate(f"tries.{way}()")

    assert said in NOTHING
    assert not quarantined(fleet)


def test_a_form_orders_nothing(visited, fleet):
    """The browser goes there, and shows the refusal."""
    page = visited.page_of_stranger
    page.evaluate("tries.form()")
    page.wait_for_url(f"{fleet.origin}/**")

    assert "from this page alone" in page.inner_text("body")
    assert not quarantined(fleet)


def test_a_name_that_a_stranger_points_here_shows_nothing(fleet, visit):
    """DNS rebinding: the browser takes this machine for the stranger's site."""
    visited = visit()
    visited.has_session(fleet, "operate")
    visited.expects("403 GET /", "asks another host", "Cross-Origin-Opener-Policy")
    page = visited.page()
    page.goto(f"http://{STRANGER}:{fleet.port}/")

    assert "got another name" in page.inner_text("body")
    assert STRANGER not in page.inner_text("body")
