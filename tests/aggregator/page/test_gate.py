"""What a browser has to show: its host, its origin, its session and the proof of it."""

from __future__ import annotations

import numpy as np
import pytest

from submerge_aggregator.operators.tokens import Token, digest_of, new_secret
from submerge_aggregator.page.sessions import Sessions
from support.paged import Paged

ROWS = np.random.default_rng(0).normal(size=(60, 6))
QUARANTINE = "/api/nodes/room/c/quarantine"


@pytest.fixture
def paged(tmp_path):
    with Paged(tmp_path) as paged:
        paged.house.hears("c", ROWS)
        yield paged


def quarantined(paged: Paged) -> bool:
    paged.logs_in("read", "sees")
    (row,) = paged.get("/api/nodes").json
    return row["quarantined"]


def test_whoever_has_a_session_may_look(paged):
    (row,) = paged.get("/data/fleet/room").json["rows"]

    assert ("c", "client", 60) == (row["node"], row["kind"], row["learnt"])
    assert 200 == paged.get("/").status


def test_other_users_of_this_machine_see_nothing(paged):
    """A person is led to the login, and from there to where they were going."""
    paged.leaves()

    assert 401 == paged.get("/data/fleet/room").status
    to_login = paged.get("/fleet?group=room")
    assert (303, "/login?back=%2Ffleet%3Fgroup%3Droom") == (
        to_login.status,
        to_login.headers["location"],
    )
    assert 200 == paged.get("/login").status


def test_a_link_begins_one_session(paged):
    """A person may follow it again, for whom it began one; it gives no order of an operator."""
    answer = paged.follows(paged.link)
    assert (200, b'<meta http-equiv="refresh" content="0;url=/">') == (answer.status, answer.body)
    assert 200 == paged.get("/data/fleet/room").status
    assert 403 == paged.post(QUARANTINE).status
    path = paged.link.removeprefix(paged.origin)
    assert answer.body == paged.get(path).body

    paged.leaves()
    assert 401 == paged.get(path).status
    assert "page link" == paged.recorded[0]["by"]
    assert "wrong_token" == paged.recorded[-1]["reason"]


def test_a_wrong_link_is_no_refusal(paged):
    """Pictures on any site can have a browser ask so: the audit log is not theirs to fill."""
    paged.leaves()
    before = len(paged.recorded)
    for number in range(20):
        assert 401 == paged.get(f"/login?once=guess-{number}", sec_fetch_site="cross-site").status
    assert before == len(paged.recorded)

    assert 200 == paged.follows(paged.link).status


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_a_link_waits_for_a_person(paged, method):
    """What looks whether a link leads anywhere does not use it up."""
    path = paged.link.removeprefix(paged.origin)
    paged.ask(method, path, b"", {"origin": paged.origin})

    assert 200 == paged.follows(paged.link).status


def test_an_order_needs_a_session(paged):
    """And the page says what to do."""
    paged.leaves()
    answer = paged.post(QUARANTINE)

    assert (401, "log in with an operator's token") == (answer.status, answer.json["error"])
    assert not quarantined(paged)


def test_a_session_of_scope_operate_gives_orders(paged):
    """The audit log has who gave them."""
    answer = paged.logs_in("operate")
    assert (303, "/fleet") == (answer.status, answer.headers["location"])

    assert 200 == paged.post(QUARANTINE).status
    assert [("login", "token night"), ("quarantine", "token night")] == [
        (each["verb"], each["by"]) for each in paged.recorded
    ]
    assert quarantined(paged)


def test_a_session_of_scope_read_gives_none(paged):
    paged.logs_in("read")
    answer = paged.post(QUARANTINE)

    assert (403, "this needs scope operate, yours is read") == (
        answer.status,
        answer.json["error"],
    )
    assert not quarantined(paged)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"origin": "http://evil.example"}, "from this page alone"),
        ({"origin": ""}, "from this page alone"),
        ({"origin": "null"}, "from this page alone"),
        ({"x_submerge_proof": ""}, "proof of its session"),
        ({"x_submerge_proof": "0" * 64}, "proof of its session"),
        ({"cookie": ""}, "log in"),
        ({"host": "evil.example"}, "got another name"),
    ],
)
def test_an_order_from_elsewhere_changes_nothing(paged, headers, why):
    """Another site's page has the cookie sent at most; never the origin and the proof."""
    paged.logs_in("operate")

    answer = paged.post(QUARANTINE, **headers)
    assert answer.status in (401, 403)
    assert why in answer.json["error"]
    assert not quarantined(paged)


def test_a_name_that_a_stranger_points_here_sees_nothing(paged):
    """DNS rebinding: the browser believes that this is the stranger's own site."""
    answer = paged.get("/data/fleet/room", host="evil.example")

    assert 403 == answer.status
    assert b"evil" not in answer.body


def test_another_sites_script_cannot_even_ask(paged):
    assert 403 == paged.get("/data/fleet/room", origin="http://evil.example").status
    assert 200 == paged.get("/data/fleet/room", origin=paged.origin).status


