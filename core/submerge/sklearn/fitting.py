"""What every `fit` here keeps to: all of it, or nothing; and what its parameters may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from submerge.errors import whole

MOST_STATE = 2**32 - 1
"""As scikit-learn's own `random_state`."""


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Put an estimator's attributes back if what follows is refused.

    scikit-learn's checks write `n_features_in_` and names before anything is learnt.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def seed_of(random_state: Any) -> int:
    """Return a seed, an int: what is drawn must be the same on every machine, and drawn again."""
    return whole("random_state", random_state, least=0, most=MOST_STATE)
