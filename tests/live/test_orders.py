"""An order at the root reaches a client three levels down at once, long before any report is due.

Reports are an hour apart: what arrives has not waited for one.
"""

from __future__ import annotations

import json
import subprocess

import pytest

pytest.importorskip("grpc")

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

    def __init__(self, way: Way, programs: Programs) -> None:
        self._way, self._programs = way, programs
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

    def order(self, *words: str) -> None:
        store = self._programs.folder / "root.store"
        command = [SUBMERGE, *words, "--store", store]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stderr

    def listed(self, aggregator: str) -> dict[str, dict]:
        store = self._programs.folder / f"{aggregator}.store"
        command = [SUBMERGE, "nodes", "list", "--json", "--store", store]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return {} if done.returncode else {each["node"]: each for each in json.loads(done.stdout)}

    def said(self, what: str) -> bool:
        return any(what in line.what for line in self.running[CLIENT].lines)

    def _config(self, node: str) -> str:
        folder, timing = self._programs.folder, "[timing]\nreport_every_s = 3600\n"
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
