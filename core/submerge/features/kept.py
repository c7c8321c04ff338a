"""kept(): a cache of weights, buckets and roots for as long as their map exists.

Cached values are not part of the map: equality, hashes, copies and pickles ignore them. Equal
maps, such as those of several nodes in one process, share them; different maps do not evict
each other. The values of a map that no longer exists are freed, except those of a few recent
maps: an equal map that is constructed for each block of rows finds them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

M = TypeVar("M")
P = ParamSpec("P")
T = TypeVar("T")

SHAPES = 4
"""Values cached for one map: they differ by the rows' channels and by whether rows are sparse."""

RECENT = 4
"""Maps whose values are held even if no other reference to the map exists."""


def kept(build: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Return `build(map, ...)` with its results cached.

    The map must be hashable and weakly referable, and not part of the result.
    """
    built: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()
    recent: deque[Any] = deque(maxlen=RECENT)

    @wraps(build)
    def cached(map_: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        of_map = built.get(map_)
        if of_map is None:
            of_map = built.setdefault(map_, {})
        key = (*args, *kwargs.items())
        try:
            found: T = of_map[key]
        except KeyError:
            found = build(map_, *args, **kwargs)
            # Two threads may both come here; they build the same.
            while len(of_map) >= SHAPES:
                of_map.pop(next(iter(of_map)), None)
            of_map[key] = found
            recent.append(map_)
        return found

    return cached
