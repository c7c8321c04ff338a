"""Who stands beside ours: each method with its settings, by the name that the table shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contest.contender import Contender, MakeContender, Submerge
from contest.trackers.frequent_directions import FrequentDirections
from contest.trackers.grouse import Grouse
from contest.trackers.moses import Moses
from contest.trackers.oja import Oja
from contest.trackers.power_method import PowerMethod
from contest.trackers.running_scatter import RunningScatter
from contest.trackers.spirit import Spirit

LineUp = Mapping[str, Callable[[], Contender]]


def line_up(rank: int, others: Mapping[str, MakeContender] | None = None) -> LineUp:
    """Return ours, the methods of the literature at one fair setting each, and others by name."""
    own: dict[str, Callable[[], Contender]] = {
        "submerge": lambda: Submerge(rank),
        'submerge, exact="never"': lambda: Submerge(rank, exact="never"),
        "MOSES": lambda: Moses(rank),
        "Frequent Directions, l = r + 1": lambda: FrequentDirections(rank, rank + 1),
        "Frequent Directions, l = 2 r": lambda: FrequentDirections(rank, 2 * rank),
        "SPIRIT (PAST), fixed rank": lambda: Spirit(rank, forgetting=1.0, energy=None),
        "GROUSE, greedy step": lambda: Grouse(rank, step=None),
        "Oja": lambda: Oja(rank),
        "Power Method": lambda: PowerMethod(rank),
        "running scatter": lambda: RunningScatter(rank),
    }
    return own | {name: _at(make, rank) for name, make in (others or {}).items()}


def _at(make: MakeContender, rank: int) -> Callable[[], Contender]:
    return lambda: make(rank)
