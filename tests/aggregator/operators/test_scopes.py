"""What each route of the admin API needs: one table, and no route beside it."""

from __future__ import annotations

import pytest

from submerge_aggregator.http import admin
from submerge_aggregator.operators.scopes import ROUTES, SCOPES, UNKNOWN, ApiCall, objection
from support.house import House


@pytest.fixture(scope="module")
def routes(tmp_path_factory):
    """Every method and path of the admin API, but for HEAD, which is as GET."""
    with House(tmp_path_factory.mktemp("house")) as house:
        return {
            (method, route.path)
            for route in admin.routes(house.server)
            for method in route.methods - {"HEAD"}
        }


def test_each_route_has_a_scope_and_each_scope_a_route(routes):
    """A new route needs a line in the table, and an old line goes with its route."""
    assert routes == {*ROUTES}


def test_what_only_looks_needs_read_and_what_changes_needs_more(routes):
    """A copy of the store holds all that there is: to fetch one is no look. Settings name hosts."""
    looks = {
        (method, path)
        for method, path in routes
        if method == "GET" and not path.startswith(("/backup", "/settings"))
    }
    assert {"read"} == {ROUTES[each].scope for each in looks}
    assert {"operate"} == {rule.scope for (_, path), rule in ROUTES.items() if "backup" in path}
    assert {"judge", "operate"} == {ROUTES[each].scope for each in routes if each[0] == "POST"}


def test_verdicts_on_alarms_and_settings_alone_need_judge():
    judged = [path for (_, path), rule in ROUTES.items() if rule.scope == "judge"]

    assert [
        "/settings/{group}",
        "/alarms/{group}/{id}/{verb}",
        "/nodes/{group}/{node}/missed",
    ] == judged


def call(method: str, path: str, **more: str) -> ApiCall:
    query = {key: more.pop(key) for key in ("ban",) if key in more}
    return ApiCall(method, path, {"group": "room", "node": "c"} | more, query)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("route", [*ROUTES, ("GET", ""), ("POST", "/new"), ("DELETE", "/nodes")])
def test_each_scope_against_each_route(scope, route):
    """A scope allows what those before it allow; a route that is not known needs the last."""
    needed = ROUTES.get(route, UNKNOWN).scope
    allowed = SCOPES.index(scope) >= SCOPES.index(needed)

    assert allowed == (objection(scope, (), call(*route)) is None)


def test_head_is_as_get():
    assert objection("read", (), call("HEAD", "/nodes")) is None


NODE = "/nodes/{group}/{node}/{verb}"


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (call("GET", "/"), True),
        (call("GET", "/model/{group}"), True),
        (call("GET", "/model/{group}", group="hall"), False),
        (ApiCall("GET", "/nodes", {}, {"group": "room"}), True),
        (ApiCall("GET", "/nodes", {}, {"group": "hall"}), False),
        (ApiCall("GET", "/nodes", {}, {}), False),
        (call("GET", "/bans"), False),
        (call("POST", "/bans/{node}/{verb}", verb="ban"), False),
        (call("POST", NODE, verb="quarantine"), True),
        (call("POST", NODE, verb="release"), False),
        (call("POST", NODE, verb="forget"), True),
        (call("POST", NODE, verb="forget", ban="1"), False),
        (call("POST", "/histories/{group}", group="hall"), False),
        (call("POST", "/new"), False),
    ],
)
def test_a_certificate_for_a_group_reaches_no_other(asked, allowed):
    """Nor what is about all groups, as a ban is, and the release that ends one."""
    assert allowed == (objection("operate", ("room",), asked) is None)
