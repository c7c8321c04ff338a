"""The account of false alarms: how many were promised, how many came, and what that proves.

Let a node raise alarms at a rate of at most r, whatever happened before. Then for every m > 1

    m^N exp(-(m - 1) A),    N alarms raised, A = the integral of r promised

is a supermartingale that begins at 1, and so is its mean over several m. By Ville's inequality it
ever exceeds 20 with a probability of at most 1/20. So it may be looked at every day: it is evidence
of so many to one that more alarms come than promised. It assumes that nodes raise alarms
independently of each other, given the past: one storm over all nodes is one event, and looks like
many.

References
----------
Ville, Etude critique de la notion de collectif (1939). Ramdas, Grunwald, Vovk and Shafer,
Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38 (2023).
"""

from __future__ import annotations

import numpy as np

MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0)
"""How many times as often as promised alarms may come: the evidence is the mean over these."""

ENOUGH = 20.0
"""Evidence that is believed: 20 to 1."""

MOST = 64.0
"""Largest multiple that is distinguished."""

LARGEST = 1e12
"""Evidence is cut to this size."""

LEAST_NODES = 3
"""Least number of nodes whose unconfirmed alarms say anything of their group's limits."""

EACH = 2.0
"""Most alarms of one node that do, over those that were promised for it; and one more."""


def evidence(raised: int, promised: float, multiple: float = 1.0) -> float:
    """Return the evidence that alarms come more than `multiple` times as often as promised.

    Parameters
    ----------
    raised : int
        Alarms that no person has confirmed as faults.
    promised : float
        The most false alarms that the settings allow in the time watched.

    Returns
    -------
    float from 0 to `LARGEST`: 20 is 20 to 1. It is valid at any time, however often one looks.
    """
    m = np.array(MULTIPLES)
    logs = raised * np.log(m) - (m - 1) * multiple * promised
    return float(np.minimum(np.exp(np.minimum(logs, 100.0)).mean(), LARGEST))


def surely_more(raised: int, promised: float) -> float:
    """Return how many times as often as promised alarms come, at the least: 1 to `MOST`.

    There is evidence of `ENOUGH` to one against every smaller multiple.
    """
    if not promised > 0 or evidence(raised, promised) < ENOUGH:
        return 1.0
    low, high = 1.0, MOST
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (
            (middle, high) if evidence(raised, promised, middle) >= ENOUGH else (low, middle)
        )
    return low
