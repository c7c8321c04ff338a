"""Webhooks against real servers: that refuse, that say nothing, that send elsewhere, with TLS."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("cryptography")

from submerge import UsageError
from submerge_client.alarms import webhook as posting
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.webhook import HttpPost, Request, Webhook, WebhookDelivery, payload_of
from submerge_client.config.alarms import WebhookConfig
from submerge_operate.pki.authority import Authority
from support.alarms import HISTORY, Log, alarm
from support.patience import until

pytestmark = pytest.mark.slow

DAY = timedelta(days=1)


class Handler(BaseHTTPRequestHandler):
    """Answers what its server has next, and else 200."""

    def do_POST(self):
        """Write down what came."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((self.path, json.loads(body), dict(self.headers)))
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"s3cret words")

    def do_GET(self):
        """Nobody is to ask for anything."""
        self.server.came.append(("GET", self.path, dict(self.headers)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    """A server of HTTP."""
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.came, serving.answers = [], []
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


def post(server=None, *, url=None, **settings):
    """What comes of one POST, to the server's own url if no other is given."""
    url = url or f"http://127.0.0.1:{server.server_port}/s3cret"
    return HttpPost(WebhookConfig(url=url, **settings))(Request(url, b"{}"))


def hooked(server, folder, *, wall=time.time, **settings):
    """A webhook, as a client has it."""
    url = f"http://127.0.0.1:{server.server_port}{settings.pop('path', '/s3cret')}"
    hook = WebhookConfig(url=url, **settings)
    journal = Journal(folder / "c.state.alarms", ("hook",))
    delivery = WebhookDelivery(
        payload_of(hook, "pumps"),
        HttpPost(hook),
        journal,
        name="hook",
        where="http://127.0.0.1",
        wall=wall,
    )
    return Webhook(delivery, "hook")


def test_each_event_arrives_once_and_in_order(server, tmp_path):
    """Also by a process that begins anew in the middle."""
    for state in HISTORY:
        hook = hooked(server, tmp_path)
        hook.update(state)
        hook.update(state)
        hook.close(10.0)

    first, second = alarm(0).name, alarm(1).name
    expected = [(first, "start"), (first, "end"), (second, "start"), (second, "end")]
    assert expected == [(reported["id"], reported["event"]) for _, reported, _ in server.came]
    assert {"/s3cret"} == {path for path, _, _ in server.came}


def test_what_is_refused_is_told_again(server, tmp_path, monkeypatch):
    """Until the server takes it; no word of the server's, and no path, is in the log."""
    monkeypatch.setattr("submerge_client.alarms.webhook.PATIENCE_S", 0.01)
    log = Log()
    server.answers = [(500, {}), (503, {"Retry-After": "0"}), (404, {})]
    hook = hooked(server, tmp_path)
    hook.update(())
    hook.update(HISTORY[1])
    until(lambda: len(server.came) == 4)
    hook.close(10.0)

    assert 1 == len({reported["id"] for _, reported, _ in server.came})
    whys = ["it answers 500", "it answers 503", "it answers 404: is the url right?"]
    assert whys == [line["why"] for line in log.lines if "why" in line]
    assert "alarms reach the webhook again" == log.said()[-1]
    assert "s3cret" not in str(log.lines)


def test_alertmanager_hears_at_its_own_path(server, tmp_path):
    """One list of one alert, as JSON."""
    hook = hooked(server, tmp_path, path="/am", shape="alertmanager")
    hook.update(())
    hook.update(HISTORY[1])
    hook.close(10.0)
    ((path, (reported,), headers),) = server.came

    assert ("/am/api/v2/alerts", "application/json") == (path, headers["Content-Type"])
    assert "SubmergeAlarm" == reported["labels"]["alertname"]


def test_alertmanager_hears_times_of_its_own_clock(server, tmp_path):
    """Its answer says how late it is; a node that thinks it is 2001 tells it again."""
    old = alarm(0, began=1e9 - 60, number=1, peaked=1e9)
    hook = hooked(server, tmp_path, shape="alertmanager", wall=lambda: 1e9)
    hook.update(())
    hook.update((old,))
    hook.close(10.0)
    years = [reported["startsAt"][:4] for _, (reported,), _ in server.came]

    assert ["2001", str(datetime.now(UTC).year)] == years


def test_ntfy_hears_at_its_root_with_a_token(server, tmp_path):
    """The topic is inside."""
    (tmp_path / "token").write_text("tk_abc\n")
    hook = hooked(server, tmp_path, shape="ntfy", token_file=tmp_path / "token")
    hook.update(())
    hook.update(HISTORY[1])
    hook.close(10.0)
    ((path, reported, headers),) = server.came

    assert ("/", "s3cret", "Bearer tk_abc") == (path, reported["topic"], headers["Authorization"])
    assert "temp [°C] 12%" in reported["message"]


def test_a_token_is_read_each_time(server, tmp_path):
    """It is renewed while the program runs; one that is gone meanwhile is said, not raised."""
    path = tmp_path / "token"
    path.write_text("one")
    url = f"http://127.0.0.1:{server.server_port}/x"
    poster = HttpPost(WebhookConfig(url=url, token_file=path))
    request = Request(url, b"{}")
    poster(request)
    path.write_text("two")
    poster(request)
    path.unlink()
    gone = poster(request)

    assert ["Bearer one", "Bearer two"] == [each["Authorization"] for _, _, each in server.came]
    assert f"token_file must be a file to read, got {path}: No such file or directory" == gone.why


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server, tmp_path, code):
    """The token is for one host; and a POST would become a GET. It is said where it went."""
    (tmp_path / "token").write_text("tk_abc")
    port = server.server_port
    moved = f"http://me:s3cret@127.0.0.1:{port}/s3cret-elsewhere"
    server.answers = [(code, {"Location": moved})]
    answer = post(server, token_file=tmp_path / "token")

    expected = f"it answers {code}: it has moved to http://127.0.0.1:{port}"
    assert f"{expected}; put its new url into the settings" == answer.why
    assert 1 == len(server.came)


@pytest.mark.parametrize("where", ["", "/here", "http://[", "\xff"])
def test_a_redirect_to_nowhere_is_one_all_the_same(server, where):
    """Whatever a server says."""
    server.answers = [(301, {"Location": where})]

    assert post(server).why.startswith("it answers 301: it has moved")


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [("120", 120, 120), ("999999", 3600, 3600), ("soon", 0, 0), ("-5", 0, 0), ("", 0, 0)],
)
def test_a_pause_is_as_long_as_the_server_asks(server, asked, least, most):
    """Up to an hour."""
    server.answers = [(429, {"Retry-After": asked})]

    assert least <= post(server).pause_s <= most


