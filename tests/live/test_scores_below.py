"""Scores of nodes further down: kept where a node reports, and asked for from the root."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

pytest.importorskip("grpc")

from submerge import SubmergeError
from submerge_aggregator.questions.views import socket_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import UnixSocket
from support.chain import CHAIN, CLIENT, Chain
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.patience import until
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(params=["grpc", "mqtt"])
def way(request: Any) -> Way:
    if request.param == "grpc":
        return OverGrpc({node: free_port() for node in CHAIN})
    return OverMqtt(request.getfixturevalue("mosquitto").port)


def scores(programs: Programs, path: str = "") -> dict[str, Any]:
    """Return what the root says of the nodes that report to an aggregator below it."""
    admin = AdminClient(UnixSocket(socket_of(programs.folder / "root.store")))
    try:
        query = {"path": path} if path else {}
        return dict(json.loads(admin.get("scores", "pumps", step="60", **query)))
    except SubmergeError as error:
        return {"error": str(error)}


def seen(page: dict[str, Any]) -> list[str]:
    """Return the nodes that had rows in some minute."""
    nodes = page.get("nodes", [])
    return [each["node"] for each in nodes if any(base64.b64decode(each["levels"]))]


def test_scores_come_from_the_aggregator_to_which_a_node_reports(way: Way) -> None:
    """Also after kill -9 of it; those above keep none of its nodes."""
    with Programs() as programs:
        chain = Chain(way, programs, every_s=1.0)
        until(lambda: [CLIENT] == seen(scores(programs, "site/room")))
        chain.kill("room")
        chain.start("room")
        until(lambda: [CLIENT] == seen(scores(programs, "site/room")))

        assert [] == scores(programs)["nodes"]
        assert [] == scores(programs, "site")["nodes"]
        assert "room" == scores(programs, "site/room")["aggregator"]
