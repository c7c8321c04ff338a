"""Feeding: readings that can be told apart, whatever becomes of them.

Each reading of a fleet has a number of its own, an id, as its first channel. The second is the
id's square modulo a prime: what leaves one sum as it was changes the other. Then there is a
channel for each life of a client, 1 for readings of that life and 0 for all others, so that
any summary says by its mean how many readings of which life it holds.

A process is fed ids in a known order, and what its life has learnt is always the beginning of
that: from "n of this life" follows which readings they are.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from support.patience import PATIENCE_S
from support.programs import Program

PRIME = 4093
MARKS = 2
"""Channels before those of lives: the id, and its square modulo PRIME."""

PACE_S = 0.05
"""Between two handfuls of readings."""


@dataclass
class Fed:
    """What one process, and so one life of a client, was given to read.

    Attributes
    ----------
    client : str
    number : int
        Of the life, among those of its client; its channel.
    ids : list of int
        In order; the last of them may not have arrived.
    """

    client: str
    number: int
    program: Program
    ids: list[int] = field(default_factory=list)


class Feeder:
    """Feeds one process until it dies, or is told to stop.

    Parameters
    ----------
    fed : Fed
    ids : iterator of int
        The fleet's: no id comes twice.
    incarnations : int
        Channels for lives.
    rows_per_s : float
    """

    def __init__(
        self, fed: Fed, ids: Iterator[int], *, incarnations: int, rows_per_s: float
    ) -> None:
        self._fed, self._ids = fed, ids
        self._handful = max(1, round(rows_per_s * PACE_S))
        self._rest = "".join(f",{int(current == fed.number)}" for current in range(incarnations))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Feed no more, and return when the last reading is in the pipe."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"it reads no more:\n{self._fed.program.log}"

    def _feed(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            due += PACE_S
            some = list(itertools.islice(self._ids, self._handful))
            self._fed.ids += some
            lines = "".join(f"[{each},{each * each % PRIME}{self._rest}]\n" for each in some)
            if not self._fed.program.write(lines.encode()):
                return


def channels(incarnations: int) -> list[str]:
    """Name the channels of a fleet whose clients have so many lives at most."""
    return ["id", "mark", *(f"life-{number}" for number in range(incarnations))]


def sums(ids: list[int], number: int, incarnations: int) -> tuple[np.ndarray, float]:
    """Return the sum of some readings of one life, (2 + lives,), and of all their squares."""
    first = np.array(ids, dtype=np.int64)
    second = first * first % PRIME
    total = np.zeros(MARKS + incarnations)
    total[:MARKS] = first.sum(), second.sum()
    total[MARKS + number] = len(ids)
    squares = (first * first).sum() + (second * second).sum() + len(ids)
    return total, float(squares)
