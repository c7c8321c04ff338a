"""LastingFleet: the demo's fleet, where processes end because a viewer wants them to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

from submerge_lab.demo.feed import Stint
from submerge_lab.demo.fleet import DemoFleet
from submerge_lab.demo.nodes import Node
from submerge_lab.demo.page.fed_process import FedProcess
from submerge_lab.demo.scores import read_line
from submerge_lab.demo.site import Site, SiteMember

Verb = Literal["kill", "stop", "start"]

READ_S = 1.0
"""Seconds that a client has to read what it was given before it is asked to end."""

END_S = 5.0
"""Seconds that all nodes of one level have to end, at the end of the demo."""


class LastingFleet(DemoFleet):
    """All nodes; they are killed, stopped and started again at any time.

    since : When each node's state last changed, Unix seconds.
    fed : All processes of each client.
    """

    def __init__(self, site: Site, members: Iterable[SiteMember]) -> None:
        super().__init__(site, tuple(members), ())
        self.since: dict[str, float] = {}
        self.fed: dict[str, list[FedProcess]] = {node.name: [] for node in self.of("client")}
        self._states: dict[str, str] = {}
        self._stopping: dict[str, float] = {}
        self._has_begun = False

    # -- what a viewer wants -------------------------------------------------------

    def verbs(self, node: Node) -> tuple[Verb, ...]:
        """Return what can be done with a node now."""
        if node.process is None:
            return ("start",)
        if node.state == "killed":
            return ()  # it has not ended yet
        return ("kill",) if node.state == "stopping" else ("kill", "stop")

    def do(self, verb: Verb, node: Node) -> None:
        """Kill, stop or start a node, if that is possible now."""
        if verb not in self.verbs(node):
            return
        if verb == "kill":
            self.kill(node)
        elif verb == "start":
            self.start_node(node)
        else:
            node.state = "stopping"
            self._stopping[node.name] = time.monotonic()

    def tend(self) -> None:
        """Ask nodes to end that are to stop, once they have read what they were given."""
        now = time.monotonic()
        for name, began in list(self._stopping.items()):
            node = self.nodes[name]
            has_read = all(
                process.scored >= process.given for process in self.fed.get(name, [])[-1:]
            )
            if has_read or now - began > READ_S:
                del self._stopping[name]
                if node.process is not None and node.state == "stopping":
                    node.process.end()
        for node in self.nodes.values():
            if self._states.get(node.name) != node.state:
                self._states[node.name], self.since[node.name] = node.state, time.time()

    @property
    def hungry(self) -> list[Stint]:
        """Client processes that may be fed."""
        return [self.fed[node.name][-1] for node in self.of("client") if node.state == "running"]

    # -- processes -----------------------------------------------------------------

    def start(self, show: Callable[[], None]) -> None:
        """Start all nodes, and wait until they run."""
        super().start(show)
        self._has_begun = True

    def start_node(self, node: Node) -> None:
        """Start a node, the first time or again."""
        super().start_node(node)
        if node.name in self.fed:
            node.rebuilt.clear()
            node.stints[:] = [FedProcess(node.name)]
            self.fed[node.name] += node.stints  # type: ignore[arg-type]

    def feed(self, process: Stint, row: bytes) -> None:
        """Write a row to a client."""
        node = self.nodes[process.node]
        if node.process is not None:
            self.processes.write(node.process, row)

    def end_clients(self) -> None:
        """End clients, each when it has read and reported everything, within seconds."""
        self._closing = True
        clients = self.of("client")
        for node in clients:
            if node.process is not None:
                self.processes.close_input(node.process)
        self._wait_briefly(clients)

    def end_others(self) -> None:
        """End aggregators, then the root, then the broker; `processes` kills what still runs."""
        for role in ("aggregator", "root", "broker"):
            nodes = self.of(role)
            for node in nodes:
                if node.process is not None:
                    node.process.end()
            self._wait_briefly(nodes)

    def _wait_briefly(self, nodes: list[Node]) -> None:
        until = time.monotonic() + END_S
        while any(node.process is not None for node in nodes) and time.monotonic() < until:
            self.wait()

    # -- what they write -----------------------------------------------------------

    def _read_score(self, node: Node, raw: bytes) -> None:
        line = read_line(raw)
        node.stints[-1].scored = line.row + 1
        node.note_score(line)

    def _read_event(self, node: Node, raw: bytes) -> None:
        """Leave alarms to the page."""

    def _take_note(self, node: Node, what: str, note: dict[str, Any]) -> None:
        super()._take_note(node, what, note)
        if node.name not in self.fed:
            return
        process = self.fed[node.name][-1]
        if what == "acknowledged":
            process.claim(note["incarnation"], note["seq"], note["readings"])
        elif what == "ended":
            process.end_by_its_words(note["rows"], note["lost"])

    def _end(self, node: Node, status: int) -> None:
        if not self._has_begun:
            super()._end(node, status)
            return
        node.process = None
        for process in node.stints[-1:]:
            process.ended = True
        if node.state != "killed":
            asked = self._closing or node.state == "stopping"
            node.state = ("ended" if self._closing else "stopped") if asked else "failed"
