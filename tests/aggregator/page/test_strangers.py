"""Who is on this machine, and what is shown without a session: every route, every way to ask."""

from __future__ import annotations

import socket

import pytest

from submerge_aggregator.operators.scopes import ROUTES
from submerge_aggregator.page.gate import Hosts, is_loopback
from submerge_aggregator.page.opening import page_app
from support.paged import Paged
from support.patience import PATIENCE_S

FLEET = "/data/fleet/room"

WITHOUT_SESSION = {
    *("/", "/fleet", "/node", "/alarms", "/model", "/health", "/login", "/static/{path:path}"),
    *("/data/fleet/{group}", "/data/node/{group}", "/data/scores/{group}", "/data/model/{group}"),
    *("/data/marks", "/api/", "/api/health", "/api/nodes", "/api/nodes/{group}/{node}"),
    *("/api/drills/{group}", "/api/alarms", "/api/alarms/mark", "/api/alarm-status", "/api/bans"),
    *("/api/histories/{group}", "/api/tree/{group}", "/api/scores/{group}"),
    *("/api/past-alarms/{group}", "/api/versions/{group}", "/api/recent/{group}"),
    "/api/values/{group}",
}
"""All that is shown on 127.0.0.1: what the views draw, and what they are drawn with."""

LOG_IN = (303, 401, 403)
"""Answers to what is refused; a person is led to the login."""

NEEDS_NONE_ANYWHERE = {"/login", "/static/{path:path}"}


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
def test_each_route_without_a_session(paged, proxied, method, route):
    """On 127.0.0.1 the listed ones are shown, behind a proxy none but the login is."""
    request = f"{method} {path_of(route)} HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 0"
    is_shown = method == "GET" and route in WITHOUT_SESSION
    is_open = method == "GET" and route in NEEDS_NONE_ANYWHERE

    assert is_shown == (status(paged, request) not in LOG_IN)
    assert is_open == (status(proxied, request) not in LOG_IN)


@pytest.mark.parametrize("path", ["/api/model/room", "/api/model/room?whole=1", "/api/jobs"])
def test_a_whole_model_and_answers_of_jobs_need_a_session_of_any_scope(tmp_path, path):
    with Paged(tmp_path) as paged:
        assert 401 == paged.get(path).status
        paged.logs_in("read")
        assert paged.get(path).status not in (401, 403)


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


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_name_of_loopback_is_one_however_it_is_written(host):
    assert is_loopback(host)
    assert Hosts.of((), ()).knows(host)


@pytest.mark.parametrize("host", STRANGE)
def test_what_only_looks_like_loopback_is_a_stranger(host):
    assert not is_loopback(host)
    assert not Hosts.of(("machine",), ("fleet.example",)).knows(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_another_address_may_ask_and_has_to_log_in(paged, host):
    """No stranger can have a name lead to an address, but a proxy can listen on it."""
    assert not is_loopback(host)
    assert 401 == status(paged, f"GET {FLEET} HTTP/1.1\nHost: {host}")


@pytest.mark.parametrize(
    "request_",
    [
        f"GET {FLEET} HTTP/1.1",
        f"GET {FLEET} HTTP/1.0",
        f"GET {FLEET} HTTP/1.0\nHost: 127.0.0.1",
        f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1\nHost: 127.0.0.1",
        f"GET {FLEET} HTTP/1.1\nHost: [::1]evil.com",
        f"GET http://evil.com{FLEET} HTTP/1.1\nHost: 127.0.0.1",
        f"GET http://127.0.0.1{FLEET} HTTP/1.1\nHost: 127.0.0.1",
        f"GET {FLEET} HTTP/1.1\nHost: {socket.gethostname()}",
        *(
            f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1\n{header}"
            for header in (
                "Forwarded: for=127.0.0.1",
                "Via: 1.1 proxy",
                "X-Forwarded-For: 127.0.0.1",
                "x-forwarded-host: fleet.example",
                "X-Forwarded-Proto: https",
                "X-Forwarded:",
                "X-Real-IP: 127.0.0.1",
                "X-Original-Host: fleet.example",
                "X-Client-IP: 1.2.3.4",
                "X-Cluster-Client-IP: 1.2.3.4",
                "X-Scheme: https",
                "X-ProxyUser-Ip: 1.2.3.4",
                "X-Envoy-External-Address: 1.2.3.4",
                "X-Amzn-Trace-Id: Root=1",
                "True-Client-IP: 1.2.3.4",
                "CF-Connecting-IP: 1.2.3.4",
                "CF-Ray: 1",
                "CDN-Loop: cloudflare",
                "Fastly-Client-IP: 1.2.3.4",
                "Fly-Client-IP: 1.2.3.4",
                "Client-IP: 1.2.3.4",
                "Front-End-Https: on",
                "Origin: http://evil.com",
                "Origin: null",
            )
        ),
    ],
)
def test_a_request_that_a_proxy_or_a_stranger_may_have_sent_sees_nothing(paged, request_):
    """The peer is this machine in all of them: a proxy on it is, too."""
    assert refused(paged, request_)
    assert refused(paged, request_.replace(FLEET, "/api/nodes"))
    assert 200 == status(paged, f"GET {FLEET} HTTP/1.1\nHost: 127.0.0.1")


def test_the_login_behind_a_proxy_does_not_say_where_the_store_is(paged, proxied):
    assert str(paged.house.store).encode() in paged.get("/login").body
    assert str(proxied.house.store).encode() not in proxied.get("/login").body
