"""FleetObserver: receives the events of a simulated fleet; the oracles are such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from submerge.protocol.machine import Effect, Event, Note, Records
from submerge_lab.simulator.hosts import Host


class FleetObserver:
    """Receives the events of a fleet, and does nothing with them."""

    def on_step(self, host: Host, event: Event, effects: list[Effect]) -> None:
        """Handle a node's decision; nothing is performed yet."""

    def on_note(self, host: Host, note: Note) -> None:
        """Handle what a process says, or answers to an operator."""

    def on_write(self, host: Host) -> None:
        """Handle a changed store."""

    def on_failed_write(self, host: Host) -> None:
        """Handle a failed write."""

    def on_death(self, host: Host) -> None:
        """Handle a process that is about to die."""

    def on_disk_change(self, host: Host, before: Records, after: Records, why: str) -> None:
        """Handle a disk that was replaced by another, or is gone."""

    def on_clone(self, host: Host) -> None:
        """Handle a copied disk, on which a second process is about to run."""

    def on_double(self, host: Host) -> None:
        """Handle a machine copied with its memory: two processes continue one incarnation."""

    def on_move(self, host: Host) -> None:
        """Handle a node that has another parent from now on."""

    def on_forget(self, node: str) -> None:
        """Handle an operator's order to forget a client, before it is carried out."""

    def on_order(self, event: Event, *, answered: bool) -> None:
        """Handle an operator's order; a root that ended without an answer may have kept it."""


class Observers(FleetObserver):
    """Several observers as one: each event is passed on to all."""

    def __init__(self, *observers: FleetObserver) -> None:
        self._observers = observers


def _passing_on(name: str) -> Callable[..., None]:
    def pass_on(observers: Observers, *args: Any, **more: Any) -> None:
        for each in observers._observers:
            getattr(each, name)(*args, **more)

    return pass_on


for _name in [each for each in vars(FleetObserver) if each.startswith("on_")]:
    setattr(Observers, _name, _passing_on(_name))
