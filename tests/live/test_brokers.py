"""Brokers behind the ports of the Web, and brokers whose passwords end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from submerge_aggregator.downlink.over_mqtt import MqttDownlink
from submerge_client.uplink.broker import Broker
from submerge_client.uplink.over_mqtt import MqttUplink
from submerge_client.uplink.tls import Tls
from support.certified import LOOPBACK, Certified
from support.kills.configs import OverMqtt, aggregator, client
from support.patience import until
from support.programs import SUBMERGE, Programs, free_port
from support.token_gate import TokenGate, printing, token
from support.ways import Ear, Host

pytestmark = pytest.mark.slow

LIMIT = 300_000
NAMES: dict[str, Any] = {"fleet": "f", "parent": "a", "limit": LIMIT, "first_wait_s": 0.02}
CHANNELS = ("a", "b", "c")


@pytest.fixture(params=["ws", "wss"])
def web(mosquitto, tmp_path, request) -> Broker:
    """A broker that speaks inside WebSockets, too."""
    mosquitto.stop()
    port = free_port()
    settings, tls = [f"listener {port}", "protocol websockets"], None
    if request.param == "wss":
        fleet = Certified(tmp_path)
        kit = fleet.kit("broker", LOOPBACK)
        settings += [f"{name} {kit}" for name in ("certfile", "keyfile")]
        tls = Tls(kit=fleet.kit("c"), alpn="mqtt")
    mosquitto.start(*settings)
    return Broker(mosquitto.host, port, tls=tls, path="/mqtt")


def test_messages_of_every_size_go_both_ways(web):
    """A WebSocket frame has a length of one byte, of two, or of eight."""
    host = Host(MqttDownlink(web, **NAMES, note=lambda *_, **__: None))
    ear = Ear()
    up = MqttUplink(web, node="c", groups=["g"], **NAMES)
    with closing(host), closing(up):
        up.open(ear)
        ear.opened()
        for size in (1, 125, 126, 65_536):
            data = os.urandom(size)
            host.publish("g", data)
            ear.came(data)
            up.send("report", "g", data)
            host.letter(data)


def test_a_broker_that_comes_back_is_met_again(web, mosquitto):
    ear = Ear()
    up = MqttUplink(web, node="c", groups=["g"], **NAMES)
    with closing(up):
        up.open(ear)
        ear.opened()
        mosquitto.stop()
        ear.parted()
        _, *settings = (mosquitto.folder / "mosquitto.conf").read_text().splitlines()
        mosquitto.start(*settings)
        ear.opened()


class Tokens(NamedTuple):
    """port : of a gate; lasts_s : of each token"""

    port: int
    lasts_s: float

    def up(self, parent: str) -> str:
        command = json.dumps(printing(self.lasts_s))
        login = f'username = "fleet"\npassword_command = {command}\n'
        return f'url = "mqtt://127.0.0.1:{self.port}"\ninsecure = true\n{login}'

    def listens(self, node: str) -> str:
        return f"[listen.mqtt]\n{self.up(node)}"


@pytest.mark.parametrize(
    ("lasts_s", "seconds"), [(4.0, 16.0), pytest.param(20.0, 300.0, marks=pytest.mark.soak)]
)
def test_tokens_are_renewed_before_they_end_and_every_reading_counts(mosquitto, lasts_s, seconds):
    """No connection is cut, none is refused, and nothing is logged: it is no trouble."""
    with Programs() as programs, TokenGate(mosquitto.port) as gate:
        way, folder = Tokens(gate.port, lasts_s), programs.folder
        text = aggregator("root", None, way, CHANNELS, folder / "root.db")
        config = programs.file("root.toml", text)
        root = programs.start("aggregator", "--config", config)
        root.until("serving")
        clients = [
            programs.start(
                "client",
                "--config",
                programs.file(f"{name}.toml", client(name, "root", way, CHANNELS, folder / name)),
            )
            for name in ("c", "d")
        ]
        fed, ends = 0, time.monotonic() + seconds
        while time.monotonic() < ends:
            for each in clients:
                each.write(json.dumps([fed % 7, fed % 5, fed % 3]).encode() + b"\n")
            fed += 1
            time.sleep(0.02)

        def counted() -> dict[str, int]:
            said = subprocess.run(
                [SUBMERGE, "nodes", "list", "--json", "--config", str(config)],
                capture_output=True,
                check=True,
            ).stdout
            known = {each["node"]: each["rows"] for each in json.loads(said)}
            return {node: sum(row["learnt"] for row in rows) for node, rows in known.items()}

        until(lambda: counted() == {"c": fed, "d": fed}, lambda: f"{counted()}, fed {fed}")
        assert gate.let_in > 3 * (seconds // lasts_s)
        assert (0, 0) == (gate.cut, gate.refused)
        warned = {line.what for each in clients for line in each.lines if line.level == "warning"}
        assert warned <= {"removed setting still used"}


def test_a_connection_stands_while_a_command_fails(mosquitto, tmp_path):
    """The token service is away for a moment: what is asked for again comes before the end."""
    calls = tmp_path / "calls"
    program = tmp_path / "program.py"
    program.write_text(
        f"import pathlib, subprocess, sys; calls = pathlib.Path({str(calls)!r});"
        "n = len(calls.read_text()) if calls.exists() else 0; calls.write_text('x' * (n + 1));"
        f"sys.exit(3) if n == 1 else subprocess.run({printing(8.0)!r})"
    )
    with TokenGate(mosquitto.port) as gate:
        ear = Ear()
        command = (sys.executable, str(program))
        at = Broker(gate.host, gate.port, "fleet", command=command)
        up = MqttUplink(at, node="c", groups=["g"], **NAMES)
        with closing(up):
            up.open(ear)
            ear.opened()
            ear.opened()
        assert (3, 2, 0) == (len(calls.read_text()), gate.let_in, gate.cut)


WITHOUT_GRPC = (
    *(sys.executable, "-c"),
    "import sys; sys.modules['grpc'] = None; from submerge_operate.cli import main; main()",
)


def test_a_client_needs_no_grpc(mosquitto):
    """Where it is not built for a machine: a row goes to its parent through a broker."""
    with Programs() as programs:
        way, folder = OverMqtt(mosquitto.port), programs.folder
        text = aggregator("root", None, way, CHANNELS, folder / "root.db")
        programs.start("aggregator", "--config", programs.file("root.toml", text)).until("serving")
        config = programs.file("c.toml", client("c", "root", way, CHANNELS, folder / "c"))
        node = programs.start("client", "--config", config, command=WITHOUT_GRPC)
        node.write(b"[1, 2, 3]\n")
        assert 1 == node.until("acknowledged", readings=1).facts["readings"]


def test_a_token_that_has_ended_lets_nobody_in(mosquitto):
    with TokenGate(mosquitto.port) as gate:
        ear = Ear()
        past = token(time.time() - 1)
        at = Broker(gate.host, gate.port, "fleet", past)
        up = MqttUplink(at, node="c", groups=["g"], **NAMES)
        with closing(up):
            up.open(ear)
            assert "does not let submerge:f:a:c in: not authorized" in ear.parted().why


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit(3)", "expected one line, the password, got status 3"),
        ("", "expected one line, the password, got 0 lines"),
        ("print('a', 'b', sep='\\n')", "expected one line, the password, got 2 lines"),
    ],
)
def test_a_command_without_a_password_is_said_and_tried_again(mosquitto, tmp_path, code, why):
    program = tmp_path / "program.py"
    program.write_text(code)
    command = ("python3", str(program))
    ear = Ear()
    at = Broker(mosquitto.host, mosquitto.port, "fleet", command=command)
    up = MqttUplink(at, node="c", groups=["g"], **NAMES)
    with closing(up):
        up.open(ear)
        assert why in ear.parted().why
        program.write_text("print('secret')")
        ear.opened()
