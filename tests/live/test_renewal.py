"""Certificates that have ended, and are renewed in place: nobody is restarted.

A way that is refused and one that has ended look the same to a program, so the tests begin with
certificates that have ended, and wait for the way to open once they are renewed.
"""

from __future__ import annotations

import pytest

from submerge_aggregator.downlink.over_grpc import GrpcDownlink as Down
from submerge_client.uplink import Opened, Parted
from submerge_client.uplink.broker import Broker
from submerge_client.uplink.line import BrokerConnection
from submerge_client.uplink.over_grpc import GrpcUplink as Up
from submerge_client.uplink.tls import Tls
from support.certified import LOOPBACK, Certified
from support.ways import Ear, Host

LIMIT = 100_000
HELLO = b"hello"

pytestmark = pytest.mark.slow


@pytest.fixture
def fleet(tmp_path) -> Certified:
    return Certified(tmp_path)


@pytest.mark.parametrize("ended", ["root", "pump-1"])
def test_over_grpc_a_renewed_kit_opens_the_way(fleet, ended):
    """Whichever end's certificate had ended."""
    parent = fleet.kit("root", LOOPBACK, lasts_s=-60 if ended == "root" else 600)
    child = fleet.kit("pump-1", lasts_s=-60 if ended == "pump-1" else 600)
    host, ear = Host(Down(f"{LOOPBACK}:0", limit=LIMIT, tls=Tls(kit=parent))), Ear()
    up = Up(
        f"{LOOPBACK}:{host.downlink.port}",
        node="pump-1",
        groups=("g",),
        limit=LIMIT,
        tls=Tls(kit=child),
    )
    try:
        host.publish("", HELLO)
        up.open(ear)
        ear.parted()
        fleet.kit(ended, *([LOOPBACK] if ended == "root" else []), lasts_s=600)

        ear.opened()
        ear.came(HELLO)
        # Each try began a handshake, the one that came to nothing too.
        assert host.downlink.handshakes_begun >= 2
    finally:
        up.close()
        host.close()


def test_over_grpc_a_kit_that_is_half_there_shuts_nobody_out(fleet):
    """Both ends go on with what they have."""
    parent, child = fleet.kit("root", LOOPBACK), fleet.kit("pump-1")
    host, ear = Host(Down(f"{LOOPBACK}:0", limit=LIMIT, tls=Tls(kit=parent))), Ear()
    tls = Tls(kit=child)
    target = f"{LOOPBACK}:{host.downlink.port}"
    up = Up(target, node="pump-1", groups=("g",), limit=LIMIT, tls=tls)
    try:
        parent.write_text("half")
        host.publish("", HELLO)
        up.open(ear)
        ear.opened()
        child.write_text("half")
        host.publish("", HELLO + HELLO)

        ear.came(HELLO + HELLO)
    finally:
        up.close()
        host.close()


# paho lets go of a socket whose handshake failed, and does not close it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ended", ["broker", "pump-1"])
def test_over_mqtt_a_renewed_kit_opens_the_way(fleet, mosquitto, ended):
    """A broker has to be told (SIGHUP); a node does not."""
    kit = fleet.kit("broker", LOOPBACK, lasts_s=-60 if ended == "broker" else 600)
    child = fleet.kit("pump-1", lasts_s=-60 if ended == "pump-1" else 600)
    mosquitto.stop()
    mosquitto.start(
        *(f"{name} {kit}" for name in ("cafile", "certfile", "keyfile")),
        "require_certificate true",
        "use_identity_as_username true",
    )
    ear = Ear()
    line = BrokerConnection(
        Broker(LOOPBACK, mosquitto.port, tls=Tls(kit=child)),
        name="pump-1",
        topics=("t",),
        will=None,
        opened=lambda: ear(Opened()),
        parted=lambda why: ear(Parted(why)),
        came=lambda *_: None,
        first_wait_s=0.05,
    )
    try:
        line.open()
        ear.parted()
        fleet.kit(ended, *([LOOPBACK] if ended == "broker" else []), lasts_s=600)
        mosquitto.reload()

        ear.opened()
    finally:
        line.close()
