"""Operators over the network: real sockets, real certificates, and every refusal."""

from __future__ import annotations

import http.client
import socket
import ssl
import warnings
from contextlib import closing, suppress
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

import numpy as np
from cryptography import x509

from submerge import SubmergeError, UsageError
from submerge.protocol.permission import Permission
from submerge_aggregator.admission.control import AdmissionRules
from submerge_aggregator.admission.roster import RevokedList
from submerge_aggregator.http.serving import MOST_HEADERS
from submerge_aggregator.operators.scopes import ROUTES, SCOPES
from submerge_client.kit import read_kit
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import NoAnswer
from submerge_operate.backup import fetch
from support.certified import LOOPBACK, Certified
from support.networked import Networked
from support.patience import PATIENCE_S, until

ROWS = np.random.default_rng(0).normal(size=(60, 6))
QUARANTINE = ("POST", "/nodes/room/c/quarantine")
OPERATOR, READER = Permission("operator"), Permission("reader")


@pytest.fixture
def site(tmp_path):
    with Networked(tmp_path) as site:
        site.house.hears("c", ROWS)
        yield site


def quarantined(site: Networked) -> bool:
    (view,) = site.house.asks("GET", "/nodes").json
    return view["quarantined"]


def denied(site: Networked, reason: str) -> list[str]:
    """What is recorded of refusals of one kind: who."""
    return [each["by"] for each in site.recorded if each.get("reason") == reason]


# -- what is allowed


def test_a_token_of_scope_operate_gives_orders(site):
    """And the audit log has who, whence and what."""
    token = site.token("night", "operate")

    assert 200 == site.ask(*QUARANTINE, token_file=token)[0]
    assert quarantined(site)
    assert [("order", "token night", LOOPBACK, "quarantine", "c")] == [
        tuple(entry[key] for key in ("event", "by", "address", "verb", "node"))
        for entry in site.recorded
        if entry["event"] == "order"
    ]


def test_a_copy_of_the_store_comes_to_scope_operate_alone(site, tmp_path):
    """From another machine, too; a copy holds all that there is."""
    path, all_of_it, looks = (
        tmp_path / "a",
        site.token("all", "operate"),
        site.token("look", "read"),
    )
    with pytest.raises(SubmergeError, match="this needs scope operate, yours is read"):
        fetch(AdminClient(site.way(token_file=looks)), path, anyway=False)
    assert not path.exists()

    identity = fetch(AdminClient(site.way(token_file=all_of_it)), path, anyway=False)
    assert ("root", 60) == (identity.node, identity.groups["room"].learnt)


def test_an_operators_certificate_gives_orders(site):
    kit = site.kit("anna", OPERATOR)

    assert 200 == site.ask(*QUARANTINE, kit=kit)[0]
    assert ["operator anna"] == [entry["by"] for entry in site.recorded]


def test_the_socket_beside_the_store_is_open_as_before(site):
    assert 200 == site.house.asks(*QUARANTINE).status
    assert ["unknown"] == [entry["by"] for entry in site.recorded]


@pytest.mark.slow
def test_each_scope_gets_at_each_route_what_the_table_says(site):
    """By real tokens over TLS: 403 where the scope is too small, and never where it is not."""
    for scope in SCOPES:
        token = site.token(scope, scope)
        for (method, path), rule in ROUTES.items():
            names = {"group": "room", "node": "x", "id": "x-1", "verb": "no", "name": "x"}
            target = path.replace("{first:int}", "0").format(**names)
            status, said = site.ask(method, target, token_file=token)
            allowed = SCOPES.index(scope) >= SCOPES.index(rule.scope)
            assert allowed == (status != 403), (scope, method, path, said)
            assert allowed or said == {"error": f"this needs scope {rule.scope}, yours is {scope}"}


# -- what is refused


def test_without_either_all_is_refused(site):
    assert (401, {"error": "expected an operator's token or certificate, got none"}) == site.bare()
    assert ["unknown"] == denied(site, "no_credential")


@pytest.mark.parametrize("role", ["client", "aggregator", None])
def test_a_kit_of_another_role_is_refused(site, role):
    """A client's, an aggregator's, and one from before there were roles."""
    kit = site.kit("pump", None if role is None else Permission(role))
    for order in (QUARANTINE, ("GET", "/nodes")):
        status, said = site.ask(*order, kit=kit)
        assert 403 == status
        assert "which gives no orders" in said["error"]

    assert not quarantined(site)
    assert [f"{role or 'node'} pump"] * 2 == denied(site, "certificate")


