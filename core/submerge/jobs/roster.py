"""Roster: who takes part in a job, as the tree that their contributions go up.

    {"hall": {"pump-1": incarnation, "pump-2": incarnation}, "gate": incarnation}

A client is a leaf, an aggregator a mapping. The order of sums depends on this tree alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Union

from submerge.errors import PeerError, UsageError
from submerge.protocol.messages import LATEST, Incarnation
from submerge.protocol.names import is_name

Roster = Mapping[str, Union[Incarnation, "Roster"]]
Place = Incarnation | Roster
"""One place in a roster: a client's incarnation, or all below an aggregator."""

MOST_MEMBERS = 4096
"""Clients of one job."""

DEEPEST = 16
"""Aggregators above one another."""


def leaves(place: Place | None, name: str = "") -> Iterator[tuple[str, Incarnation]]:
    """Yield the clients of a place, with their incarnations; `name` is that of the place."""
    if isinstance(place, Incarnation):
        yield name, place
    elif place is not None:
        for child, below in place.items():
            yield from leaves(below, child)


def names(place: Place | None, name: str = "") -> frozenset[str]:
    return frozenset(leaf for leaf, _ in leaves(place, name))


def size(place: Place | None) -> int:
    return sum(1 for _ in leaves(place))


def pruned(roster: Roster, kept: Collection[str]) -> Roster:
    """Return what is left of a roster if only some clients stay; no aggregator without any."""
    return _chosen(roster, lambda name: name in kept)


def without_repeats(roster: Roster, most: int = MOST_MEMBERS) -> Roster:
    """Return a roster in which each client is once, at most `most` of them."""
    # One that moved while the job opened keeps its nearest place: no child takes another's.
    seen: set[str] = set()

    def is_new(name: str) -> bool:
        if name in seen or len(seen) == most:
            return False
        seen.add(name)
        return True

    return _chosen(roster, is_new)


def _chosen(roster: Roster, takes: Callable[[str], bool]) -> Roster:
    chosen: dict[str, Place] = {}
    for name in sorted(roster, key=lambda name: (not isinstance(roster[name], Incarnation), name)):
        below = roster[name]
        if isinstance(below, Incarnation):
            if takes(name):
                chosen[name] = below
        elif rest := _chosen(below, takes):
            chosen[name] = rest
    return chosen


def written(place: Place | None) -> Any:
    if place is None or isinstance(place, Incarnation):
        return None if place is None else str(place)
    return {name: written(below) for name, below in place.items()}


def read(value: Any, depth: int = DEEPEST) -> Place | None:
    """Return the place that values of JSON name; PeerError if they name none, or one too large."""
    place = _read(value, depth)
    if size(place) > MOST_MEMBERS:
        raise PeerError(f"a job has at most {MOST_MEMBERS} participants", kind="oversize")
    return place


def _read(value: Any, depth: int) -> Place | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            incarnation = Incarnation.parse(value)
        except UsageError as error:
            raise PeerError(str(error), kind="name") from error
        if incarnation.created_ms > LATEST:
            raise PeerError(f"an incarnation is created by {LATEST} ms", kind="range")
        return incarnation
    if not isinstance(value, dict) or depth == 0 or not all(map(is_name, value)):
        raise PeerError(f"a roster has names and incarnations, {DEEPEST} levels", kind="name")
    found = {name: _read(below, depth - 1) for name, below in value.items()}
    return {name: below for name, below in found.items() if below is not None}
