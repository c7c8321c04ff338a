"""`submerge demo --page`: a demo that goes on, and starts a killed process again. People look at
the root's own page. The room's time runs to its last day and then back, since nothing jumps where
it turns: each fault is found, ends, and is found again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from submerge import Array
from submerge_lab.demo.failures import DOWN_S
from submerge_lab.demo.feed import Dealer
from submerge_lab.demo.fleet import DemoFleet, Node
from submerge_lab.demo.run import DemoSettings, counts_of, site_of, trial_of
from submerge_lab.demo.scores import read_line
from submerge_lab.demo.site import LOOPBACK, ROOT, Site, SiteMember, Wire, free_ports, members
from submerge_lab.plants.room import DAY, Room

REPORT_EVERY_S = 1.0
"""Of clients: calmer than in a demo that takes half a minute."""

SETTLES_FASTER = 10.0
"""The days without faults, in which the fleet learns, pass so much faster."""

END_S = 5.0
"""Seconds that all nodes of one level have to end, at the end of the demo."""

CHUNK = 48
"""Snapshots that are read together."""

ENDLESS = 1 << 62
"""Snapshots to deal."""


class LastingFleet(DemoFleet):
    """All nodes; one that ends by itself is started again, as by a supervisor."""

    def __init__(
        self, site: Site, members: Sequence[SiteMember], show: Callable[[str], None]
    ) -> None:
        super().__init__(site, members, ())
        self._show = show
        self._ended: dict[str, float] = {}
        self.link = ""

    def tend(self) -> None:
        """Start what has ended a moment ago."""
        for name, at in list(self._ended.items()):
            if time.monotonic() - at >= DOWN_S:
                del self._ended[name]
                node = self.nodes[name]
                self.start_node(node)
                self._show(f"{'again':<10} {said_of(node)}")

    def _take_note(self, node: Node, what: str, note: dict[str, Any]) -> None:
        """Take the link to the root's page, which is good once."""
        super()._take_note(node, what, note)
        if what == "page":
            self.link = note["url"]

    def _end(self, node: Node, status: int) -> None:
        if self._closing or node.state == "starting":
            super()._end(node, status)
            return
        node.process, node.state = None, "killed"
        self._ended[node.name] = time.monotonic()
        for stint in node.stints[-1:]:
            stint.killed = stint.ended = True

    def _wait_for_the_end(self, nodes: Any, show: Callable[[], None]) -> None:
        """Wait for seconds; who has no parent any more cannot report, and is killed then."""
        waiting, until = list(nodes), time.monotonic() + END_S
        while any(node.process is not None for node in waiting) and time.monotonic() < until:
            self.wait()

    def _pass_over(self, stint: Any, until: int) -> None:
        """Do nothing: no score is waited for."""

    def _read_score(self, node: Node, raw: bytes) -> None:
        line = read_line(raw)
        node.stints[-1].scored = line.row + 1
        node.note_score(line)

    def _read_event(self, node: Node, raw: bytes) -> None:
        """Leave alarms to the page."""


class EndlessRoom:
    """Snapshots of a room, by how many came before."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._first, self._rows = 0, room.readings(0, 0)

    def place(self, number: int) -> int:
        """Return which of the room's snapshots the one with this number is."""
        total = self.room.n_snapshots
        back, place = divmod(number, total)
        return total - 1 - place if back % 2 else place

    def row(self, number: int) -> Array:
        """Return a snapshot as it is read, (channels,), NaN where a mote was silent."""
        place = self.place(number)
        if not 0 <= place - self._first < len(self._rows):
            self._first = place - place % CHUNK
            last = min(self._first + CHUNK, self.room.n_snapshots)
            self._rows = self.room.readings(self._first, last)
        row: Array = self._rows[place - self._first]
        return row


class PageDemo:
    """A demo that goes on until it is interrupted."""

    def __init__(
        self,
        settings: DemoSettings,
        folder: Path,
        wire: Callable[[tuple[SiteMember, ...]], Wire],
        show: Callable[[str], None],
    ) -> None:
        self.settings, self._show = settings, show
        room = Room(seed=settings.seed, days=settings.days, quiet_days=settings.settle_days)
        who = members(settings.clients)
        page = f"{LOOPBACK}:{free_ports(['page'])['page']}"
        self.site = site_of(
            settings, room, folder, wire(who), report_every_s=REPORT_EVERY_S, page=page
        )
        self.fleet = LastingFleet(self.site, who, show)
        self.dealer = Dealer(ENDLESS, trial_of(settings))
        self._room = EndlessRoom(room)

    def run(self) -> None:
        """Run until Ctrl-C, then end all processes and print what became of the rows."""
        with self.fleet.processes:
            try:
                self.fleet.start(lambda: None)
                self._show(f"{'page':<10} {self.fleet.link}")
                self._show(f"{'fleet':<10} " + ", ".join(map(said_of, self.fleet.nodes.values())))
                self._show(f"{'try':<10} kill one of these process ids; Ctrl-C ends all of them")
                open_page(self.fleet.link)
                while True:
                    self.fleet.wait()
                    self.tick()
            except KeyboardInterrupt:
                self._show(f"{'ending':<10} each process reports what it has")
                self.fleet.close(lambda: None)
        root = counts_of(self.site.store(self.fleet.nodes[ROOT].member))
        fed = self.dealer.dealt
        click.echo(
            f"{'readings':<10} {fed:,} fed = {root.learnt + root.withheld:,} counted"
            f" + {root.lost:,} declared lost + {fed - root.generated:,} lost with killed processes"
        )

    def tick(self) -> None:
        """Start what has ended, and feed what is due."""
        self.fleet.tend()
        rate = self.settings.days * DAY / self.settings.seconds
        if self.dealer.dealt < self.settings.settle_days * DAY:
            rate *= SETTLES_FASTER
        for number, stint in self.dealer.deal(self.fleet.running, time.monotonic(), rate=rate):
            self.fleet.give(stint, self._room.row(number))


def said_of(node: Node) -> str:
    """Return a node's name and its process id."""
    return f"{node.name} {node.process.pid if node.process else '-'}"


def open_page(url: str) -> None:
    """Show a page in this machine's browser, where a person sits before it."""
    has_screen = sys.platform != "linux" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if has_screen and sys.stdout.isatty() and not os.environ.get("SSH_CONNECTION"):
        from submerge_files.console.browser import show

        show(url)