def test_a_readers_kit_looks_and_gives_no_order(site):
    kit = site.kit("wall", READER)

    assert 200 == site.ask("GET", "/nodes", kit=kit)[0]
    assert (403, {"error": "this needs scope operate, yours is read"}) == site.ask(
        *QUARANTINE, kit=kit
    )
    assert not quarantined(site)
    assert ["reader wall"] == denied(site, "scope")


def test_an_operators_kit_for_one_group_reaches_no_other(site):
    kit = site.kit("anna", Permission("operator", ("hall",)))

    assert 403 == site.ask(*QUARANTINE, kit=kit)[0]
    assert 403 == site.ask("GET", "/nodes", kit=kit)[0]
    assert (200, []) == site.ask("GET", "/nodes?group=hall", kit=kit)
    assert 403 == site.ask("POST", "/bans/c/ban", kit=kit)[0]


def foreign(tmp_path: Path) -> Certified:
    folder = tmp_path / "foreign"
    folder.mkdir(exist_ok=True)
    return Certified(folder)


def client(site: Networked, **shown: Path) -> AdminClient:
    return AdminClient(site.way(**shown))


def test_an_operator_of_another_fleet_is_refused(site, tmp_path):
    """By TLS, before anything is read; and the kit's owner sees no server of theirs either."""
    kit = foreign(tmp_path).kit("anna", permission=OPERATOR)

    with pytest.raises(UsageError, match=r"does not accept the certificate of .*foreign/anna.kit"):
        client(site, kit=kit, ca=site.root).get("nodes")
    with pytest.raises(UsageError, match=r"that https://.* shows is not accepted: self-signed"):
        client(site, kit=kit).get("nodes")
    until(
        lambda: site.house.server.order_log.denials.counts["handshake"] >= 1,
        lambda: "a failed handshake is counted",
    )
    assert not quarantined(site)


def test_a_revoked_certificate_is_refused(site):
    """By its serial number, by its name, and on a connection that was open before."""
    kit = site.kit("anna", OPERATOR)
    serial = x509.load_pem_x509_certificate(read_kit(kit).cert).serial_number
    connection, _ = site.way(kit=kit).connect()
    with closing(connection):
        connection.request("GET", "/nodes")
        assert 200 == _status(connection)
        for revoked in (RevokedList(frozenset({serial})), RevokedList(nodes=frozenset({"anna"}))):
            site.house.server.worker.admission._rules = AdmissionRules(revoked=revoked)
            status, said = site.ask(*QUARANTINE, kit=kit)
            assert (403, True) == (status, "revoked" in said["error"])
        connection.request("GET", "/nodes")
        assert 403 == _status(connection)
    assert not quarantined(site)


def _status(connection: http.client.HTTPConnection) -> int:
    response = connection.getresponse()
    response.read()
    return response.status


def test_a_banned_operators_certificate_is_refused(site):
    kit = site.kit("anna", OPERATOR)
    assert 200 == site.house.asks("POST", "/bans/anna/ban").status

    status, said = site.ask(*QUARANTINE, kit=kit)
    assert (403, "the certificate is not accepted: an operator has banned it") == (
        status,
        said["error"],
    )


