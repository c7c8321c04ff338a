"""`submerge init` at a real broker: what it writes is read by `submerge up`, and what is wrong."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator

import numpy as np
import pytest

mqtt = pytest.importorskip("paho.mqtt.client")

from paho.mqtt.enums import CallbackAPIVersion  # noqa: E402

from submerge import UsageError  # noqa: E402
from submerge_client.config.client_config import ClientConfig  # noqa: E402
from submerge_client.config.links import Link  # noqa: E402
from submerge_client.config.tomlfile import decoded  # noqa: E402
from submerge_client.sensors import open_sensor  # noqa: E402
from submerge_client.trial import listen, trial_lines  # noqa: E402
from submerge_operate.init.mqtt import (  # noqa: E402
    BrokerOptions,
    hear,
    propose_mqtt,
)
from submerge_operate.init.proposal import box_text  # noqa: E402
from submerge_operate.up.config import load  # noqa: E402
from support.broker import PROGRAM, REQUIRED, Mosquitto  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None and not REQUIRED, reason="mosquitto is not installed"),
]

DEVICES = [
    {
        "friendly_name": name,
        "definition": {
            "exposes": [
                {"type": "numeric", "property": "temperature", "unit": "°C", "access": 1},
                {"type": "numeric", "property": "linkquality", "unit": "lqi", "access": 1},
            ]
        },
    }
    for name in ("bath", "attic")
]


@pytest.fixture
def broker(tmp_path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.stop()


class Devices:
    """A gateway with two devices, of which one speaks, again and again."""

    def __init__(self, port: int) -> None:
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.connect("127.0.0.1", port)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak)

    def __enter__(self) -> Devices:
        self._client.loop_start()
        about = json.dumps(DEVICES)
        sent = self._client.publish("zigbee2mqtt/bridge/devices", about, qos=1, retain=True)
        sent.wait_for_publish()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._client.disconnect()
        self._client.loop_stop()

    def _speak(self) -> None:
        values = 0
        while not self._over.wait(0.05):
            values += 1
            message = {"temperature": 20 + values % 7, "linkquality": values % 90}
            self._client.publish("zigbee2mqtt/bath", json.dumps(message))


def test_what_it_proposes_is_read(broker, tmp_path) -> None:
    """What has spoken is a channel; what is only described joins when it speaks."""
    rows, stop = list[np.ndarray](), threading.Event()

    def hand(block: np.ndarray, /, **_: object) -> None:
        rows.append(block)
        if np.isfinite(block[-1, 0]):
            stop.set()

    with Devices(broker.port):
        url = f"mqtt://127.0.0.1:{broker.port}"
        proposal = propose_mqtt(BrokerOptions(url, ("zigbee2mqtt/#",), listen_s=3.0))
        path = tmp_path / "box.toml"
        path.write_text(box_text(proposal, node="desk", folder="kept", path="box.toml"))
        config = load(path, {})
        names = config.schema.names
        open_sensor(config.sensor, names).read(hand, stop)

    assert ("bath/temperature",) == names
    assert "zigbee2mqtt/+" in config.sensor.topics
    assert 20 <= rows[-1][-1, 0] < 27
    assert config.discover


def unreachable(link: Link) -> str:
    with pytest.raises(UsageError) as caught:
        hear(link, ("a/#",), listen_s=0.2)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_broker_that_is_not_there(broker) -> None:
    """It is not tried again and again: a person waits."""
    broker.stop()
    link = Link(url=f"mqtt://127.0.0.1:{broker.port}", insecure=True)
    assert "is the broker running, and the port right?" in unreachable(link)
    name = Link(url="mqtt://no-such-host.invalid", insecure=True)
    assert "there is no machine of that name" in unreachable(name)


def test_a_broker_that_asks_for_a_password(broker, tmp_path) -> None:
    """Without one, with a wrong one, and with the right one."""
    broker.stop()
    passwords, wrong, right = (tmp_path / name for name in ("passwords", "wrong", "right"))
    subprocess.run(["mosquitto_passwd", "-c", "-b", passwords, "me", "secret"], check=True)  # noqa: S607
    passwords.chmod(0o644)
    wrong.write_text("other\n")
    right.write_text("secret\n")
    broker.start("allow_anonymous false", f"password_file {passwords}")
    url = f"mqtt://127.0.0.1:{broker.port}"

    assert "--username NAME" in unreachable(Link(url=url, insecure=True))
    link = Link(url=url, insecure=True, username="me", password_file=wrong)
    assert "--password-file FILE" in unreachable(link)
    link = Link(url=url, insecure=True, username="me", password_file=right)
    assert 0 == hear(link, ("a/#",), listen_s=0.2).messages


def trial(broker, **more: object) -> list[str]:
    """What `--test` prints of a sensor of devices that the broker keeps from it."""
    link = {"url": f"mqtt://127.0.0.1:{broker.port}", "insecure": True}
    plain = dict.fromkeys(("node", "group", "state"), "c") | {"parent": "root"}
    sections = {
        "sensor": {"kind": "mqtt", "topics": ["a/+"], **link, **more},
        "uplink": link,
        "schema": {"channels": ["b/t"]},
    }
    config = decoded(plain | sections, ClientConfig)
    got = listen(config, seconds=1.0)
    return trial_lines(config, got)


def test_a_silent_sensor_says_why(broker, tmp_path) -> None:
    """Refused at the door, or let in and told nothing: no word of the channels' names."""
    broker.stop()
    passwords, rules, wrong, right = (tmp_path / name for name in ("all", "acl", "bad", "good"))
    subprocess.run(["mosquitto_passwd", "-c", "-b", passwords, "me", "secret"], check=True)  # noqa: S607
    passwords.chmod(0o644)
    wrong.write_text("other\n")
    right.write_text("secret\n")
    rules.write_text("user me\ntopic read other/#\n")
    rules.chmod(0o644)
    settings = ("allow_anonymous false", f"password_file {passwords}", f"acl_file {rules}")
    broker.start(*settings)
    refused = trial(broker, username="me", password_file=str(wrong))
    silenced = trial(broker, username="me", password_file=str(right))

    assert any("broker unreachable" in line and "Not authorized" in line for line in refused)
    assert "no rows: correct what is said above" == refused[-1]
    assert 'do the broker\'s rules let a user "me" read it?' in silenced[-1]
    assert not any("names" in line for line in (*refused, *silenced))


# paho leaves the socket of a handshake that failed to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_tls_where_there_is_none_and_the_other_way_round(broker, tmp_path) -> None:
    """And a certificate of an authority that is not known."""
    plain = unreachable(Link(url=f"mqtts://127.0.0.1:{broker.port}"))
    assert "mqtt://" in plain
    broker.stop()
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    broker.start(f"certfile {cert}", f"keyfile {key}")

    link = Link(url=f"mqtt://127.0.0.1:{broker.port}", insecure=True)
    assert "write mqtts://" in unreachable(link)
    assert "--ca FILE" in unreachable(Link(url=f"mqtts://localhost:{broker.port}"))
    other = unreachable(Link(url=f"mqtts://127.0.0.1:{broker.port}", ca=cert))
    assert "the name that is in the broker's certificate" in other
