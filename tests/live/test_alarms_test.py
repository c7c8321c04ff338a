"""`submerge alarms test` with real destinations: what takes it, what does not, and why."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.broker import Mosquitto, free_port
from support.commands import shell

pytestmark = pytest.mark.slow

CLIENT = """
node = "pump-1"
parent = "root"
group = "pumps"
state = "{folder}/pump-1.state"
sensor.kind = "file"
sensor.paths = ["rows.csv"]
schema.channels = ["flow", "power"]
uplink.url = "mqtt://127.0.0.1:{broker}"
uplink.insecure = true
[alarms]
ndjson = "{folder}/alarms.lines"
{mqtt}
[[alarms.webhook]]
url = "http://127.0.0.1:{port}/s3cret"
[[alarms.webhook]]
url = "http://127.0.0.1:{closed}/s3cret"
"""

ROOT = """
node = "root"
groups.pumps.schema.channels = ["flow", "power"]
store = "{folder}/root.db"
listen.grpc.address = "127.0.0.1:50051"
listen.grpc.insecure = true
alarms.apprise.urls_file = "{folder}/urls"
"""


class Handler(BaseHTTPRequestHandler):
    """Takes each message, or refuses it."""

    def do_POST(self) -> None:
        """Write down what came."""
        self.server.came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    serving: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.came, serving.status = [], 200
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.fixture
def sent(tmp_path: Path, monkeypatch, capsys):
    """Send a test by a configuration; return the status, and what each destination said."""
    submerge = shell(monkeypatch, capsys)

    def run(text: str, **more: object) -> tuple[int, dict[str, str]]:
        path = tmp_path / "node.toml"
        path.write_text(text.format(folder=tmp_path, **more))
        ran = submerge("alarms", "test", "--config", path, "--json")
        if not ran.out:
            return ran.status, {ran.err: ""}
        found = json.loads(ran.out)["findings"]
        return ran.status, {each["message"]: each["state"] for each in found}

    return run


def test_each_destination_gets_a_start_and_an_end(sent, server, mosquitto: Mosquitto, tmp_path):
    """A file, a server and a broker take it. A closed port is reported with its error."""
    port, closed, broker = server.server_port, free_port(), mosquitto.port

    status, said = sent(CLIENT, port=port, closed=closed, broker=broker, mqtt="mqtt = true")

    taken = [message for message, state in said.items() if state == "ok"]
    (refused,) = [message for message, state in said.items() if state == "fails"]
    assert (1, 3) == (status, len(taken))
    where = f"127.0.0.1:{closed}"
    assert refused == f"json at http://{where} did not take it: nothing listens on {where}"
    assert "s3cret" not in repr(said)
    lines = [json.loads(line) for line in (tmp_path / "alarms.lines").read_text().splitlines()]
    for events in (lines, server.came):
        assert ["start", "end"] == [each["event"] for each in events]
        assert {("test-of-pump-1", "this-is-a-test")} == {
            (each["node"], *each["top"]) for each in events
        }
    assert not [*tmp_path.glob("pump-1.state*")]  # the program's own journal is as it was


def test_what_goes_to_standard_output_is_no_part_of_the_answer(sent, server):
    """That is one JSON object."""
    text = CLIENT.replace("{folder}/alarms.lines", "-")

    _, said = sent(text, port=server.server_port, closed=free_port(), broker=1, mqtt="")

    assert "ok" == said["standard output took it"]


def test_a_broker_that_is_away_is_named(sent, server):
    """Within its patience, and with the port."""
    away = free_port()

    _, said = sent(
        CLIENT, port=server.server_port, closed=free_port(), broker=away, mqtt="mqtt=true"
    )

    (why,) = [message for message in said if message.startswith("the broker")]
    assert why == f"the broker did not take it: nothing listens on 127.0.0.1:{away}"


def test_a_service_of_apprise_says_its_status(sent, server, tmp_path):
    """It is named by its line: its URL is a secret."""
    pytest.importorskip("apprise")
    urls = tmp_path / "urls"
    urls.write_text(f"json://127.0.0.1:{server.server_port}/s3cret\n")
    urls.chmod(0o600)

    assert (0, {"json, line 1 took it": "ok"}) == sent(ROOT)
    server.status = 404
    assert (1, {"json, line 1 did not take it: it answers 404": "fails"}) == sent(ROOT)


def test_without_a_destination_there_is_one_line(sent):
    """It says what could be one."""
    status, said = sent("\n".join(line for line in ROOT.splitlines() if "apprise" not in line))

    assert 2 == status
    assert "names no destination of alarms: expected [[alarms.webhook]]" in next(iter(said))