def test_a_certificate_that_is_over_is_refused(site):
    """Here before anything is sent; by the aggregator if it is sent all the same."""
    kit = site.kit("anna", OPERATOR, lasts_s=-60.0)

    with pytest.raises(UsageError, match=r"the certificate of anna in .*anna.kit ended on"):
        client(site, kit=kit).get("nodes")
    way = site.way(kit=kit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submerge_files.console.ways._check_time", lambda _: None)
        with pytest.raises(UsageError, match="does not accept the certificate of"):
            AdminClient(way).get("nodes")


def test_a_server_that_is_not_what_it_says_gets_no_token(site, tmp_path):
    """Another fleet's, another host's, one whose certificate is over: nothing is sent."""
    token = site.token("night", "operate")
    with pytest.raises(UsageError, match="is not accepted: self-signed certificate"):
        client(site, kit=foreign(tmp_path).kit("x"), token_file=token).get()
    named = site.way(token_file=token)
    port = site.place[1]
    with pytest.raises(UsageError, match="is not accepted: Hostname mismatch"):
        AdminClient(named._replace(url=f"https://localhost:{port}")).get()
    site.kit("root", Permission("aggregator"), lasts_s=-60.0)
    site.fleet.kit("root", LOOPBACK, permission=Permission("aggregator"), lasts_s=-60.0)
    with pytest.raises(UsageError, match="is not accepted: certificate has expired"):
        client(site, token_file=token).get()


def test_wrong_revoked_and_ended_tokens_get_the_same_answer(site, tmp_path):
    """And revoking takes effect while it runs."""
    good, short = site.token("night", "operate"), site.token("short", "operate", lasts_s=-1.0)
    strange = tmp_path / "strange.token"
    strange.write_text(good.read_text()[:-1] + ("A" if good.read_text()[-1] != "A" else "B"))
    strange.chmod(0o600)
    assert 200 == site.ask("GET", "/", token_file=good)[0]
    site.revoke("night")
    answers = [site.ask("GET", "/", token_file=each) for each in (good, short, strange)]

    assert [(401, {"error": "the token is not accepted: it is wrong, revoked, or over"})] * 3 == (
        answers
    )
    assert not [each for each in site.recorded if "submerge_" in str(each)]


def test_guesses_are_bounded(site):
    """After ten, wrong ones are refused in other words; the right token and the kit are let in."""
    good, kit = site.token("night", "operate"), site.kit("anna", OPERATOR)
    for _ in range(10):
        assert 401 == site.bare()[0]

    assert 429 == site.bare()[0]
    assert 200 == site.ask("GET", "/", token_file=good)[0]
    assert 200 == site.ask("GET", "/", kit=kit)[0]
    assert 1 == site.house.server.order_log.denials.counts["too_many"]


# -- shapes of requests

AUTHORIZED = b"Host: x\r\nAuthorization: Bearer %b\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * MOST_HEADERS + b"\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\n%bContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\n%bContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\n%bContent-Length: +1\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\n%bTransfer-Encoding: xchunked\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\n%bTransfer-Encoding: chunked, identity\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\n%bTransfer-Encoding : chunked\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n%bX\0: y\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n%bHost: y\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\r\n\r\n", b"400"),
    ],
    ids=[
        "headers too long",
        "two kinds of length",
        "two lengths",
        "a signed length",
        "another encoding",
        "two encodings",
        "a blank before the colon",
        "a zero byte",
        "two hosts",
        "no host",
        "no http",
    ],
)
def test_a_request_that_two_readers_may_read_differently_is_refused(site, head, status):
    """And ends the connection: what follows is not taken for another request."""
    secret = site.token("night", "operate").read_bytes()
    head = head.replace(b"%b", AUTHORIZED % secret)
    with site.raw() as connection:
        connection.sendall(head + b"GET /nodes HTTP/1.1\r\n" + AUTHORIZED % secret + b"\r\n")
        heard = b""
        with suppress(ConnectionError):
            while more := connection.recv(65536):
                heard += more

    assert heard.startswith(b"HTTP/1.1 " + status)
    assert 1 == heard.count(b"HTTP/1.1 ")


@pytest.mark.parametrize("path", ["/", "/nodes/", "/nodes", "//evil.example/"])
def test_a_hostile_host_header_does_nothing(site, path):
    """No redirect leads there, and no answer has its name."""
    secret = site.token("night", "operate").read_bytes()
    with site.raw() as connection:
        connection.sendall(
            b"GET %b HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-For: 10.9.9.9\r\n"
            b"Connection: close\r\nAuthorization: Bearer %b\r\n\r\n" % (path.encode(), secret)
        )
        heard = b""
        while more := connection.recv(65536):
            heard += more

    assert heard.startswith((b"HTTP/1.1 200", b"HTTP/1.1 404"))
    assert b"evil.example" not in heard.replace(path.encode(), b"")
    assert b"ocation" not in heard.partition(b"\r\n\r\n")[0]


@pytest.mark.parametrize("host", [b"x/?", b"x/nodes/room/c/resume?", b"x#", b"[", b"a b", b""])
def test_a_hostile_host_header_changes_no_order(site, host):
    """Neither which it is, nor which node it is about."""
    secret = site.token("night", "operate").read_bytes()
    with site.raw() as connection:
        connection.sendall(
            b"POST /nodes/room/c/pause HTTP/1.1\r\nHost: %b\r\nContent-Length: 0\r\n"
            b"Connection: close\r\nAuthorization: Bearer %b\r\n\r\n" % (host, secret)
        )
        heard = b""
        while more := connection.recv(65536):
            heard += more

    assert heard.startswith(b"HTTP/1.1 200")
    orders = [each for each in site.recorded if each["event"] == "order"]
    assert [("pause", "c")] == [(each["verb"], each["node"]) for each in orders]


