"""Points: the rows that a participant holds for a job, frozen when it opens, and those held out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import PeerError, ShapeError, UsageError, whole
from submerge.features.draws import uniforms, words, words_at
from submerge.jobs.arrays import Arrays, check_at_most
from submerge.jobs.job import Settings
from submerge.jobs.row_groups import LEAST_ROWS, Labels, near_groups
from submerge.protocol.machine import Key, Now

MOST_HELD_OUT = 0.9
LARGEST_READING = 1e20
"""Rows that are scaled stay far below it, and so do those that landmarks are chosen from. Sums of
squares over all rows that there are may travel."""

MOST_HELD = 100_000
"""Rows that a client holds for jobs, whatever its configuration says."""


class JobPoints(NamedTuple):
    """What a participant gives a job: rows (n, width), and (m, width) to measure on only."""

    rows: Array
    held_out: Array
    may_share: int = 0  # rows that may leave the node as they are from now on
    groups: Labels | None = None  # of `rows`, `near_groups`; those of the rows as they are if None
    groups_out: Labels | None = None  # of `held_out`
    masking: Any = None  # `masks.Masking`, for jobs that are masked


class HeldRows(NamedTuple):
    """What a client holds of a schema, rows (n, width), before a job splits it."""

    fingerprint: str
    rows: Array
    order: Array  # (n,), the node's own, by which groups of near rows are held out


def key(seed: int, node: str, purpose: str) -> int:
    """Return the name of a stream of random numbers: the same wherever it is computed."""
    text = f"{seed} {node} {purpose}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def draws(seed: int, node: str, purpose: str, n: int) -> Array:
    """Return `n` numbers of (0, 1): of a node's i-th row it is always the i-th."""
    return uniforms(words(key(seed, node, purpose), 0, n))


def draws_at(seed: int, node: str, purpose: str, rows: npt.NDArray[np.uint64]) -> Array:
    """Return those numbers of `draws` that are of some rows (n,)."""
    return uniforms(words_at(key(seed, node, purpose), 0, rows))


def node_id(node: str) -> int:
    """Return the number that stands for a node where rows say whose they are."""
    return key(0, node, "node")


def check_nodes(arrays: Arrays, nodes: Iterable[str]) -> None:
    """Refuse rows of other nodes with a PeerError: an array `nodes` says whose they are."""
    if "nodes" in arrays and not set(arrays["nodes"].tolist()) <= set(map(node_id, nodes)):
        raise PeerError("rows are of nodes that do not take part there", kind="name")


def check_squares(count: float, mean: Array, squares: Array, clients: int) -> None:
    """Refuse a mean, and squares about it, that `count` rows do not have, with a PeerError."""
    if (squares < 0).any():
        raise PeerError("squares are not negative", kind="range")
    check_at_most("means", mean, LARGEST_READING * (count > 0), clients)
    # About zero: those about a mean grow where children with other means are merged.
    about_zero = squares + count * np.square(mean)
    check_at_most("squares", about_zero, count * LARGEST_READING**2, clients)


def seed_of(settings: Settings) -> int:
    """Return the seed of a job, which every kind knows; UsageError if it has not 63 bits."""
    seed = settings.get("seed", 0)
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise UsageError(f"seed must be a whole number from 0 to 2^63 - 1, got {seed!r}")
    return seed


def held_out_of(settings: Settings) -> float:
    """Return the share of rows that are held out, which every kind knows."""
    share = settings.get("held_out", 0.0)
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise UsageError(f"held_out must be a share, got {share!r}")
    if not 0.0 <= share <= MOST_HELD_OUT:
        raise UsageError(f"held_out must be 0 to {MOST_HELD_OUT}, got {share}")
    return float(share)


