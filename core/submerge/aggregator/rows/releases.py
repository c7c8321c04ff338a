"""Releases: what of a group's sums has gone out with noise, again and again (docs/privacy.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from submerge.pca.row_sums import Ints
from submerge.protocol.messages import Told, most_told
from submerge.protocol.summaries import Summaries, Summary

# Sums of all rows are released as a binary tree: the n-th release carries one noise for each bit
# of n that is set, so a row that came between two releases is in `LEVELS` of the tree's noises at
# most (Dwork, Naor, Pitassi, Rothblum, Differential privacy under continual observation, STOC
# 2010). That holds while rows only come. Where some leave, and after a restore, another tree
# begins, with half of what is left to spend: so all trees together spend no more than was
# allowed.

LEVELS = 15  # of a tree: 32,767 releases

LEAST_SHARE = 2.0**-8
"""Of all that may be spent: a tree with less would have noise eleven times that of the first."""

GROWTH = 1.001
"""Rows since the last release, relative: so a tree that began with one row lasts for e^32 rows."""


class Noise(Protocol):
    """Draws noise, and accounts for it. `rho`: all that may be spent (zero-concentrated)."""

    rho: float

    def draw(self, n: int, scale: float) -> Ints:
        """Return n draws from the discrete Gaussian distribution of that scale."""

    def epsilon(self, rho: float) -> float:
        """Return the epsilon, at delta = 1e-6, of what has been spent."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The newest release of a group, as its store keeps it."""

    rho: float  # may be spent in all
    spent: float  # by earlier trees
    share: float  # that this tree may spend
    told: Told  # the most that nodes were told, or said: for when this store is lost
    number: int  # of releases of this tree
    rows: int
    left: int  # how often rows had left
    noises: Mapping[int, Ints]  # by level of the tree: later releases share them
    fingerprint: str  # of the schema that they are of
    summary: Summary  # the sums with noise

    @property
    def spent_in_all(self) -> float:
        return self.spent + self.share * self.number.bit_length() / LEVELS

    def goes_on(self, of: tuple[str, int], rho: float, told: Told | None) -> bool:
        """Return whether the tree goes on: no row has left, and nodes know of no later release."""
        same = (of, rho) == ((self.fingerprint, self.left), self.rho)
        known = self.told == most_told(self.told, told)
        return same and known and self.number < 2**LEVELS - 1


def released(
    last: Release | None,
    sums: Summary,
    of: tuple[str, int],  # the schema's fingerprint, and how often rows have left, in all
    summaries: Summaries,
    noise: Noise,
    *,
    told: Told | None = None,  # as nodes that have a model say
) -> Release | None:
    """Return the next release of sums of rows, if it is due; else the last one."""
    if last is not None and last.goes_on(of, noise.rho, told):
        if sums.weight < GROWTH * last.rows:
            return last
        tree = last
    else:
        before, spent = (Told(), 0.0) if last is None else (last.told, last.spent_in_all)
        known = most_told(before, told) or before
        if known != before:
            spent = known.committed  # this store is new, or older than what was published
        share = (noise.rho - spent) / 2
        if share < LEAST_SHARE * noise.rho:
            return last  # it stays for good
        known = Told(known.releases, max(known.committed, spent + share))
        tree = Release(noise.rho, spent, share, known, 0, 0, of[1], {}, of[0], sums)
    told = tree.told._replace(releases=tree.told.releases + 1)
    tree = replace(tree, number=tree.number + 1, told=told)
    needed = summaries.noise_for(sums)
    # Each noise may cost an even part: rho = (sensitivity / scale)^2 / 2.
    scale = needed.sensitivity / (2 * tree.share / LEVELS) ** 0.5
    level = (tree.number & -tree.number).bit_length() - 1
    noises = {each: drawn for each, drawn in tree.noises.items() if each > level}
    noises[level] = noise.draw(needed.numbers, scale)
    summary = summaries.with_noise(sums, np.sum([*noises.values()], axis=0))
    return replace(tree, rows=round(sums.weight), noises=noises, summary=summary)


def least_rows(dim: int, rho: float) -> int:
    """Return how many rows the first release waits for: of fewer, directions would be noise's."""
    # A tenth of the variance of a scaled channel is then noise, along its worst direction:
    # 2 sqrt(dim) times what noise adds to an entry. That is in units of clip^2 = 2.25 dim, as
    # `pca.row_sums` weighs an entry beside the diagonal.
    entry: float = (5 / 7) * 4.5**0.5 * CLIP**2 * dim * (LEVELS / rho) ** 0.5
    return math.ceil(20 * float(dim**0.5) * entry)


CLIP = 1.5
"""Length of a row that is cut off, over the root of the number of channels: of normal rows with a
scale of one each, hardly any is so long."""
