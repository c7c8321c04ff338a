"""Chain: three aggregators below one another, and a client below the last, as real programs."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from submerge import SubmergeError
from submerge_aggregator.questions.views import socket_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import UnixSocket
from support.kills.configs import Way
from support.programs import SUBMERGE, Program, Programs

CHAIN = {"root": None, "site": "root", "room": "site"}
CLIENT = "pump"


class Chain:
    """Three aggregators below one another, and a client below the last.

    pump : what the client's configuration says besides, at its top
    """

    def __init__(
        self, way: Way, programs: Programs, *, every_s: float = 3600.0, pump: str = ""
    ) -> None:
        self._pump = pump
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
            self.reads(40)
        return program

    def reads(self, rows: int) -> None:
        """Give the client more rows."""
        for row in range(rows):
            self.running[CLIENT].write(f"[{row % 7}, {row % 5}, {row % 3}]\n".encode())

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
        return self.asked("tree", *path, **query)

    def asked(self, topic: str, *path: str, **query: str) -> dict[str, Any]:
        """Return what a node says when the root asks it."""
        admin = AdminClient(UnixSocket(socket_of(self._programs.folder / "root.store")))
        time.sleep(0.1)  # it answers so many a second
        try:
            return json.loads(admin.get(topic, "pumps", path="/".join(path), **query))
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
                f'state = "{folder / node}.state"\n{self._pump}[uplink]\n{self._way.up("room")}'
                f'[sensor]\nkind = "ndjson"\n{channels}{timing}min_rows = 1\n'
            )
        parent = CHAIN[node]
        above = "" if parent is None else f'[parent]\nname = "{parent}"\n{self._way.up(parent)}'
        schema = channels.replace("[schema]", "[groups.pumps.schema]") if parent is None else ""
        timing += f"model_every_s = {min(self._every_s, 60.0)}\n"
        return (
            f'node = "{node}"\nstore = "{folder / node}.store"\n{self._way.listens(node)}{above}'
            f'[status]\naddress = ""\n[groups.pumps.summary]\nrank = 2\n{schema}{timing}'
        )
