"""A node two levels down is asked to drill, and its answer arrives: over each transport."""

from __future__ import annotations

import json
import subprocess

import pytest

pytest.importorskip("grpc")

from support.alarm_fleet import CHANNELS, PUMP, ROOT, SITE, AlarmFleet
from support.kills import OverGrpc, OverMqtt, Way
from support.programs import SUBMERGE, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(params=["grpc", "mqtt"])
def way(request) -> Way:
    """How the client reaches the site, and the site the root."""
    if request.param == "grpc":
        return OverGrpc({SITE: free_port(), ROOT: free_port()})
    return OverMqtt(request.getfixturevalue("mosquitto").port)


def test_what_a_node_would_find_is_known_at_the_root(way):
    """Sizes for each of its channels. That it changes nothing: tests/core/drill."""
    with AlarmFleet(way) as fleet:
        store = str(fleet.store(ROOT))

        def answers():
            command = [SUBMERGE, "drill", "--store", store, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return json.loads(done.stdout) if done.returncode == 0 else {}

        fleet.order("drill", "--ask", PUMP, "--anyway")
        fleet.until(lambda: answers().get("nodes"), "an answer at the root")

        told = answers()
        assert [PUMP] == [each["node"] for each in told["nodes"]]
        assert CHANNELS == [each["channel"] for each in told["channels"]]
        assert all(each["bias"]["median"] > 0 for each in told["channels"])
