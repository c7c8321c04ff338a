"""The broker goes away for a while: nothing is lost, nothing counts twice, and all come back.

The box reads its own sensors from the broker, and a second machine reports to it through it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("grpc")
paho = pytest.importorskip("paho.mqtt.client")

from support.boxes import Box, counted, fed, lines_of, rows_of  # noqa: E402
from support.broker import PROGRAM, REQUIRED, Mosquitto  # noqa: E402
from support.patience import PATIENCE_S, until  # noqa: E402
from support.programs import Programs  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None and not REQUIRED, reason="mosquitto is not installed"),
]


class Devices:
    """Publish numbers that rise, so that a row says when its values were sent."""

    def __init__(self, port: int) -> None:
        self._port, self._n = port, 0

    def speak(self) -> None:
        """Publish one message of each device."""
        self._n += 1
        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self._port)
        client.loop_start()
        for i, name in enumerate(("bath", "hall")):
            payload = json.dumps({"t": self._n + i / 10})
            client.publish(f"z/{name}", payload, qos=1).wait_for_publish(PATIENCE_S)
        client.disconnect()
        client.loop_stop()


def second(programs: Programs, url: str) -> Path:
    return programs.file(
        "shed.toml",
        f"""
node = "shed"
group = "box"
parent = "desk-root"
state = "{programs.folder}/shed.state"
log = "debug"
[uplink]
url = "{url}"
insecure = true
[sensor]
kind = "ndjson"
[schema]
channels = ["bath/t", "hall/t"]
[timing]
report_every_s = 0.5
[advanced]
cap_s = 1
""",
    )


def pairs(n: int) -> bytes:
    rows = [json.loads(line)[:2] for line in rows_of(n).splitlines()]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def test_all_come_back():
    with Programs() as programs:
        broker = Mosquitto(programs.folder)
        broker.start()
        try:
            _goes_and_comes(programs, broker)
        finally:
            broker.stop()


def _goes_and_comes(programs: Programs, broker: Mosquitto) -> None:
    url, devices = f"mqtt://127.0.0.1:{broker.port}", Devices(broker.port)
    sensor = f'kind = "mqtt"\nurl = "{url}"\ninsecure = true\ntopics = ["z/+"]\nperiod_s = 0.2'
    listen = f'[listen.mqtt]\nurl = "{url}"\ninsecure = true\n'
    box = Box(programs, listen, sensor=sensor, channels=("bath/t", "hall/t"))
    up = box.start()
    shed = programs.start("client", "--config", second(programs, url))
    shed.until("reading")
    devices.speak()
    shed.write(pairs(100))
    until(lambda: counted(box, "shed") >= 100, lambda: shed.log, lambda: len(shed.lines))

    broker.stop()
    shed.until("parent unreachable, trying on")
    up.until("broker unreachable, trying on")
    shed.write(pairs(150))
    broker.start()

    until(lambda: counted(box, "shed") == 250, lambda: shed.log, lambda: len(shed.lines))
    devices.speak()
    fed(shed, b"")
    assert 0 == up.end(), up.log
    (ended, *_) = [line.facts for line in up.said("ended") if "rows" in line.facts]
    fates = {"learnt", "waiting", "lost", "withheld", "gaps"}
    assert ended["rows"] == sum(n for fate, n in ended.items() if fate in fates)
    assert ended["rows"] > 0 == ended["lost"]
    assert lines_of(up)[-1]["rows"] == ended["rows"]

    again = box.start()
    assert 0 == again.end(), again.log
    held = lines_of(again)[-1]
    assert ended["rows"] <= held["learnt"] + held["withheld"] <= ended["rows"] + held["rows"]
    assert 250 == max(line.facts["readings"] for line in shed.said("acknowledged"))
