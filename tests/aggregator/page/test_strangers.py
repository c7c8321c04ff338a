"""What is shown without a session, and to whom with one: every route, every way to ask."""

from __future__ import annotations

import socket

import pytest

from submerge_aggregator.operators.scopes import ROUTES
from submerge_aggregator.page.gate import Hosts
from submerge_aggregator.page.opening import page_app
from support.paged import Paged
from support.patience import PATIENCE_S

FLEET = "/data/fleet/room"

LOG_IN = (303, 401, 403)
"""Answers to what is refused; a person is led to the login."""

NEEDS_NONE = {"/login", "/static/{path:path}"}


@pytest.fixture(scope="module")
def paged(tmp_path_factory):
    with Paged(tmp_path_factory.mktemp("paged")) as paged:
        yield paged


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """A page behind a proxy, whatever that does with the name under which browsers come."""
    with Paged(tmp_path_factory.mktemp("proxied"), names=["fleet.example"]) as paged:
        yield paged


def routes() -> list[tuple[str, str]]:
    """Every method and path of the page and of the admin API behind it."""
    none: object = None
    of_page = [
        (method, route.path)
        for route in page_app(none, none, Files(), none).routes
        for method in sorted(route.methods or {"GET"})
        if method != "HEAD"
    ]
    return [*of_page, *((method, f"/api{path}") for method, path in sorted(ROUTES))]


class Files:
    """Stands for the files of the page, which only name their route here."""

    async def answer(self) -> None: ...


def path_of(route: str) -> str:
    for name, value in {"group": "room", "node": "c", "verb": "ban", "id": "c-1"}.items():
        route = route.replace(f"{{{name}}}", value)
    return (
        route.replace("{path:path}", "page.css").replace("{first:int}", "0").replace("{name}", "n")
    )


def status(paged: Paged, request: str) -> int:
    """Return the status of the answer to a request, given line by line."""
    with socket.create_connection(("127.0.0.1", paged.port), PATIENCE_S) as connection:
        lines = [*request.split("\n"), "Connection: close", "", ""]
        connection.sendall("\r\n".join(lines).encode("latin-1"))
        return int(connection.recv(64).split()[1])


def refused(paged: Paged, request: str) -> bool:
    """Return whether a request is refused, or led to the login."""
    return status(paged, request) in (400, *LOG_IN)


@pytest.mark.parametrize(("method", "route"), routes())
def test_each_route_without_a_session(paged, method, route):
    request = f"{method} {path_of(route)} HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 0"
    is_open = method == "GET" and route in NEEDS_NONE

    assert is_open == (status(paged, request) not in LOG_IN)


LOOPBACK = ("127.0.0.1", "127.0.0.1:8473", "localhost", "LOCALHOST:8473", "[::1]", "[::1]:80")

STRANGE = (
    *("127.0.0.1.evil.com", "127.0.0.1.", "localhost.", "localhost.evil.com", "evil.com", "127.1"),
    *("[::1]evil.com", "[::1].evil.com", "[::1]:80evil.com", "[::1", "::1", "[]", "[::1]@evil.com"),
    *("evil.com@127.0.0.1", "127.0.0.1@evil.com", "127.0.0.1:80@evil.com", "localhost:evil.com"),
    *("localhost:80:80", "localhost/", "localhost/evil", "127.0.0.1?a", "127.0.0.1#a", "", " "),
    *("127.0.0.1 evil.com", "127.0.0.1,evil.com", "local\thost", "0x7f.0.0.1", "2130706433"),
    *("\N{FULLWIDTH DIGIT ONE}27.0.0.1", "localhost:99999", "localhost:-1", "http://localhost"),
)

ELSEWHERE = ("0.0.0.0:80", "10.0.0.7:8473", "[2001:db8::1]", "93.184.216.34", "128.0.0.1")


@pytest.mark.parametrize("host", [*LOOPBACK, *ELSEWHERE])
def test_an_address_is_known_however_it_is_written(host):
    """No stranger can have a name lead to an address."""
    assert Hosts.of((), ()).knows(host)


@pytest.mark.parametrize("host", STRANGE)
def test_what_only_looks_like_an_address_is_a_stranger(host):
    assert not Hosts.of(("machine",), ("fleet.example",)).knows(host)


@pytest.mark.parametrize(
    "request_",
    [
        f"GET {FLEET} HTTP/1.1",
        f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1\nHost: 127.0.0.1",
        f"GET {FLEET} HTTP/1.1\nHost: [::1]evil.com",
        f"GET http://evil.com{FLEET} HTTP/1.1\nHost: 127.0.0.1",
        f"GET http://127.0.0.1{FLEET} HTTP/1.1\nHost: 127.0.0.1",
        f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1\nOrigin: http://evil.com",
        f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1\nOrigin: null",
    ],
)
def test_a_request_that_a_stranger_may_have_sent_sees_nothing(paged, request_):
    """Even with the session of somebody who may look: a browser sends that along."""
    session = f"\nCookie: {paged.cookie}"
    assert refused(paged, request_ + session)
    assert refused(paged, request_.replace(FLEET, "/api/nodes") + session)
    assert 200 == status(paged, f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1{session}")


def test_the_login_behind_a_proxy_does_not_say_where_the_store_is(paged, proxied):
    assert str(paged.house.store).encode() in paged.get("/login").body
    assert str(proxied.house.store).encode() not in proxied.get("/login").body
