"""What the history says, as plain values, as in `questions.views`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeLevels:
    """The levels of a node, a byte a step: `submerge.protocol.score_trail` says what they mean."""

    node: str
    levels: bytes


@dataclass(frozen=True, slots=True)
class ScoresPage:
    """How close the nodes that report to one aggregator came to alarms, over time.

    step_s : Seconds of a step, a multiple of 60. Its level is the highest of its minutes.
    first_s : When the first step begins, Unix seconds, a multiple of `step_s`.
    nodes : In the order of their names.
    more : More nodes follow after the last name.
    """

    aggregator: str
    group: str
    step_s: int
    first_s: int
    nodes: list[NodeLevels]
    more: bool = False


@dataclass(frozen=True, slots=True)
class VersionView:
    """A version of a group's model.

    created_s : When the root made it, Unix seconds.
    rank : Directions that nodes score with.
    nodes, readings : How many nodes it is of, and how many readings they had learnt.
    angle_deg : Largest principal angle to the version that was kept before; None where that is not
        known, or of another schema.
    spectrum : Variance along each direction, the largest first, at most 32.
    """

    version: int
    created_s: float
    rank: int
    nodes: int
    readings: int
    angle_deg: float | None
    spectrum: list[float]
