"""Apprise against a real server: by its own json:// service, that refuses, hangs and comes back."""

from __future__ import annotations

import io
import json
import logging
import socket
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.notify.notifier import apprise_name, apprise_sinks, make_notifier
from submerge_aggregator.notify.over_apprise import AppriseMessage, AppriseService, open_service
from submerge_aggregator.notify.urls import SecretUrl, read_urls
from submerge_client.alarms import Sinks
from submerge_client.alarms.journal import Journal
from submerge_client.config.tomlfile import decoded
from support.alarmed import alarm as alarm_below
from support.alarmed import message
from support.alarms import HISTORY, Log, alarm
from support.house import House
from support.programs import until

pytestmark = pytest.mark.slow

FIRST, SECOND = alarm(0).name, alarm(1).name
EXPECTED = [(FIRST, "start"), (FIRST, "end"), (SECOND, "start"), (SECOND, "end")]


class Handler(BaseHTTPRequestHandler):
    """Answers with the status that its server has next, and else 200."""

    def do_POST(self):
        """Write down what is taken."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.server.tries += 1
        if status == 200:
            self.server.came.append((self.path, json.loads(body)))
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b"s3cret words")

    def do_GET(self):
        """Nobody is to follow a redirect."""
        self.server.came.append((self.path, "GET"))
        self.send_error(404)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    """A server of HTTP on this machine."""
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.came, serving.answers, serving.tries = [], [], 0
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A second try comes soon."""
    monkeypatch.setattr("submerge_client.alarms.webhook.PATIENCE_S", 0.01)


def urls_at(server, folder: Path, *paths: str) -> Path:
    """Write the file of the services of one server; return its path."""
    lines = [f"json://me:s3cret@127.0.0.1:{server.server_port}/{path}\n" for path in paths]
    file = folder / "apprise.urls"
    file.write_text("".join(lines))
    file.chmod(0o600)
    return file


def sinks_at(server, folder: Path, *paths: str) -> Sinks:
    """The sinks of one group, as a process that begins has them."""
    urls = read_urls(urls_at(server, folder, *(paths or ("s3cret",))))
    names = [apprise_name(url, "pumps") for url in urls]
    journal = Journal(folder / "root.db.alarms", names)
    return Sinks(apprise_sinks(urls, "pumps", journal))


def events(server, path: str = "s3cret") -> list[tuple[str, str]]:
    """What was taken at a path: the name of the alarm, and what came of it."""
    taken = [reported for where, reported in server.came if where == f"/{path}"]
    kinds = {"warning": "start", "success": "end"}
    return [(reported["message"].split()[-1], kinds[reported["type"]]) for reported in taken]


def test_each_event_arrives_once_and_in_order(server, tmp_path):
    """Each state is told twice, and each by a process of its own that begins in the middle."""
    for state in HISTORY:
        sinks = sinks_at(server, tmp_path)
        sinks.update(state)
        sinks.update(state)
        sinks.close()

    assert EXPECTED == events(server)
    assert "pump-1: alarm" == server.came[0][1]["title"]


def test_what_is_refused_is_told_when_the_server_is_well_again(server, tmp_path):
    """By a process that begins meanwhile, too: the end comes after its start, both once."""
    log = Log()
    sinks = sinks_at(server, tmp_path)
    sinks.update(())
    server.answers = [500, 503, 404, 302] + [500] * 1000
    sinks.update(HISTORY[1])
    until(lambda: server.tries >= 6)
    sinks.close()
    server.answers.clear()
    after = sinks_at(server, tmp_path)
    after.update(HISTORY[2])
    until(lambda: len(server.came) >= 2)
    after.close()

    assert EXPECTED[:2] == events(server)
    whys = [line["why"] for line in log.lines if "why" in line]
    assert [f"it answers {code}" for code in (500, 503, 404, 302, 500)] == whys[:5]
    assert {"json, line 1"} == {line["service"] for line in log.lines if "service" in line}


