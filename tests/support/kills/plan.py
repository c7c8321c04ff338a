"""Plan: who is killed when, and how; from a seed, so that it can be told again.

Times are of the wall clock: the same plan meets the fleet in other moments each time.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from support.failing import AGGREGATOR_POINTS, CLIENT_POINTS

ROOT = "root"
PARENTS = {"north": ROOT, "south": ROOT, "n1": "north", "n2": "north", "s1": "south", "s2": "south"}
CLIENTS = tuple(node for node, parent in PARENTS.items() if parent != ROOT)
AGGREGATORS = (ROOT, *(node for node, parent in PARENTS.items() if parent == ROOT))

ANYWHERE = "anywhere"
"""`kill -9` from outside, whatever it is doing."""

AS_IT_STARTS = "as it starts"
"""`kill -9` again, soon after it was started again."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One `kill -9`, and what follows it.

    Attributes
    ----------
    victim : str
    point : str
        Where it dies: a failpoint, or ANYWHERE.
    calls : int
        It dies when it comes there for this time.
    gap_s : float
        Since the kill before began.
    down_s : float
        Until it is started again.
    again_s : float or None
        So long after that it is killed once more, wherever it is.
    """

    victim: str
    point: str
    calls: int
    gap_s: float
    down_s: float
    again_s: float | None

    @property
    def kills(self) -> int:
        return 1 if self.again_s is None else 2


def plan(seed: int, kills: int) -> list[Kill]:
    """Return a plan of so many kills; every point comes up as often as any other."""
    rng = random.Random(seed)  # noqa: S311 - to be repeated
    deck: list[tuple[tuple[str, ...], str]] = []
    plans: list[Kill] = []
    while (left := kills - sum(each.kills for each in plans)) > 0:
        if not deck:
            deck += [(AGGREGATORS, point) for point in (ANYWHERE, *AGGREGATOR_POINTS)]
            deck += [(CLIENTS, point) for point in (ANYWHERE, *CLIENT_POINTS)]
            rng.shuffle(deck)
        victims, point = deck.pop()
        again = left > 1 and rng.random() < 0.15
        plans.append(
            Kill(
                victim=rng.choice(victims),
                point=point,
                calls=rng.randint(1, 4),
                gap_s=rng.uniform(0.0, 1.5),
                down_s=rng.uniform(0.0, 1.0),
                again_s=rng.uniform(0.0, 1.5) if again else None,
            )
        )
    return plans


def most_lives(plans: list[Kill]) -> int:
    """Return how many lives the client has that is killed most often."""
    deaths = Counter[str]()
    for each in plans:
        deaths[each.victim] += each.kills
    return 1 + max((deaths[client] for client in CLIENTS), default=0)
