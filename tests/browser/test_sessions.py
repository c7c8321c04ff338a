"""Who may look, who may order, and how a session begins and ends, as a person sees it."""

from __future__ import annotations

import pytest

from submerge.protocol.permission import Permission
from submerge_client import clock
from support.certified import LOOPBACK, Certified
from support.paged_fleet import NODES, PagedFleet
from support.views import opened

pytestmark = pytest.mark.slow


@pytest.fixture
def elsewhere(tmp_path):
    """A page that other machines can reach: by TLS, and with a session alone."""
    kit = Certified(tmp_path).kit("root", LOOPBACK, permission=Permission("aggregator"))
    page = {"address": "0.0.0.0:0", "cert": str(kit), "key": str(kit)}
    with PagedFleet(tmp_path, **page) as fleet:
        yield fleet


def enters(page, secret):
    page.fill("#token", secret)
    page.click("main button[type=submit]")


def test_a_token_begins_a_session_and_a_button_ends_it(fleet, visit):
    """The person comes back to where they were, and reads who they are.

    What the page's script asks for while the session ends is refused.
    """
    visited = visit(stranger=True)
    visited.expects("401 GET /data/")
    page = visited.page()
    page.goto(f"{fleet.origin}/alarms?group=room")
    enters(page, fleet.token("anna", "judge"))
    page.wait_for_url("**/alarms?*")
    assert "anna (judge)" == page.inner_text(".who span")

    page.click("#logout")
    page.wait_for_selector("#token")
    assert ["login"] == [each["verb"] for each in fleet.recorded]


def test_a_wrong_token_is_said_and_opens_nothing(fleet, visit):
    visited = visit(stranger=True)
    visited.expects("401 POST /login")
    page = opened(visited.page(), fleet.origin, "login")
    enters(page, "submerge_" + "x" * 43)

    assert "not accepted" in page.inner_text("[role=alert]")
    assert [] == visited.context.cookies()


def test_on_another_address_looking_needs_a_session(elsewhere, visit):
    """The login leads back; no script can read the cookie, which goes out by TLS alone."""
    visited = visit(ignore_https_errors=True)
    page = visited.page()
    page.goto(f"{elsewhere.origin}/fleet?group=room")
    assert page.url.endswith("/login?back=%2Ffleet%3Fgroup%3Droom")
    assert NODES[0] not in page.content()

    enters(page, elsewhere.token("anna", "read"))
    page.wait_for_selector("#nodes tbody tr")
    assert page.url.endswith("/fleet?group=room")
    (cookie,) = visited.context.cookies()
    assert (True, True, "Strict") == (cookie["httpOnly"], cookie["secure"], cookie["sameSite"])
    assert "" == page.evaluate("document.cookie")


def test_a_page_is_led_to_the_login_when_its_token_is_revoked(elsewhere, visit):
    """It shows nothing that is new from then on; what its script still asks is refused."""
    visited = visit(ignore_https_errors=True)
    visited.has_session(elsewhere, "read")
    visited.expects("401 GET /")
    page = opened(visited.page(), elsewhere.origin, "fleet")
    elsewhere.revokes("night")
    page.evaluate("import('/static/shared/ask.js').then((m) => m.get(['api', ''])).catch(() => {})")
    page.wait_for_url("**/login?back=*")


@pytest.mark.parametrize("ends", ["its time is over", "its token is revoked"])
def test_an_order_of_a_session_that_is_over_is_not_given(fleet, visit, monkeypatch, ends):
    """The page leads to the login; back from there it says that nothing was ordered."""
    visited = visit()
    visited.has_session(fleet, "operate")
    visited.expects("401 POST /api/nodes/room/pump-2/quarantine")
    page = opened(visited.page(), fleet.origin, "node")
    if ends == "its time is over":
        now = clock.now()
        later = now._replace(wall=now.wall + 13 * 3600.0)
        monkeypatch.setattr(clock, "now", lambda: later)
    else:
        fleet.revokes("night")
    page.click("#to-node button:text-is('Quarantine')")
    page.click("dialog button.main")
    page.wait_for_url("**/login?back=*")

    monkeypatch.undo()
    enters(page, fleet.token("day", "operate"))
    page.wait_for_selector("#given [data-state=refused]")
    assert "not ordered" in page.inner_text("#given")
    assert not fleet.get("/api/nodes/room/pump-2").json["quarantined"]


def test_an_order_without_the_proof_of_its_session_is_refused(fleet, visit):
    """The dialog says so, and stays."""
    visited = visit()
    visited.has_session(fleet, "operate")
    visited.expects("403 POST /api/nodes/room/pump-2/quarantine")
    page = opened(visited.page(), fleet.origin, "node")
    page.evaluate("document.querySelector('meta[name=submerge-proof]').content = '0'.repeat(64)")
    page.click("#to-node button:text-is('Quarantine')")
    page.click("dialog button.main")

    page.wait_for_selector("dialog .problem:not(:empty)")
    assert "proof of its session" in page.inner_text("dialog .problem")
    assert not fleet.get("/api/nodes/room/pump-2").json["quarantined"]


@pytest.mark.parametrize("scope", [None, "read", "judge"])
def test_who_may_not_order_finds_grey_buttons_and_why(fleet, visit, scope):
    visited = visit()
    if scope is not None:
        visited.has_session(fleet, scope)
    page = opened(visited.page(), fleet.origin, "node")
    page.wait_for_selector("#to-node button")

    orders = page.locator("#to-node button")
    assert {True} == {each.is_disabled() for each in orders.all()}
    assert "scope operate" in page.inner_text("#why-operate")
    assert (scope == "judge") == page.locator("#alarms button").first.is_enabled()
