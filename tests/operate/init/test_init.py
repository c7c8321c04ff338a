"""`submerge init`: what it writes loads, and what it cannot write is one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

pytest.importorskip("psutil")
pytest.importorskip("paho.mqtt")

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.config.sensors import HostSensor, MqttSensor, NdjsonSensor, ProgramSensor
from submerge_client.sensors import host, open_sensor
from submerge_operate.init import command, mqtt, sources
from submerge_operate.init.devices import Hearing
from submerge_operate.up.config import load

GOLDEN = Path(__file__).parents[2] / "golden" / "init"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of its own, on a machine called desk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.socket, "gethostname", lambda: "desk.example")
    return tmp_path


def init(*arguments: str, typed: str | None = None) -> Any:
    return CliRunner().invoke(command.command, arguments, input=typed, catch_exceptions=True)


def refused(*arguments: str) -> str:
    """What the command says when it writes nothing."""
    result = init(*arguments)
    assert isinstance(result.exception, UsageError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.fixture
def figures(monkeypatch) -> None:
    """A host with these figures."""
    looks = {
        "cpu": {"cpu.percent": 1.0, "cpu.0.percent": 1.0},
        "mem": {"mem.percent": 2.0},
        "net": {"net.rx_Bps": 3.0},
    }
    families = {name: (lambda look=look: look) for name, look in looks.items()}
    monkeypatch.setattr(host, "FAMILIES", families)


@pytest.fixture
def devices(monkeypatch) -> list[tuple[Any, ...]]:
    """A broker whose devices have spoken."""
    asked = list[tuple[Any, ...]]()

    def hear(link: Any, topics: Any, *, listen_s: float | None, rebirth: bool) -> Hearing:
        asked.append((link, tuple(topics), listen_s, rebirth))
        hearing = Hearing(topics, rebirth=rebirth)
        exposes = [{"type": "numeric", "property": "co2", "unit": "ppm"}]
        hearing.describe(
            "zigbee2mqtt/bridge/devices",
            json.dumps([{"friendly_name": "hall", "definition": {"exposes": exposes}}]).encode(),
        )
        hearing.begin()
        for value in (20.0, 21.0):
            message = {"temperature": value, "linkquality": value, "door": True}
            hearing.take("zigbee2mqtt/bath", json.dumps(message).encode(), retained=False)
        return hearing

    monkeypatch.setattr(mqtt, "hear", hear)
    return asked


@pytest.mark.usefixtures("figures")
def test_a_hosts_configuration_is_the_golden_one(folder) -> None:
    """Short, with known scales, and the command to type next."""
    result = init("--from", "host", "--yes")

    assert 0 == result.exit_code, result.output
    assert "box.toml is written. Next: submerge up --config box.toml" in result.output
    assert (GOLDEN / "host.toml").read_text() == (folder / "box.toml").read_text()
    config = load(folder / "box.toml", {})
    assert ("desk", HostSensor(period_s=1.0), False) == (
        config.node,
        config.sensor,
        config.schema.learns_scaling,
    )
    # The first report, after some 30 rows, is enough for a model.
    assert config.aggregator.groups["box"].plan.min_rows <= 20
    open_sensor(config.sensor, [each.name for each in config.schema.sensed])


def test_a_brokers_configuration_is_the_golden_one(folder, devices) -> None:
    """Channels with units, patterns that name them well, and why others are not there."""
    result = init(
        *("--from", "mqtt://broker:1884", "--topics", "zigbee2mqtt/#", "--listen", "3"),
        *("--username", "me", "--password-file", "pw", "--states", "--yes"),
    )

    assert 0 == result.exit_code, result.output
    assert "described, not heard yet" in result.output
    assert "quality of the radio link: bath/linkquality" in result.output
    text = (folder / "box.toml").read_text().replace(str(folder), "/home/me")
    assert (GOLDEN / "broker.toml").read_text() == text
    config = load(folder / "box.toml", {})
    assert isinstance(config.sensor, MqttSensor)
    assert ("zigbee2mqtt/+", "zigbee2mqtt/+/availability") == config.sensor.topics
    assert {"true": 1.0, "false": 0.0} == config.sensor.states
    (asked,) = devices
    assert (("zigbee2mqtt/#",), 3.0, False) == asked[1:]
    assert ("broker", 1884, "me") == (asked[0].host, asked[0].port, asked[0].username)


def test_a_program_may_print_any_numbers() -> None:
    """One that is too large for a float is no reading."""
    script = "import json\nfor i in range(9): print(json.dumps({'a': i % 3 / 2, 'b': 10**400}))"
    proposal = sources.propose_program([sys.executable, "-c", script], listen_s=5.0)
    assert ["a"] == [each.name for each in proposal.found]


def test_a_programs_lines_are_its_channels(folder) -> None:
    """The sensor that is written reads the same lines."""
    script = folder / "meter.py"
    line = {"time": "now", "id": 7, "ok": True, "name": "x"}
    script.write_text(
        "import json\nfor i in range(9):\n"
        f"    print(json.dumps({line!r} | {{'flow': i % 3, 'heat': -i}}), flush=True)\n"
    )
    result = init("--from", f"{sys.executable} {script}", *LISTEN)

    assert 0 == result.exit_code, result.output
    config = load(folder / "box.toml", {})
    assert ProgramSensor(command=(sys.executable, str(script))) == config.sensor
    assert ("flow", "heat") == config.schema.names
    assert "words and booleans" in result.output


def test_a_history_settles_channels_scales_and_rank(folder) -> None:
    """As it does for a client; live readings come as lines."""
    rows = "".join(f"{i % 7},{2 * (i % 7) + i % 2}\n" for i in range(400))
    (folder / "past.csv").write_text(f"flow [l/min],heat\n{rows}")
    result = init("--from", "past.csv", "--yes")

    assert 0 == result.exit_code, result.output
    assert "your-program | submerge up" in result.output
    config = load(folder / "box.toml", {})
    assert (NdjsonSensor(), ("flow", "heat")) == (config.sensor, config.schema.names)
    assert ("fixed", 1) == (config.schema.scaling, config.summary.rank)


@pytest.mark.usefixtures("figures")
def test_it_asks_at_a_terminal(folder, monkeypatch) -> None:
    """With a default for each question, and writes nothing if the answer is no."""
    answers = iter(["host", "shed", False])
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=terminal))
    monkeypatch.setattr(click, "prompt", lambda *_, **__: next(answers))
    monkeypatch.setattr(click, "confirm", lambda *_, **__: next(answers))
    assert "nothing is written" in init().output
    assert [] == list(folder.iterdir())

    answers = iter(["host", "shed", True])
    init()
    assert "shed" == load(folder / "box.toml", {}).node


@pytest.mark.usefixtures("figures")
def test_a_file_that_is_there_stays(folder) -> None:
    """Unless it is to be replaced."""
    (folder / "box.toml").write_text("mine")
    assert "add --replace" in refused("--from", "host", "--yes")
    assert "mine" == (folder / "box.toml").read_text()

    init("--from", "host", "--yes", "--replace")
    assert "desk" == load(folder / "box.toml", {}).node


LISTEN = ("--listen", "60", "--yes")
"""Programs that end by themselves are not waited for."""

MISTAKES = {
    "no terminal": (("--from", "host"), "expected --yes, since there is no terminal"),
    "no source": (("--yes",), "expected --from SOURCE beside --yes"),
    "a folder": (("--from", "host", "--yes", "--config", "."), "--config must be a file"),
    "no folder": (("--from", "host", "--yes", "--config", "a/b.toml"), "make it"),
    "no file": (("--from", "past.csv", "--yes"), "nothing of that name"),
    "no source of that name": (("--from", "nonsense", "--yes"), "no file and no program"),
    "quotes": (("--from", "a 'b", "--yes"), "No closing quotation"),
    "another scheme": (("--from", "http://b", "--yes"), "write mqtt://b"),
    "an address alone": (("--from", "192.168.1.5", "--yes"), "write mqtt://192.168.1.5"),
    "a name alone": (("--from", "broker.local", "--yes"), "write mqtt://broker.local"),
    "a pipe": (("--from", "nope -F json | jq .", "--yes"), "sh -c 'nope -F json | jq .', in"),
    "no scheme": (("--from", "b:1883", "--yes"), "write mqtt://b:1883"),
    "a port": (("--from", "mqtt://b:99999", "--yes"), "Port out of range"),
    "a password in the url": (("--from", "mqtt://me:pw@b", "--yes"), "--password-file FILE"),
    "a wildcard": (("--from", "mqtt://b", "--topics", "a#", "--yes"), "# as the last level"),
    "a level": (("--from", "mqtt://b", "--topics", "a/+b", "--yes"), "+ as a whole level"),
    "a password without a name": (
        ("--from", "mqtt://b", "--password-file", "f", "--yes"),
        "--username: expected one beside",
    ),
    "a certificate without TLS": (("--from", "mqtt://b", "--ca", "f", "--yes"), "--ca: expected"),
    "a broker's option": (("--from", "host", "--topics", "x", "--yes"), "expected a broker"),
    "a node's name": (("--from", "host", "--node", "a b", "--yes"), "--node: expected a name"),
    "no JSON": (("--from", "echo hello", *LISTEN), "got 1 other lines"),
    "nothing": (("--from", "sleep 99", "--listen", "0.5", "--yes"), "got no line: it must print"),
    "no numbers": (("--from", """echo '{"a": 1}'""", *LISTEN), "lines without numbers that change"),
    "a program that fails": (("--from", "ls /nope", *LISTEN), "it ended with status 2; it says: "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(folder, mistake) -> None:
    """With the cure."""
    arguments, expected = MISTAKES[mistake]

    assert expected in refused(*arguments)
    assert [] == list(folder.iterdir())


def test_a_password_in_a_url_is_not_shown() -> None:
    """It would stay in a terminal's log."""
    assert "secret" not in refused("--from", "mqtt://me:secret@b", "--yes")


