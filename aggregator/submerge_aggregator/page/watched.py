"""Watched: a fleet as the page sees it: questions to it, its newest trees, and what changes."""

from __future__ import annotations

from collections.abc import Callable

from submerge_aggregator.page.calls import AdminCalls
from submerge_aggregator.page.changes import Changes
from submerge_aggregator.page.fleet_tree import FRESH_S, FleetTrees


class Watched:
    """What all open pages share.

    Attributes
    ----------
    calls : AdminCalls
    wall : callable
        Wall time, in seconds.
    trees : FleetTrees
    changes : Changes
    """

    def __init__(self, calls: AdminCalls, wall: Callable[[], float]) -> None:
        self.calls, self.wall = calls, wall
        self.trees = FleetTrees(calls, wall)
        self.changes = Changes(calls, self._stamp)

    def _stamp(self) -> dict[str, str]:
        """Return what changes by the clock alone: when the tree of nodes is worth asking for."""
        return {"fleet": str(int(self.wall() // FRESH_S))}
