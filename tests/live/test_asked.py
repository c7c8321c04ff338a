"""What is asked of one node from the root, three levels up, over gRPC and MQTT."""

from __future__ import annotations

import json

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
        lines = chain.order("nodes", "settings", CLIENT)
        assert f"# {CLIENT}, client, submerge/" in lines
        assert 'schema.channels = ["a", "b", "c"]' in lines.splitlines()
        assert 'node = "root"' in chain.order("nodes", "settings", "root").splitlines()
        assert ("room", "aggregator") == _whose(chain.asked("settings", "site", "room"))
        assert ("root", "aggregator") == _whose(chain.asked("settings"))
        assert "x does not report to room" in chain.asked("settings", "site", "room", "x")["error"]


def _whose(settings: dict[str, str]) -> tuple[str, str]:
    return settings["node"], settings["kind"]


def test_the_newest_rows_of_a_node_below_are_seen(way):
    """Scores whoever asks; readings only if the node's configuration says so."""
    with Programs() as programs:
        chain = Chain(way, programs, every_s=0.5, pump="share_values = true\n")
        at = ("site", "room", CLIENT)

        def scored() -> bool:
            chain.reads(5)
            return "error" not in chain.asked("recent", *at)

        until(scored, lambda: chain.asked("recent", *at))
        recent = chain.asked("recent", *at)
        assert (CLIENT, "pumps") == (recent["node"], recent["group"])
        assert {len(recent["at"])} == {len(each["values"]) for each in recent["kinds"]}
        assert {"a", "b", "c"} >= set(recent["channels"])

        values = chain.asked("values", *at)
        assert ["a", "b", "c"] == [each["name"] for each in values["channels"]]
        assert {float(n) for n in range(7)} >= set(values["values"][0])
        assert len(values["at"]) == len(values["expected"][2])
        assert "name the path of a client" in chain.asked("values")["error"]

        table = chain.order("nodes", "scores", CLIENT)
        assert f"{CLIENT}: scores over" in table
        assert "channels to blame" in table
        said = json.loads(chain.order("nodes", "scores", CLIENT, "--json"))
        assert (CLIENT, "pumps") == (said["node"], said["group"])


def test_a_node_keeps_its_readings_to_itself():
    """Without `share_values`, whatever is asked from above."""
    ways = OverGrpc({node: free_port() for node in CHAIN})
    with Programs() as programs:
        chain = Chain(ways, programs, every_s=0.5)
        until(lambda: chain.below("site", "room").get("nodes"))
        assert (
            "keeps its readings to itself" in chain.asked("values", "site", "room", CLIENT)["error"]
        )