def test_a_pause_may_be_until_a_time(server):
    """As HTTP lets a server say it."""
    later = datetime.fromtimestamp(time.time() + 600, UTC)
    server.answers = [(503, {"Retry-After": later.strftime("%a, %d %b %Y %H:%M:%S GMT")})]

    assert 500 < post(server).pause_s <= 600


def test_a_server_that_says_nothing_is_left(monkeypatch):
    """After a while, and the thread is free again."""
    monkeypatch.setattr(posting, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        answer = post(url=f"http://127.0.0.1:{port}/x")

    assert f"127.0.0.1:{port} does not answer" == answer.why


def test_a_port_that_nobody_listens_on_is_said():
    """By its number."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    assert f"nothing listens on localhost:{port}" == post(url=f"http://localhost:{port}/x").why


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "the answer of 127.0.0.1:{} is not HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "the answer of 127.0.0.1:{} is not HTTP"),
        (b"220 mail\r\n", "the answer of 127.0.0.1:{} is not HTTP"),
    ],
)
def test_what_is_not_http_is_said(said, message):
    """Whatever listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def speak():
            way, _ = server.accept()
            with way:
                way.recv(1 << 16)
                way.sendall(said)
                way.shutdown(socket.SHUT_WR)
                # Closed with bytes unread, it would reset what it has just said.
                while way.recv(1 << 16):
                    pass

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        answer = post(url=f"http://127.0.0.1:{port}/x")
        thread.join()

    assert message.format(port) == answer.why


# -- TLS ---------------------------------------------------------------------------------------


@pytest.fixture
def secure(server, tmp_path):
    """The same with TLS, by an authority of its own; its url, and the authority's file."""
    authority = Authority.create("f", now=datetime.now(UTC), lasts=DAY)
    made = authority.certify("hooks", ("127.0.0.1",), now=datetime.now(UTC), lasts=DAY)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    (tmp_path / "hooks.pem").write_bytes(made.certificate + made.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "hooks.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return f"https://127.0.0.1:{server.server_port}/x", tmp_path / "ca.pem"


def test_a_server_that_proves_its_name_is_believed(server, secure):
    """By the authority that the settings name."""
    url, ca = secure

    assert "" == post(server, url=url, ca=ca).why
    assert 1 == len(server.came)


def test_nobody_else_is(server, secure):
    """Not by the system's authorities, not under another name; nothing is sent."""
    url, ca = secure
    stranger = post(server, url=url).why
    alias = post(server, url=url.replace("127.0.0.1", "localhost"), ca=ca).why

    assert "is not trusted: " in stranger
    assert "is not trusted: " in alias
    assert [] == server.came


def test_another_authority_is_taken_while_the_program_runs(secure, tmp_path):
    """As certificates are renewed everywhere else; one that is gone is said, not raised."""
    url, ca = secure
    trusted = ca.read_bytes()
    other = Authority.create("f", now=datetime.now(UTC), lasts=DAY)
    ca.write_bytes(other.pem)
    poster = HttpPost(WebhookConfig(url=url, ca=ca))
    before = poster(Request(url, b"{}")).why
    (tmp_path / "new.pem").write_bytes(trusted)
    (tmp_path / "new.pem").replace(ca)
    after = poster(Request(url, b"{}")).why
    ca.unlink()
    gone = poster(Request(url, b"{}")).why

    assert "is not trusted: " in before
    assert "" == after
    assert f"expected ca in PEM form, got {ca}: No such file or directory" == gone


def test_a_file_that_is_no_authority_is_refused_at_once(tmp_path):
    """Not first when the alarm comes."""
    with pytest.raises(UsageError, match="expected ca in PEM form"):
        HttpPost(WebhookConfig(url="https://x.example/", ca=tmp_path / "none.pem"))
