"""Scores over a broker: each line a message, and none that waits for ever."""

from __future__ import annotations

import queue

import paho.mqtt.client as paho
import pytest

from submerge_client.config.links import UplinkConfig
from submerge_client.score_outputs.publisher import MOST_WAITING, Publisher
from support.patience import PATIENCE_S, until

pytestmark = pytest.mark.slow


@pytest.fixture
def publisher(mosquitto):
    link = UplinkConfig(url=f"mqtt://127.0.0.1:{mosquitto.port}", insecure=True, fleet="f")
    publisher = Publisher(link, "pump-1")
    until(lambda: publisher._line.is_open)
    yield publisher
    publisher._line.close()


def test_each_line_is_a_message_in_its_order(mosquitto, publisher):
    """On the node's own topic."""
    heard = queue.SimpleQueue()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.on_message = lambda _, __, message: heard.put((message.topic, message.payload))
    client.on_subscribe = lambda *_: heard.put(None)
    client.connect("127.0.0.1", mosquitto.port)
    client.subscribe("submerge/v1/f/score/#", 1)
    client.loop_start()
    heard.get(timeout=PATIENCE_S)
    publisher.publish(b"".join(b'{"row":%d}\n' % i for i in range(50)))
    got = [heard.get(timeout=PATIENCE_S) for _ in range(50)]
    client.disconnect()
    client.loop_stop()

    assert [("submerge/v1/f/score/pump-1", b'{"row":%d}' % i) for i in range(50)] == got
    assert 0 == publisher.left_out


def test_what_no_broker_takes_is_left_out_and_counted(mosquitto, publisher):
    """A broker that is away costs its scores, and no memory."""
    mosquitto.stop()
    until(lambda: not publisher._line.is_open)
    publisher.publish(b"{}\n" * 5000)

    assert 5000 == publisher.left_out
    assert publisher._line.waiting <= MOST_WAITING