def test_a_table_without_numbers_is_refused(folder) -> None:
    (folder / "text.csv").write_text("a,b\nx,y\nu,v\n")
    assert "columns of numbers" in refused("--from", "text.csv", "--yes")


def test_a_folder_without_permission_is_refused(monkeypatch) -> None:
    """Before anything is listened to."""
    monkeypatch.setattr("submerge_operate.init.command.os.access", lambda *_: False)
    assert "no permission" in refused("--from", "host", "--yes")


def test_a_script_that_cannot_be_started_is_refused(folder) -> None:
    """It has no first line that names its language."""
    script = folder / "meter"
    script.write_text("\x7f")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="a first line as"):
        sources.propose_program([str(script)], listen_s=0.5)


def test_a_broker_that_says_nothing_is_refused(monkeypatch) -> None:
    """What there is to do depends on whether anything came."""
    silent = Hearing(["x/#"])
    silent.begin()
    monkeypatch.setattr(mqtt, "hear", lambda *_, **__: silent)
    assert "expected messages on x/#, got none" in refused(
        *("--from", "mqtt://b", "--topics", "x/#", "--yes")
    )
    silent.take("x/y", b"hello", retained=False)
    assert "got 1 messages without (texts)" in refused(
        *("--from", "mqtt://b", "--topics", "x/#", "--yes")
    )


def test_an_error_number_says_nothing_to_a_person() -> None:
    """The words behind it do."""
    error = mqtt._unreachable(Link(url="mqtt://b", insecure=True), "[Errno 111] Connection refused")
    assert "got: Connection refused: nothing listens there" in str(error)


def test_the_wrong_source_is_said_before_the_file_that_is_there(folder) -> None:
    """A person who mends the second mistake alone would come back for the first."""
    (folder / "box.toml").write_text("mine")

    assert "nothing of that name" in refused("--from", "past.csv", "--yes")


def test_a_name_without_a_password_is_refused() -> None:
    """Nothing is connected to."""
    said = refused("--from", "mqtt://localhost:1", "--username", "me", "--yes")

    assert "--username: expected --password-file FILE beside it, got nothing" in said
