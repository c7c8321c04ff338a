"""What is ordered and asked at the root, three levels up, long before any report is due.

Reports are an hour apart: what arrives has not waited for one.
"""

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


@pytest.mark.parametrize("killed", [(), ("root", "site", "room", CLIENT)])
def test_an_order_is_at_work_at_once(way, killed):
    """Also after `kill -9` of every process on the way, while it is."""
    with Programs() as programs:
        chain = Chain(way, programs)
        if killed:
            chain.kill("site")
        chain.order("nodes", "learn", "pause", CLIENT, "--anyway")
        for node in killed:
            chain.kill(node)
            chain.start(node)
        until(lambda: chain.said("learning paused by operator"))


def test_the_nodes_of_an_aggregator_below_are_seen(way):
    """Page by page, from the root; and what cannot be seen is said in one line."""
    with Programs() as programs:
        chain = Chain(way, programs, every_s=1.0)

        def learnt() -> int:
            nodes = chain.below("site", "room").get("nodes", [])
            return sum(row["learnt"] for node in nodes for row in node["rows"])

        until(lambda: 40 == learnt())
        page = chain.below("site", "room")
        assert ("room", False) == (page["aggregator"], page["more"])
        assert [(CLIENT, "client")] == [(each["node"], each["kind"]) for each in page["nodes"]]
        assert ["site"] == [each["node"] for each in chain.below()["nodes"]]
        assert [] == chain.below("site", "room", after=CLIENT)["nodes"]
        assert "nowhere does not report to site" in chain.below("site", "nowhere")["error"]
        assert "is a client" in chain.below("site", "room", CLIENT)["error"]
        chain.kill("room")
        assert "did not reply within" in chain.below("site", "room", node="x")["error"]


def test_a_node_below_is_listed_quarantined_and_forgotten_from_the_root(way):
    """Each command says that it is at work; the node need not be known at the root."""
    with Programs() as programs:
        chain = Chain(way, programs, every_s=1.0)
        until(lambda: chain.below("site", "room").get("nodes"))
        listed = json.loads(chain.order("nodes", "list", "--below", "--json"))
        assert [("site", ""), ("room", "site"), (CLIENT, "site/room")] == [
            (each["node"], each["under"]) for each in listed
        ]
        table = chain.order("nodes", "list", "--below")
        assert "site/room" in table

        chain.order("nodes", "learn", "pause", CLIENT)
        until(lambda: chain.said("learning paused by operator"))
        chain.order("nodes", "learn", "resume", CLIENT)
        at_work = "at work at site/room\n"
        assert chain.order("nodes", "quarantine", CLIENT).endswith(at_work)
        assert chain.order("nodes", "release", CLIENT).endswith(at_work)
        chain.kill(CLIENT)
        assert chain.order("nodes", "forget", CLIENT, "--yes").endswith(at_work)
