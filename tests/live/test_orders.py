"""What is ordered and asked at the root, three levels up, long before any report is due.

Reports are an hour apart: what arrives has not waited for one.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

pytest.importorskip("grpc")

from submerge import SubmergeError
from submerge_aggregator.questions.views import socket_of
from submerge_fleet.console.admin_client import AdminClient
from submerge_fleet.console.ways import UnixSocket
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.patience import until
from support.programs import SUBMERGE, Program, Programs, free_port

pytestmark = pytest.mark.slow

CHAIN = {"root": None, "site": "root", "room": "site"}
CLIENT = "pump"


@pytest.fixture(params=["grpc", "mqtt"])
def way(request) -> Way:
    if request.param == "grpc":
        return OverGrpc({node: free_port() for node in CHAIN})
    return OverMqtt(request.getfixturevalue("mosquitto").port)


class Chain:
    """Three aggregators below one another, and a client below the last."""

    def __init__(self, way: Way, programs: Programs, *, every_s: float = 3600.0) -> None:
        self._way, self._programs, self._every_s = way, programs, every_s
        self.running: dict[str, Program] = {}
        for node in (*CHAIN, CLIENT):
            self.start(node)

    def start(self, node: str) -> Program:
        kind = "client" if node == CLIENT else "aggregator"
        config = self._programs.file(f"{node}.toml", self._config(node))
        program = self.running[node] = self._programs.start(kind, "--config", config)
        program.until("reading" if node == CLIENT else "serving")
        if node == CLIENT:
            for row in range(40):
                program.write(f"[{row % 7}, {row % 5}, {row % 3}]\n".encode())
        return program

    def kill(self, node: str) -> None:
        self.running[node].kill()

    def order(self, *words: str) -> str:
        """Give an order at the root; return what the command says."""
        store = self._programs.folder / "root.store"
        command = [SUBMERGE, *words, "--store", store]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stderr
        return done.stdout

    def below(self, *path: str, **query: str) -> dict[str, Any]:
        """Return what the root says of the nodes of an aggregator below it."""
        admin = AdminClient(UnixSocket(socket_of(self._programs.folder / "root.store")))
        time.sleep(0.1)  # it answers so many a second
        try:
            return json.loads(admin.get("tree", "pumps", path="/".join(path), **query))
        except SubmergeError as error:
            return {"error": str(error)}

    def said(self, what: str) -> bool:
        return any(what in line.what for line in self.running[CLIENT].lines)

    def _config(self, node: str) -> str:
        folder = self._programs.folder
        timing = f"[timing]\nreport_every_s = {self._every_s}\n"
        channels = '[schema]\nchannels = ["a", "b", "c"]\nscaling = "none"\n'
        if node == CLIENT:
            return (
                f'node = "{node}"\ngroup = "pumps"\nparent = "room"\n'
                f'state = "{folder / node}.state"\n[uplink]\n{self._way.up("room")}'
                f'[sensor]\nkind = "ndjson"\n{channels}{timing}min_rows = 1\n'
            )
        parent = CHAIN[node]
        above = "" if parent is None else f'[parent]\nname = "{parent}"\n{self._way.up(parent)}'
        schema = channels.replace("[schema]", "[groups.pumps.schema]") if parent is None else ""
        return (
            f'node = "{node}"\nstore = "{folder / node}.store"\n{self._way.listens(node)}{above}'
            f'[status]\naddress = ""\n[groups.pumps.summary]\nrank = 2\n{schema}{timing}'
        )


@pytest.mark.parametrize("killed", [(), ("root", "site", "room", CLIENT)])
def test_an_order_is_at_work_at_once(way, killed):
    """Also after `kill -9` of every process on the way, while it is."""
    with Programs() as programs:
        chain = Chain(way, programs)
        if killed:
            chain.kill("site")
        chain.order("learn", "pause", CLIENT, "--anyway")
        for node in killed:
            chain.kill(node)
            chain.start(node)
        until(lambda: chain.said("learning paused by operator"))


def test_the_nodes_of_an_aggregator_below_are_seen(way):
    """Page by page, from the root; and what cannot be seen is said in one line."""
    with Programs() as programs:
        chain = Chain(way, programs, every_s=1.0)
        until(lambda: chain.below("site", "room").get("nodes"))
        page = chain.below("site", "room")
        assert ("room", False) == (page["aggregator"], page["more"])
        (node,) = page["nodes"]
        assert (CLIENT, "client", 40) == (node["node"], node["kind"], node["rows"][0]["learnt"])
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

        at_work = "at work at site/room\n"
        assert chain.order("nodes", "quarantine", CLIENT).endswith(at_work)
        assert chain.order("nodes", "release", CLIENT).endswith(at_work)
        chain.kill(CLIENT)
        assert chain.order("nodes", "forget", CLIENT, "--yes").endswith(at_work)
