"""open_sensor(): from a configuration to its sensor, and nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from submerge import UsageError
from submerge_client.config.sensors import (
    FileSensor,
    HostSensor,
    InfluxSensor,
    MqttSensor,
    NdjsonSensor,
    ProgramSensor,
)
from submerge_client.sensors import open_sensor
from submerge_client.sensors.tally import worth_logging

PLANT = {"url": "mqtt://localhost", "insecure": True, "topic": "plant/{channel}"}


def test_each_kind_opens_its_sensor(tmp_path, monkeypatch) -> None:
    """With the settings that it was given."""
    pytest.importorskip("psutil")
    pytest.importorskip("paho.mqtt")
    (tmp_path / "in").write_text("load.1\n1\n2\n")
    with (tmp_path / "in").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        kinds = {
            "NdjsonReadings": NdjsonSensor(),
            "InfluxReadings": InfluxSensor(),
            "FileReplay": FileSensor(paths=(tmp_path / "in",)),
            "MqttReadings": MqttSensor(**PLANT),
            "HostMeter": HostSensor(),
            "ProgramReadings": ProgramSensor(command=("true",)),
        }

        made = [type(open_sensor(kind, ["load.1"])).__name__ for kind in kinds.values()]
        assert list(kinds) == made


def test_what_a_file_cannot_be_is_said_when_it_is_opened(tmp_path) -> None:
    """The constructor refuses it, not the thread."""
    config = FileSensor(paths=(tmp_path / "nope",))
    with pytest.raises(UsageError, match="expected a file, got nothing of that name"):
        open_sensor(config, ["a"])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"username": "me", "password_file": Path("/nope")}, "password_file: expected a file"),
        ({"url": "mqtts://localhost", "insecure": False, "ca": Path("/nope")}, "/nope: No such"),
        ({"period_s": 1e-9}, "period_s must be at least 0.001 seconds"),
    ],
)
def test_a_broker_that_cannot_be_reached_so_is_refused(chosen, message) -> None:
    """Files that are not there, and times that no grid has, are said before connecting."""
    pytest.importorskip("paho.mqtt")
    with pytest.raises(UsageError, match=message):
        open_sensor(MqttSensor(**PLANT | chosen), ["a"])


@pytest.mark.parametrize(
    ("module", "config", "extra"),
    [("psutil", HostSensor(), "host"), ("paho", MqttSensor(**PLANT), "mqtt")],
)
def test_a_missing_extra_is_named(module, config, extra, monkeypatch) -> None:
    """With the command that installs it."""
    for name in [n for n in sys.modules if n.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    for name in ("host", "mqtt.readings"):
        monkeypatch.delitem(sys.modules, f"submerge_client.sensors.{name}", raising=False)

    with pytest.raises(UsageError) as caught:
        open_sensor(config, ["a"])

    assert f"pip install 'submerge[{extra}]'" in str(caught.value)


def test_a_kind_loads_what_it_needs_alone() -> None:
    """Neither paho-mqtt nor psutil nor scipy weighs on a client that reads a file."""
    code = (
        "import sys, submerge_client.sensors, submerge_client.sensors.files, "
        "submerge_client.sensors.ndjson, submerge_client.sensors.gather\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {"paho", "psutil", "scipy", "grpc", "asyncio", "ssl", "click", "rich", "google"}
    assert not heavy & set(done.stdout.split())


def test_the_first_three_and_the_powers_of_ten_are_worth_logging() -> None:
    """A sensor that breaks on every line fills no log."""
    assert [1, 2, 3, 10, 100, 1000, 10_000] == [n for n in range(1, 20_000) if worth_logging(n)]
