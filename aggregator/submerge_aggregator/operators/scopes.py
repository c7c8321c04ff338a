"""What each route of the admin API needs: the one table of it.

A scope allows what those before it allow, too: read, judge, operate. A route that is not in the
table needs `operate`, and every group. One that names no group is about all of them (`reach`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

Scope = Literal["read", "judge", "operate"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""It looks; it says of alarms what they are; it gives every order."""

Reach = Literal["nothing", "path", "query", "all"]
"""The groups that a route is about: none; one in its path; one in its query, or all; all."""


class RouteRule(NamedTuple):
    scope: Scope
    reach: Reach


ROUTES: dict[tuple[str, str], RouteRule] = {
    ("GET", "/"): RouteRule("read", "nothing"),
    ("GET", "/health"): RouteRule("read", "nothing"),
    ("GET", "/nodes"): RouteRule("read", "query"),
    ("GET", "/nodes/{group}/{node}"): RouteRule("read", "path"),
    ("GET", "/model/{group}"): RouteRule("read", "path"),
    ("GET", "/drills/{group}"): RouteRule("read", "path"),
    ("GET", "/unlike/{group}"): RouteRule("read", "path"),
    ("GET", "/alarms"): RouteRule("read", "query"),
    ("GET", "/alarms/mark"): RouteRule("read", "query"),
    ("GET", "/alarm-status"): RouteRule("read", "query"),
    ("GET", "/what-if/{group}"): RouteRule("read", "path"),
    ("GET", "/bans"): RouteRule("read", "all"),
    ("GET", "/histories/{group}"): RouteRule("read", "path"),
    ("GET", "/tree/{group}"): RouteRule("read", "path"),
    ("GET", "/scores/{group}"): RouteRule("read", "path"),
    ("GET", "/past-alarms/{group}"): RouteRule("read", "path"),
    ("GET", "/versions/{group}"): RouteRule("read", "path"),
    ("GET", "/settings/{group}"): RouteRule("judge", "path"),
    ("GET", "/recent/{group}"): RouteRule("read", "path"),
    ("GET", "/values/{group}"): RouteRule("read", "path"),
    ("POST", "/alarms/{group}/{id}/{verb}"): RouteRule("judge", "path"),
    ("POST", "/nodes/{group}/{node}/missed"): RouteRule("judge", "path"),
    ("POST", "/nodes/{group}/{node}/pause"): RouteRule("operate", "path"),
    ("POST", "/nodes/{group}/{node}/resume"): RouteRule("operate", "path"),
    ("POST", "/nodes/{group}/{node}/drill"): RouteRule("operate", "path"),
    ("POST", "/nodes/{group}/{node}/certificate"): RouteRule("operate", "path"),
    ("POST", "/nodes/{group}/{node}/{verb}"): RouteRule("operate", "path"),
    ("POST", "/bans/{node}/{verb}"): RouteRule("operate", "all"),
    ("POST", "/backup"): RouteRule("operate", "all"),
    ("GET", "/backup/{name}"): RouteRule("operate", "all"),
    ("GET", "/backup/{name}/{first:int}"): RouteRule("operate", "all"),
    ("POST", "/backup/{name}/end"): RouteRule("operate", "all"),
    ("POST", "/histories/{group}"): RouteRule("operate", "path"),
    ("POST", "/histories/{group}/{name}/forget"): RouteRule("operate", "path"),
    ("GET", "/jobs"): RouteRule("read", "query"),
    ("POST", "/jobs/{group}"): RouteRule("operate", "path"),
    ("GET", "/jobs/{group}/{id}"): RouteRule("read", "path"),
    ("GET", "/jobs/{group}/{id}/answer/{first:int}"): RouteRule("read", "path"),
    ("POST", "/jobs/{group}/{id}/cancel"): RouteRule("operate", "path"),
    ("POST", "/landmarks/{group}"): RouteRule("operate", "path"),
}

UNKNOWN = RouteRule("operate", "all")


class ApiCall(NamedTuple):
    """A request, as far as it decides who may make it."""

    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]


def rule_of(call: ApiCall) -> RouteRule:
    method = "GET" if call.method == "HEAD" else call.method
    rule = ROUTES.get((method, call.path), UNKNOWN)
    # A release ends a ban in every group, and `forget` may ban.
    if call.names.get("verb") == "release" or call.query.get("ban", "0") != "0":
        return rule._replace(reach="all")
    return rule


def objection(scope: Scope, groups: Sequence[str], call: ApiCall) -> str | None:
    """Return why a scope, in these groups (none: all), allows no such request, or None."""
    rule = rule_of(call)
    if SCOPES.index(scope) < SCOPES.index(rule.scope):
        return f"this needs scope {rule.scope}, yours is {scope}"
    if not groups or rule.reach == "nothing":
        return None
    where = {"path": call.names, "query": call.query, "all": {}}[rule.reach]
    named = where.get("group")
    if named in groups:
        return None
    mine = ", ".join(groups)
    if named is None:
        return f"this is about every group, and you may ask about {mine}: name one of these"
    return f"you may ask about {mine}, not about the group that is named"
