"""Points: the rows that a participant holds for a job, frozen when it opens, and those held out.

Which are held out depends on the job's seed, the node's name and the row's number alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import PeerError, ShapeError, UsageError
from submerge.features.draws import uniforms, words, words_at
from submerge.jobs.arrays import Arrays
from submerge.jobs.job import Settings

MOST_HELD_OUT = 0.9
LARGEST_READING = 1e20
"""Rows that are scaled stay far below it, and so do those that landmarks are chosen from. Sums of
squares over all rows that there are may travel."""

MOST_HELD = 100_000
"""Rows that a client holds for jobs, whatever its configuration says."""


class JobPoints(NamedTuple):
    """What a participant gives a job: rows (n, width), and (m, width) to measure on and not learn.

    From now on `may_share` of its rows may leave the node as they are.
    """

    rows: Array
    held_out: Array
    may_share: int = 0


class HeldRows(NamedTuple):
    """What a client holds of a schema, rows (n, width), before a job splits it."""

    fingerprint: str
    rows: Array


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


def split(rows: Array, settings: Settings, node: str) -> JobPoints:
    """Return a copy of rows (n, width), in those to learn from and those held out.

    Rows with a gap, or with a number too large to square and sum, are left out. A single row to
    learn from is held out as well: sums over it alone would be that row.
    """
    if rows.ndim != 2:
        raise ShapeError("rows", expected="(n, width)", got=rows.shape)
    fits = (np.abs(rows) <= LARGEST_READING).all(axis=1)  # NaN is not
    rows = np.array(rows[fits], dtype=np.float64, order="C")
    out = draws(seed_of(settings), node, "held out", len(rows)) < held_out_of(settings)
    if (~out).sum() == 1:
        out[:] = True
    return JobPoints(rows[~out], rows[out])
