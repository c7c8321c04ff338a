"""`submerge demo --page`: it feeds the room on and on, does what viewers want, and keeps books."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from submerge_lab.demo.feed import Dealer
from submerge_lab.demo.outcome import DemoSettings
from submerge_lab.demo.page.books import Books, Line
from submerge_lab.demo.page.endless import EndlessRoom
from submerge_lab.demo.page.fleet import LastingFleet
from submerge_lab.demo.page.held_counts import EVERY_S, AuditThread
from submerge_lab.demo.page.serving import PageThread, make_token
from submerge_lab.demo.page.state import DemoState, state_of
from submerge_lab.demo.page.views import Orders, demo_views
from submerge_lab.demo.run import site_of, trial_of
from submerge_lab.demo.site import GROUP, ROOT, SiteMember, Wire, members
from submerge_lab.plants.room import DAY, Room

REPORT_EVERY_S = 1.0
"""Of clients: calmer than in a demo that takes half a minute."""

SETTLES_FASTER = 10.0
"""The days without faults, in which the fleet learns, pass so much faster."""

SHOWN_S = 0.25
"""Between two states of what the view shows."""

LAST_S = 3.0
"""Seconds that the root has at the end to get what aggregators hold."""

ENDLESS = 1 << 62
"""Snapshots to deal."""


class PageDemo:
    """A demo that goes on.

    orders : Of viewers: a verb, and a process's name.
    shown : What the view shows.
    """

    def __init__(
        self, settings: DemoSettings, folder: Path, wire: Callable[[tuple[SiteMember, ...]], Wire]
    ) -> None:
        self.settings = settings
        room = Room(seed=settings.seed, days=settings.days, quiet_days=settings.settle_days)
        who = members(settings.clients)
        self.site = site_of(
            settings, room, folder, wire(who), report_every_s=REPORT_EVERY_S, watched=True
        )
        self.fleet = LastingFleet(self.site, who)
        self.orders: Orders = Orders()
        parents = {each.name: str(each.parent) for each in who if each.role == "client"}
        self.books = Books(parents, ROOT)
        self._room = EndlessRoom(room)
        self._dealer = Dealer(ENDLESS, trial_of(settings))
        aggregators = (*self.fleet.of("root"), *self.fleet.of("aggregator"))
        # As `questions.views.socket_of` has it.
        sockets = {node.name: Path(f"{self.site.store(node.member)}.sock") for node in aggregators}
        self._asker = AuditThread(sockets, GROUP)
        self._asked, self._asked_at, self._waits = 0, 0.0, False
        self._encode = msgspec.json.Encoder().encode
        self._shown_at = 0.0
        self.shown = self._state()

    def run(self, show: Callable[[str], None]) -> Line | None:
        """Run until it is interrupted; return the line at the end.

        show : takes what a person reads

        Raises
        ------
        FleetFailed
            If a node does not start at first.
        """
        root = self.fleet.nodes[ROOT].member
        views = demo_views(lambda: self.shown, self.orders, make_token(self.site.store(root)))
        self.site.write([root])
        with self.fleet.processes, PageThread(self.site.config(root), views) as page:
            try:
                show(f"{'page':<10} {page.url}demo")
                open_page(f"{page.url}demo")
                self.fleet.start(self._tick)
                show(f"{'fleet':<10} {len(self.fleet.nodes)} processes run; Ctrl-C ends them")
                self._asker.start()
                while True:
                    self.fleet.wait()
                    self._tick()
                    self._feed()
                    self._keep_books()
            except KeyboardInterrupt:
                show(f"{'ending':<10} each process reports what it has")
                self._end()
        return self.books.line

    def _tick(self) -> None:
        """Do what viewers want, and show what is so now."""
        while not self.orders.empty():
            verb, name = self.orders.get()
            self.fleet.do(verb, self.fleet.nodes[name])
        self.fleet.tend()
        if time.monotonic() - self._shown_at >= SHOWN_S:
            self._shown_at = time.monotonic()
            self.shown = self._state()

    def _state(self) -> DemoState:
        day = self._room.place(self._dealer.dealt) / DAY
        return state_of(self.fleet, self.books.line, day=day)

    def _feed(self) -> None:
        rate = self.settings.days * DAY / self.settings.seconds
        if self._dealer.dealt < self.settings.settle_days * DAY:
            rate *= SETTLES_FASTER
        for number, process in self._dealer.deal(self.fleet.hungry, time.monotonic(), rate=rate):
            row = self._room.row(number)
            self.fleet.feed(process, self._encode(row.tolist()) + b"\n")

    def _keep_books(self, every_s: float = EVERY_S) -> None:
        """Begin a round of questions when it is time, and take the answers to one."""
        now = time.monotonic()
        if not self._waits and now - self._asked_at >= every_s:
            self._asked, self._asked_at, self._waits = self._asked + 1, now, True
            self.books.begin(self.fleet.fed)
            self._asker.ask(self._asked)
        if not self._asker.rounds.empty():
            self.books.end(self.fleet.fed, self._asker.rounds.get().answers)
            self._waits = False

    def _end(self) -> None:
        """End the clients, ask until the root has everything, and end the others."""
        self.fleet.end_clients()
        last_fed = self._asked
        until = time.monotonic() + LAST_S
        while (
            self._asker.is_alive() and not self._is_settled(last_fed) and time.monotonic() < until
        ):
            self.fleet.wait()
            self._keep_books(every_s=0.0)
        self._asker.ask(0)
        self.fleet.end_others()

    def _is_settled(self, round_before: int) -> bool:
        """Whether a round after the given one has found nothing on its way to the root."""
        line, is_later = self.books.line, self._asked > round_before
        return is_later and not self._waits and line is not None and not line.in_aggregators


def show_page(
    settings: DemoSettings,
    folder: Path,
    wire: Callable[[tuple[SiteMember, ...]], Wire],
    *,
    quiet: bool,
) -> int:
    """Run a demo with a page; return the exit status.

    Raises
    ------
    FleetFailed
        If a node does not start.
    """
    demo = PageDemo(settings, folder, wire)
    line = demo.run(lambda text: None if quiet else click.echo(text))
    if line is None:
        return 0
    terms = f"fed {line.fed:,} = counted {line.counted:,} + under way {line.under_way:,}"
    verdict = "" if line.holds else "; WRONG: " + ("; ".join(line.wrong) or f"off by {line.off:,}")
    click.echo(f"{'line':<10} {terms} + declared lost {line.lost:,}{verdict}")
    return 0 if line.holds else 1


def open_page(url: str) -> None:
    """Show a page in this machine's browser, where a person sits before it."""
    has_screen = sys.platform != "linux" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if has_screen and sys.stdout.isatty() and not os.environ.get("SSH_CONNECTION"):
        import webbrowser

        webbrowser.open(url)