def test_a_service_that_fails_holds_no_other_up(server, tmp_path):
    """And what the others took, they are not told again."""
    broken = socket.create_server(("127.0.0.1", 0))
    port = broken.getsockname()[1]
    broken.close()
    file = urls_at(server, tmp_path, "a", "b")
    file.write_text(f"json://127.0.0.1:{port}/s3cret\n{file.read_text()}")
    urls = read_urls(file)
    journal = Journal(tmp_path / "journal", [apprise_name(url, "pumps") for url in urls])
    sinks = Sinks(apprise_sinks(urls, "pumps", journal))
    for state in HISTORY[:3]:
        sinks.update(state)
    until(lambda: len(server.came) >= 4)
    sinks.close()

    assert EXPECTED[:2] == events(server, "a")
    assert EXPECTED[:2] == events(server, "b")


def test_nothing_secret_is_shown(server, tmp_path, monkeypatch, capfd):
    """Not in our log, not in any other library's, not on the terminal, nor in an exception."""
    log, other = Log(), io.StringIO()
    handler = logging.StreamHandler(other)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [handler])
    monkeypatch.setattr(root, "level", logging.DEBUG)
    file = urls_at(server, tmp_path, "s3cret")
    server.answers = [500, 302, 404]
    sinks = sinks_at(server, tmp_path)
    sinks.update(())
    sinks.update(HISTORY[1])
    until(lambda: len(server.came) == 1)
    sinks.close()
    unreachable = AppriseService(open_service(SecretUrl("json://127.0.0.1:1/s3cret", 1)))
    why = unreachable(AppriseMessage("key", "title", "body", "warning")).why
    raised = []
    for text in ("json://h.example/s3cret", "slack://s3cret", "other://s3cret"):
        with pytest.raises(UsageError) as error:
            open_service(SecretUrl(text, 1))
        raised += traceback.format_exception(error.value)
    shown = capfd.readouterr()
    journal = (tmp_path / "root.db.alarms").read_text()

    assert "s3cret" in file.read_text()
    assert 4 == server.tries
    for each in (str(log.lines), other.getvalue(), shown.out, shown.err, why, journal, *raised):
        assert "s3cret" not in each


def test_a_service_that_never_answers_is_left():
    """After the limit; the thread of the sink is free to say so."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = SecretUrl(f"json://127.0.0.1:{silent.getsockname()[1]}/x", 1)
        service = AppriseService(open_service(url), limit_s=0.1)
        why = service(AppriseMessage("key", "title", "body", "warning")).why

    assert "it has not answered in 0.1 s" == why


# A whole aggregator


def config_of(folder: Path, file: Path) -> AggregatorConfig:
    return decoded(
        {
            "node": "root",
            "store": str(folder / "root.db"),
            "listen": {"grpc": {"insecure": True}},
            "groups": {"room": {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}},
            "alarms": {"apprise": {"urls_file": str(file)}},
        },
        AggregatorConfig,
    )


def test_an_aggregator_tells_what_all_below_it_tell(server, tmp_path):
    """Also what came while no process was there to tell it: the journal is on disk."""
    config = config_of(tmp_path, urls_at(server, tmp_path, "s3cret"))
    with House(tmp_path, notifier=lambda time: make_notifier(config, time)) as house:
        message(house, "c", alarm_below())
        until(lambda: len(server.came) == 1)
        seq = house.seq
    with House(tmp_path) as house:
        house.seq = seq
        message(house, "c", alarm_below("c", 0x90), alarm_below(ended=60.0))
        seq = house.seq
    with House(tmp_path, notifier=lambda time: make_notifier(config, time)) as house:
        house.seq = seq
        until(lambda: len(server.came) == 3)

    assert [("c-1", "start"), ("c-1", "end"), ("c-90", "start")] == events(server)


def test_an_aggregator_does_not_start_with_a_file_that_others_can_read(server, tmp_path):
    """It says what to do, and nothing of what is in it."""
    file = urls_at(server, tmp_path, "s3cret")
    file.chmod(0o644)
    with pytest.raises(UsageError) as error:
        make_notifier(config_of(tmp_path, file), lambda: None)

    assert f"got mode 0644; chmod 600 {file}" in str(error.value)
    assert "s3cret" not in str(error.value)
