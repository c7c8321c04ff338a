"""Watched: a fleet as the page sees it: questions to it, its newest trees, and what changes."""

from __future__ import annotations

from collections.abc import Callable

from submerge_aggregator.page.calls import AdminCalls
from submerge_aggregator.page.changes import Changes
from submerge_aggregator.page.fleet_tree import FRESH_S, FleetTrees
from submerge_aggregator.page.score_trees import FRESH_S as SCORES_FRESH_S
from submerge_aggregator.page.score_trees import ScoreTrees


class Watched:
    """What all open pages share.

    wall : Wall time, in seconds.
    """

    def __init__(self, calls: AdminCalls, wall: Callable[[], float]) -> None:
        self.calls, self.wall = calls, wall
        self.trees = FleetTrees(calls, wall)
        self.scores = ScoreTrees(calls, self.trees, wall)
        self.changes = Changes(calls, self._stamp)

    def _stamp(self) -> dict[str, str]:
        """Return what changes by the clock alone: when trees are worth asking for."""
        wall = self.wall()
        return {"fleet": str(int(wall // FRESH_S)), "scores": str(int(wall // SCORES_FRESH_S))}
