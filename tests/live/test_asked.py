"""What is asked of one node from the root, three levels up, over gRPC and MQTT."""

from __future__ import annotations

import pytest

pytest.importorskip("grpc")

from support.chain import CHAIN, CLIENT, Chain
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.patience import until
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(params=["grpc", "mqtt"])
def way(request) -> Way:
    if request.param == "grpc":
        return OverGrpc({node: free_port() for node in CHAIN})
    return OverMqtt(request.getfixturevalue("mosquitto").port)


def test_the_settings_of_a_node_below_are_read(way):
    """Of a client, of an aggregator on the way, and of the root itself."""
    with Programs() as programs:
        chain = Chain(way, programs, every_s=1.0)
        until(lambda: chain.below("site", "room").get("nodes"))
        pump = chain.asked("settings", "site", "room", CLIENT)
        assert (CLIENT, "client", "pumps") == (
            pump["node"],
            pump["kind"],
            pump["settings"]["group"],
        )
        assert ["a", "b", "c"] == pump["settings"]["schema"]["channels"]
        assert ("room", "aggregator") == _whose(chain.asked("settings", "site", "room"))
        assert ("root", "aggregator") == _whose(chain.asked("settings"))
        assert "x does not report to room" in chain.asked("settings", "site", "room", "x")["error"]


def _whose(settings: dict[str, str]) -> tuple[str, str]:
    return settings["node"], settings["kind"]