def test_bytes_without_tls_are_counted_and_leave_nothing_open(site):
    """A port scan, and a handshake that never goes on."""
    with socket.create_connection(site.place) as visitor:
        visitor.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionError):
            assert b"HTTP" not in visitor.recv(100)

    def refused() -> list[str]:
        return [x["address"] for x in site.recorded if x.get("reason") == "handshake"]

    until(refused, lambda: "a failed handshake is recorded")
    assert [LOOPBACK] == refused()
    assert 1 == site.house.server.order_log.denials.counts["handshake"]


def test_a_handshake_that_does_not_go_on_is_ended_and_counted(site, monkeypatch):
    """A port scan that says nothing, and one that hangs up, which is no attempt."""
    monkeypatch.setattr("submerge_aggregator.http.serving.HANDSHAKE_S", 0.05)
    counts = site.house.server.order_log.denials
    with socket.create_connection(site.place):
        pass
    with socket.create_connection(site.place) as silent:
        silent.settimeout(PATIENCE_S)
        assert b"" == silent.recv(1)

    until(lambda: counts.counts["handshake"] >= 1, lambda: "it is counted")
    assert 1 == counts.counts["handshake"]


def test_an_earlier_tls_is_refused(site):
    context = ssl.create_default_context(cafile=site.root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection(site.place) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(plain, server_hostname=LOOPBACK)


def test_a_body_that_is_not_wanted_is_not_read(site):
    """The answer comes before it, and the connection ends."""
    with site.raw() as connection:
        connection.sendall(
            b"POST /histories/room HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
        )
        heard = b""
        with suppress(ConnectionError):
            while more := connection.recv(65536):
                heard += more

    assert heard.startswith(b"HTTP/1.1 401")


def test_handshakes_under_way_are_bounded_for_one_address(site, monkeypatch):
    """Further ones are closed at once, and those that have begun go on."""
    monkeypatch.setattr("submerge_aggregator.http.serving.MOST_HANDSHAKES_EACH", 2)
    waiting = [socket.create_connection(site.place) for _ in range(2)]
    try:

        def closed() -> bool:
            with socket.create_connection(site.place) as further, suppress(ConnectionError):
                further.settimeout(1.0)
                with suppress(TimeoutError):
                    return b"" == further.recv(1)
                return False
            return True

        until(closed, lambda: "a further one is closed")
    finally:
        for each in waiting:
            each.close()
    kit = site.kit("anna", OPERATOR)
    until(lambda: _reached(site, kit), lambda: "there is room again")


def _reached(site: Networked, kit: Path) -> bool:
    try:
        return 200 == site.ask("GET", "/", kit=kit)[0]
    except OSError:
        return False


def test_a_renewed_certificate_is_shown_to_the_next_connection(site):
    """Without a restart; a file that is wrong meanwhile changes nothing."""
    token = site.token("night", "operate")

    def serial() -> str:
        with site.raw() as connection:
            return connection.getpeercert()["serialNumber"]

    before = serial()
    good = site.root.read_bytes()
    site.root.write_bytes(good[:100])
    site.root.with_suffix(".old").write_bytes(good)
    assert 200 == site.ask("GET", "/", kit=site.root.with_suffix(".old"), token_file=token)[0]
    site.fleet.kit("root", LOOPBACK, permission=Permission("aggregator"))
    assert before != serial()


def test_nobody_there_is_one_line(site):
    way = site.way(kit=site.kit("anna", OPERATOR))
    with pytest.raises(NoAnswer, match=r"no aggregator answers at https://127.0.0.1:1: "):
        AdminClient(way._replace(url="https://127.0.0.1:1")).get()
    with pytest.raises(NoAnswer, match=r"no aggregator answers at https://nowhere.invalid"):
        AdminClient(way._replace(url="https://nowhere.invalid")).get()


def test_on_loopback_without_tls_tokens_alone_say_who_asks(tmp_path):
    """For a proxy on the same machine."""
    with Networked(tmp_path, insecure=True) as site:
        token = site.token("night", "read")
        assert 200 == site.ask("GET", "/nodes", token_file=token)[0]
        assert 403 == site.ask("POST", "/bans/c/ban", token_file=token)[0]
        assert 401 == site.ask("GET", "/nodes")[0]