def test_a_configured_name_is_one_of_ours(tmp_path):
    with Paged(tmp_path, names=["fleet.example"]) as paged:
        assert 403 == paged.get("/data/fleet/room", host="other.example").status
        assert 200 == paged.get("/data/fleet/room", host="fleet.example").status


def test_a_session_ends_with_its_token(paged):
    paged.logs_in("operate")
    paged.revokes("night")

    assert 401 == paged.post(QUARANTINE).status
    assert not quarantined(paged)


def test_a_session_ends_by_itself_and_by_its_user(paged):
    paged.logs_in("operate")
    assert 200 == paged.post("/logout").status
    assert 401 == paged.post(QUARANTINE).status


def test_a_wrong_token_begins_no_session_and_ten_are_enough(paged):
    """The right one begins a session still: all who come by a proxy have one address."""
    statuses = [paged.enters("submerge_" + "x" * 43).status for _ in range(11)]
    assert [401] * 11 == statuses
    assert ["wrong_token"] * 10 + ["too_many"] == [each["reason"] for each in paged.recorded]

    right = paged.enters(paged.token("day", "read"))
    assert (303, True) == (right.status, "set-cookie" in right.headers)


def test_the_cookie_is_for_this_page_alone(paged):
    """No script reads it, and no other site has it sent."""
    cookie = paged.logs_in("read").headers["set-cookie"]

    assert f"submerge-{paged.port}=" in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize("names", [[], ["fleet.example"]])
def test_where_there_may_be_a_network_the_cookie_never_goes_in_the_clear(tmp_path, names):
    """On this machine alone there is no TLS, and some browsers would not keep such a cookie."""
    with Paged(tmp_path, names=names) as paged:
        cookie = paged.logs_in("read").headers["set-cookie"]

    assert bool(names) == ("Secure" in cookie.split("; "))


def test_a_link_leads_nowhere_else(paged):
    path = paged.link.removeprefix(paged.origin)
    answer = paged.get(f"{path}&back=//evil.example")
    assert b"evil" not in answer.body
    quoted = paged.get(f'{path}&back=/"><script>')
    assert b"<script>" not in quoted.body


@pytest.mark.parametrize("path", ["/", "/api/", "/data/fleet/room", "/static/page.css", "/nowhere"])
def test_every_answer_says_what_a_browser_may_do_with_it(paged, path):
    headers = paged.get(path).headers

    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert "nosniff" == headers["x-content-type-options"]
    assert "same-origin" == headers["referrer-policy"]
    assert "cache-control" in headers


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_a_login_leads_nowhere_else(paged, back):
    form = f"token={paged.token('day', 'read')}&back={back}".encode()
    answer = paged.ask("POST", "/login", form, {"origin": paged.origin})

    assert (303, "/") == (answer.status, answer.headers["location"])


def test_no_file_beside_the_scripts_can_be_read(paged):
    for path in ("/static/../gate.py", "/static/%2e%2e/gate.py", "/static/..%2fgate.py"):
        assert 404 == paged.get(path).status


@pytest.mark.parametrize("path", ["/data/fleet/room", "/api/recent/room?path=c", "/data/marks"])
def test_another_site_has_no_browser_ask_nodes(paged, path):
    """A picture there comes without an origin, and would cost a question to each aggregator."""
    for site in ("cross-site", "same-site"):
        assert 403 == paged.get(path, sec_fetch_site=site, sec_fetch_mode="no-cors").status
    # A link there may lead to a view, and the view's own scripts ask.
    assert 200 == paged.get("/fleet", sec_fetch_site="cross-site").status
    assert 200 == paged.get("/data/fleet/room", sec_fetch_site="same-origin").status


def test_a_link_ends_and_its_session_does():
    """The session outlives the process that began it; the link does not outlive an hour."""
    now = [0.0]
    sessions = Sessions(bytes(32), tuple, lambda: now[0], lambda: now[0])
    cookie = sessions.follow(sessions.link)
    assert cookie is not None
    assert "" == sessions.link
    assert sessions.follow("") is None

    again = Sessions(bytes(32), tuple, lambda: now[0], lambda: now[0])
    now[0] = 29 * 86400.0
    assert again.find(cookie) is not None
    assert again.follow(again.link) is None
    now[0] += 2 * 86400.0
    assert again.find(cookie) is None


@pytest.mark.parametrize(("scope", "hours"), [("read", 364 * 24), ("judge", 11), ("operate", 11)])
def test_a_session_lasts_a_shift_and_on_a_wall_a_year(scope, hours):
    """One that can order nothing is not asked for its token each morning."""
    now, secret = [0.0], new_secret()
    known = [Token("wall", scope, 0.0, None, digest_of(secret))]
    sessions = Sessions(bytes(32), lambda: known, lambda: now[0])
    cookie = sessions.begin(secret)
    assert cookie is not None

    now[0] = hours * 3600.0
    assert sessions.find(cookie) is not None
    now[0] += 2 * 86400.0
    assert sessions.find(cookie) is None
    now[0] = 60.0
    known.clear()
    assert sessions.find(cookie) is None
