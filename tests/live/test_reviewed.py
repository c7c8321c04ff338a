"""What a review found at the edges of the transports: each finding stays found."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from submerge import UsageError
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.downlink.over_grpc import GrpcDownlink as Down
from submerge_aggregator.downlink.over_mqtt import MqttDownlink as DownMqtt
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.server import Server
from submerge_client import clock
from submerge_client.uplink.broker import Broker
from submerge_client.uplink.over_grpc import GrpcUplink as Up
from submerge_client.uplink.over_mqtt import MqttUplink
from submerge_client.uplink.tls import Tls
from support.patience import PATIENCE_S
from support.ways import Ear, Host


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_certificate_files_of_no_use_are_said_at_once(tmp_path, content):
    """Missing or garbage: one line that names the file, at either end, before a port is taken."""
    paths = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]
    if content is not None:
        for path in paths:
            path.write_bytes(content)
    tls = Tls(*paths)

    with pytest.raises(UsageError, match=r"ca\.pem"):
        Up("127.0.0.1:1", node="c", groups=("g",), limit=1000, tls=tls)
    with pytest.raises(UsageError, match=r"ca\.pem"):
        Down("127.0.0.1:0", limit=1000, tls=tls)


@pytest.mark.slow
def test_finals_do_not_take_one_anothers_place(mosquitto):
    """Four of them and a running report, said in one breath: the parent gets all five."""
    at = Broker(mosquitto.host, mosquitto.port)
    down = DownMqtt(at, fleet="f", parent="a", limit=1000, note=lambda *_, **__: None)
    host, ear = Host(down), Ear()
    host.publish("", b"hello")
    up = MqttUplink(at, fleet="f", parent="a", node="c", groups=("g",), limit=1000)
    up.open(ear)
    ear.came(b"hello")
    for i in range(4):
        up.send("report", "g", b"final %d" % i, final=True)
    up.send("report", "g", b"running")
    got = {host.letters.get(timeout=PATIENCE_S).data for _ in range(5)}
    up.close()
    host.close()

    assert {b"running", *(b"final %d" % i for i in range(4))} == got


def test_a_server_that_stops_takes_nothing_more():
    """Children that go on talking do not keep it: each is told so, and the end has an end."""
    said = []
    refusals = Refusals()
    worker = SimpleNamespace(refusals=refusals)
    server = Server(worker, downlinks=(), uplink=None, clock=clock.now)
    server.stop()
    server.take(Inbound("join", b"", "c", False, lambda *_: None, lambda *why: said.append(why)))

    assert [("no room now, or no longer serving: ask again", "busy")] == said
    assert 1 == refusals.counts["dropped"]
