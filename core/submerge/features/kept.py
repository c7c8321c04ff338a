"""What a map works out once: weights, buckets, roots, for as long as the map lives.

They are no part of the map: equality, hashes, copies and pickles know nothing of them. Equal
maps, as the nodes of one process have them, share what the first of them worked out; however
many different ones take turns, each keeps its own. What nobody can ask for is gone, but for
that of a few maps: one that is made anew for each block of rows finds it there.
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
"""Kinds of rows, by channels and by whether they are sparse, that are kept of one map."""

RECENT = 4
"""Maps that are held though nobody else may: the last for which something was worked out."""


def kept(build: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Return `build(map, ...)`, which asks only once what it is asked again.

    The map must be hashable, able to be referred to weakly, and no part of what is built.
    """
    built: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()
    recent: deque[Any] = deque(maxlen=RECENT)

    @wraps(build)
    def known(map_: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        of_map = built.get(map_)
        if of_map is None:
            of_map = built.setdefault(map_, {})
        key = (*args, *kwargs.items())
        try:
            found: T = of_map[key]
        except KeyError:
            found = build(map_, *args, **kwargs)
            # Two threads may both come here: they build the same.
            while len(of_map) >= SHAPES:
                of_map.pop(next(iter(of_map)), None)
            of_map[key] = found
            recent.append(map_)
        return found

    return known