def split(rows: Array, settings: Settings, order: Array) -> JobPoints:
    """Return a copy of rows (n, width) without gaps, in those to learn from and those held out.

    Groups of near rows are held out as a whole, by their first row's order (n,), and eight stay.
    """
    if rows.ndim != 2:
        raise ShapeError("rows", expected="(n, width)", got=rows.shape)
    fits = (np.abs(rows) <= LARGEST_READING).all(axis=1)  # NaN is not
    rows = np.array(rows[fits], dtype=np.float64, order="C")
    share, n, groups = held_out_of(settings), len(rows), near_groups(rows)
    sizes = np.bincount(groups)
    firsts = np.unique(groups, return_index=True)[1]
    by_order = np.argsort(order[fits][firsts], kind="stable")
    most = min(share * n + 1e-9, n - LEAST_ROWS)
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[by_order[np.cumsum(sizes[by_order]) <= most]] = True
    # Sums over a single row would be that row.
    out = np.ones(1, dtype=bool) if n == 1 else chosen[groups]
    return JobPoints(rows[~out], rows[out], 0, groups[~out], groups[out])


# PointBudget: how many readings may leave a client as they are, in any 24 hours.
#
# 1. What is shared is kept before it is sent: a process that dies has counted too many if any.
# 2. A contribution that is sent again is not counted again: it is made once.
# 3. Time is that of the wall; within a process it has to pass on the steady clock as well. A wall
#    clock that goes back gives nothing back; one that was far ahead holds readings against the
#    budget for 24 hours of the right time.
# 4. A record that cannot be read counts as a budget that is spent now.

DAY_S = 86400.0
MOST_PER_DAY = 1_000_000
TOGETHER_MS = 600_000
"""Contributions within ten minutes are one entry: at most 145 are kept."""

NO_ONE_SHARES = (
    "no participant may share readings now: set share_points at clients, or wait where it is set:"
    " what has left counts for 24 hours"
)
"""Why a job of points fails for which no client supplies any."""

RECORD: Key = ("shared_points",)


class _Shared(NamedTuple):
    """Readings that were shared at a time; steady only of this process."""

    points: int
    wall_ms: int
    steady: float | None


class PointBudget:
    """A client's budget: readings that may leave in any 24 hours; 0: none."""

    def __init__(self, per_day: int) -> None:
        self.per_day = whole("share_points", per_day, least=0, most=MOST_PER_DAY)
        self._shared: list[_Shared] = []

    def load(self, record: bytes | None, now: Now) -> None:
        if record is None:
            return
        try:
            kept = [(int(points), int(wall)) for points, wall in json.loads(record)]
        except (ValueError, TypeError, OverflowError, RecursionError):
            kept = []
        # `spend` keeps one entry at least: what has none is damaged.
        kept = kept or [(self.per_day, now.wall_ms)]
        # A time that is still to come was of a clock that went back: it counts from now.
        self._shared = [_Shared(max(0, n), min(wall, now.wall_ms), None) for n, wall in kept]

    def left(self, now: Now) -> int:
        held = [each for each in self._shared if not _is_over(each, now)]
        return max(0, self.per_day - sum(each.points for each in held))

    def spend(self, points: int, now: Now) -> bytes:
        """Count readings before they leave, return the record to keep; UsageError if too many."""
        if points > (left := self.left(now)):
            raise UsageError(f"at most {left} readings may leave this client now, got {points}")
        self._shared = [each for each in self._shared if not _is_over(each, now)]
        newest = self._shared[-1] if self._shared else None
        if newest is not None and 0 <= now.wall_ms - newest.wall_ms < TOGETHER_MS:
            # The later time of both: nothing is given back early.
            self._shared[-1] = _Shared(newest.points + points, now.wall_ms, now.steady)
        else:
            self._shared.append(_Shared(points, now.wall_ms, now.steady))
        return json.dumps([[each.points, each.wall_ms] for each in self._shared]).encode()


def _is_over(shared: _Shared, now: Now) -> bool:
    """Return whether 24 hours have passed since, by all clocks that know."""
    by_wall = now.wall_ms - shared.wall_ms >= DAY_S * 1000
    return by_wall and (shared.steady is None or now.steady - shared.steady >= DAY_S)
