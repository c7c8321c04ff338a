"""scores_page(): the levels of nodes over time, so many nodes as one reply has room for."""

from __future__ import annotations

from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.messages import MOST_BODY, MOST_STEP_S
from submerge.protocol.score_trail import MINUTE_S
from submerge_aggregator.history.file import HistoryFile
from submerge_aggregator.history.levels import HOUR, steps_of
from submerge_aggregator.history.views import NodeLevels, ScoresPage

MOST_STEPS = 2016
"""Most steps that can be asked for: a week of five minutes each."""

FRAME, OF_NODE = 300, 30
"""Bytes of a page without its nodes, and of a node without its name and its levels."""


class ScoreSteps(NamedTuple):
    """The steps that are asked for.

    since_s : Unix seconds in the first step
    step_s : a multiple of 60
    """

    since_s: int
    step_s: int

    @property
    def first_s(self) -> int:
        """When the first step begins."""
        return self.since_s // self.step_s * self.step_s

    def count(self, wall: float) -> int:
        """Return the number of steps up to now; 0 if the first one is yet to come.

        Raises UsageError if there are too many, or the length of a step is none that can be asked
        for.
        """
        if self.step_s % MINUTE_S or not MINUTE_S <= self.step_s <= MOST_STEP_S:
            raise UsageError(
                f"a step is a multiple of 60 s, at most {MOST_STEP_S}, got {self.step_s}"
            )
        count = max(0, int((wall - self.first_s) // self.step_s) + 1)
        if count > MOST_STEPS:
            raise UsageError(
                f"expected at most {MOST_STEPS} steps, got {count}: ask for longer steps, or for"
                " less time"
            )
        return count


class ScoresAsked(NamedTuple):
    """Whose scores are asked for, and when.

    node : of this one only; empty: of all
    after : of those that follow after this name
    """

    group: str
    steps: ScoreSteps
    node: str = ""
    after: str = ""


def scores_page(file: HistoryFile, me: str, asked: ScoresAsked, wall: float) -> ScoresPage:
    """Return levels of the nodes that report here.

    me : this aggregator's name
    wall : now, Unix seconds

    Raises UsageError if no page can have so many steps.
    """
    steps, count = asked.steps, asked.steps.count(wall)
    first, step = int(steps.first_s // MINUTE_S), int(steps.step_s // MINUTE_S)
    hours = range(first // HOUR, (first + step * count - 1) // HOUR + 1)
    size, of_node = FRAME, OF_NODE + 4 * -(-count // 3)
    found = file.levels(
        *(asked.group, hours),
        node=asked.node,
        after=asked.after,
        most=1 + max(1, (MOST_BODY - size) // of_node),
    )
    nodes = list[NodeLevels]()
    for name, levels in found.items():
        size += of_node + len(name)
        if nodes and size > MOST_BODY:
            return ScoresPage(me, asked.group, steps.step_s, steps.first_s, nodes, more=True)
        nodes.append(NodeLevels(name, steps_of(levels, first, step, count)))
    return ScoresPage(me, asked.group, steps.step_s, steps.first_s, nodes)
