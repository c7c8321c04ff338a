"""The view of `submerge demo --page` in a browser: by mouse and keyboard, on a phone, dark."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest

from submerge_aggregator.operators.tokens import new_secret
from submerge_lab.demo.page.books import Line
from submerge_lab.demo.page.state import DemoState, ShownLine, ShownProcess
from submerge_lab.demo.page.views import Orders, demo_views
from support.axe import violations
from support.paged import Paged

pytestmark = pytest.mark.slow

PHONE = {"width": 375, "height": 740}
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@dataclass
class Shown:
    """A demo that runs nowhere: what its view shows, and what it was asked to do."""

    root: str = "running"
    why: str = ""
    line: Line = field(default_factory=lambda: Line(fed=1234, counted=1200, in_clients=34))
    orders: Orders = field(default_factory=Orders)

    def state(self) -> DemoState:
        runs = self.root == "running"
        processes = (
            ShownProcess(
                *("root", "root", "", self.root, 41 if runs else None, 90.0),
                ("kill", "stop") if runs else ("start",),
                self.why,
            ),
            ShownProcess("client-1", "client", "root", "stopped", None, 95.0, ("start",)),
        )
        line = msgspec.convert(self.line, ShownLine, from_attributes=True)
        return DemoState(100.0, 3.5, processes, line)


@pytest.fixture
def shown():
    return Shown()


@pytest.fixture
def demo(tmp_path, shown):
    """A root's page with the demo's view; its token is in the root's list."""
    secret = new_secret()
    more = demo_views(shown.state, shown.orders, secret)
    with Paged(tmp_path, more=more) as paged:
        paged.accepts("demo", "operate", secret)
        yield paged


def opened(visit, demo, **how):
    page = visit(**how).page()
    page.goto(demo.origin + "/demo")
    page.wait_for_selector("#processes tr")
    page.wait_for_selector("#line[data-holds]")
    return page


def test_a_click_kills_and_another_starts(visit, demo, shown):
    """Without a login; each button says what it is about."""
    page = opened(visit, demo)
    page.get_by_role("button", name="kill root").click()
    page.get_by_text("kill root: sent", exact=True).wait_for()
    assert ("kill", "root") == shown.orders.get_nowait()

    shown.root = "killed"
    page.wait_for_selector("tr[data-state=killed]")
    assert "true" == page.get_by_role("button", name="kill root").get_attribute("aria-disabled")
    page.get_by_role("button", name="start root").click()
    page.get_by_text("start root: sent", exact=True).wait_for()
    assert ("start", "root") == shown.orders.get_nowait()


def test_by_keyboard_the_focus_stays_on_the_button(visit, demo, shown):
    """Also once it can do nothing more: it does not ask in vain."""
    page = opened(visit, demo)
    page.get_by_role("button", name="stop root").focus()
    page.keyboard.press("Enter")
    page.get_by_text("stop root: sent", exact=True).wait_for()
    shown.root = "stopped"
    page.wait_for_selector("tr[data-state=stopped]:first-child")
    page.keyboard.press("Enter")

    assert "stop root" == page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert ("stop", "root") == shown.orders.get_nowait()
    assert shown.orders.empty()


def test_the_line_says_whether_it_holds(visit, demo, shown):
    page = opened(visit, demo)
    holds = "fed 1,234 = counted 1,200 + under way 34 + declared lost 0: holds"
    assert holds == page.text_content("#line")

    shown.line = Line(fed=1234, counted=1201, in_clients=34, wrong=["one too many"])
    page.wait_for_selector("#line[data-holds=no]")
    assert page.text_content("#line").endswith("does not hold: off by -1")
    assert "one too many" == page.text_content("#wrong")


def test_what_a_process_wrote_last_is_text(visit, demo, shown):
    """Markup of a traceback does nothing."""
    shown.root, shown.why = "failed", HOSTILE
    page = opened(visit, demo)
    page.wait_for_selector("tr[data-state=failed]")

    assert HOSTILE in page.text_content("tr[data-state=failed]")
    assert 0 == page.locator("#processes img").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave_and_a_phone_does_not_scroll_sideways(visit, demo, scheme):
    page = opened(visit, demo, color_scheme=scheme, viewport=PHONE)

    assert [] == violations(page)
    assert 375 == page.evaluate("document.documentElement.scrollWidth")


def test_the_navigation_leads_there_and_away(visit, demo):
    page = opened(visit, demo)
    link = page.get_by_role("link", name="Demo", exact=True)
    assert "page" == link.get_attribute("aria-current")
    page.get_by_role("link", name="Fleet", exact=True).click()
    page.wait_for_url("**/fleet*")
    page.get_by_role("link", name="Demo", exact=True).click()

    page.wait_for_selector("#line[data-holds]")
