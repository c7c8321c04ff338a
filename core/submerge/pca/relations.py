"""Relations: how much each channel follows the others, and where summaries differ in that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submerge._linalg import Array
from submerge.pca.factor import factors_of
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter

# 1. A channel's prediction is the best linear one from the others, by a reference. Its gain in a
#    summary is the slope of the channel on that prediction: 1 where nothing has changed, .7 where
#    it moves by .7 of what the others say. Means, levels, and noise of the channel change no gain.
# 2. A channel that changed changes the gains of those that it predicts. The one to name is the one
#    that, undone, leaves the least of all changes.

TELLS = 0.25
"""Least share of a channel's variance that the others must tell, for there to be a relation."""

RIDGE = 1e-6  # of a channel's variance: copies of channels have no inverse


class Reference(NamedTuple):
    """What a covariance says of each channel by all others."""

    scale: Array  # (dim,) deviations; 0 for a channel that does not vary
    slopes: Array  # (dim, dim) of each channel on all others, of channels over `scale`
    told: Array  # (dim,) share of the variance that the others tell

    @classmethod
    def of(cls, covariance: Array) -> Reference:
        """Return it for a covariance (dim, dim). O(dim^3)."""
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale[scale < 1e-9 * scale.max(initial=0.0)] = 0.0
        precision = np.linalg.inv(_over(covariance, scale) + RIDGE * np.eye(len(scale)))
        slopes = -precision / np.diag(precision)[:, None]
        np.fill_diagonal(slopes, 0.0)
        return cls(scale, slopes, np.where(scale > 0, 1 - 1 / np.diag(precision), 0.0))

    def partner(self, channel: int) -> int:
        """Return the channel that tells the most of another."""
        return int(np.argmax(np.abs(self.slopes[channel])))


class Gains(NamedTuple):
    """How much each channel follows its prediction, and how sure that is for independent rows."""

    gain: Array  # (dim,); NaN where there is no relation
    error: Array  # (dim,) standard errors


def covariance_of(piece: Subspace | WholeScatter) -> Array:
    """Return the covariance (dim, dim) of what a summary is of, as far as it is known."""
    if isinstance(piece, WholeScatter):
        return np.asarray(piece.scatter / piece.weight)
    factors = factors_of(piece, piece)
    if factors is None:
        rows = piece.basis.T * piece.sigma[:, None]
        return np.asarray(rows.T @ rows / piece.weight, dtype=np.float64)
    loadings = factors.loadings_of(piece)
    return np.asarray(loadings @ loadings.T + np.diag(factors.noise), dtype=np.float64)


def gains(covariance: Array, rows: float, by: Reference) -> Gains:
    """Return the gains of a covariance of so many rows by a reference. O(dim^3)."""
    seen = _over(covariance, by.scale)
    said = by.slopes @ seen
    with_it, of_it = np.diag(said), np.einsum("ij,ij->i", said, by.slopes)
    known = (by.told >= TELLS) & (of_it > RIDGE)
    of_it = np.where(known, of_it, 1.0)
    gain = with_it / of_it
    rest = np.maximum(np.diag(seen) - gain * with_it, 0.0)
    return Gains(np.where(known, gain, np.nan), np.sqrt(rest / of_it / max(rows, 1.0)))


def undone(covariance: Array, channel: int, ratio: float) -> Array:
    """Return a covariance with one channel's gain as it was before it changed by a ratio."""
    scale = np.ones(len(covariance))
    scale[channel] = 1 / ratio
    return np.asarray(covariance * scale * scale[:, None])


def _over(covariance: Array, scale: Array) -> Array:
    unit = np.where(scale > 0, scale, np.inf)
    return np.asarray(covariance / unit / unit[:, None])


class Change(NamedTuple):
    """A channel that follows the others `ratio` times as much as before, or as elsewhere."""

    channel: int
    partner: int  # the channel that tells the most of it
    ratio: float
    times: float  # as large as what is usual by chance, or from machine to machine

    def words(self, names: Sequence[str]) -> str:
        """Return it in words: `flow follows pressure 0.5 times as much`."""
        return f"{names[self.channel]} follows {names[self.partner]} {self.ratio:.2g} times as much"


class Kinds(NamedTuple):
    """Two kinds of machines: those of the smaller, and how they differ from the others."""

    nodes: tuple[str, ...]
    change: Change


class Unlike(NamedTuple):
    """Machines by how unlike the others they are, within their kind."""

    nodes: tuple[tuple[str, Change], ...]  # each that can be compared, the most unlike first
    kinds: Kinds | None


LEAST_NODES = 4
"""Of fewer machines none is the odd one: there is no knowing what is usual."""

KIND, SHARE, APART, LEAST = 3, 0.2, 7.0, 0.1
"""Machines that a kind has at least, also as a share of all; how far apart the gains of two kinds
are, in deviations within them; and the least change that is worth a word."""

TRIED = 4  # channels of a machine that may be the one that changed


def unlike(parts: Mapping[str, Subspace | WholeScatter]) -> Unlike:
    """Return the one channel of each machine that explains best how it differs. O(nodes dim^3)."""
    known = {name: piece for name, piece in parts.items() if piece.weight > 2 * piece.dim}
    if len(known) < LEAST_NODES:
        return Unlike((), None)
    covariances = [covariance_of(piece) for piece in known.values()]
    rows = [piece.weight for piece in known.values()]
    by = Reference.of(np.average(covariances, axis=0, weights=rows))
    found = [gains(each, n, by) for each, n in zip(covariances, rows, strict=True)]
    gain, error = (np.array(each) for each in zip(*found, strict=True))
    names, kinds = list(known), _kinds(gain, by)
    second = np.zeros(len(names), dtype=bool) if kinds is None else kinds[0]
    nodes: list[tuple[str, Change]] = []
    for kind in (second, ~second):
        usual = np.median(gain[kind], axis=0) if kind.any() else np.empty(0)
        spread = 1.4826 * np.median(np.abs(gain[kind] - usual), axis=0) if kind.any() else usual
        for i in np.flatnonzero(kind):
            noise = np.maximum(spread, error[i])
            change = _odd(covariances[i], rows[i], by, usual, noise)
            nodes += [] if change is None else [(names[i], change)]
    told = None
    if kinds is not None:
        told = Kinds(tuple(np.array(names)[second].tolist()), kinds[1])
    return Unlike(tuple(sorted(nodes, key=lambda each: -each[1].times)), told)


def _odd(
    covariance: Array, rows: float, by: Reference, usual: Array, noise: Array
) -> Change | None:
    """Return the one change of a machine that explains the most; None if nothing is related."""

    def off(seen: Array) -> Array:
        """Return how far each gain is from the usual one, in what is usual; 0 without one."""
        return np.asarray(np.nan_to_num((gains(seen, rows, by).gain - usual) / noise))

    first = off(covariance)
    gain = gains(covariance, rows, by).gain / usual
    best, left = None, np.inf
    for channel in np.argsort(-np.abs(first), kind="stable")[:TRIED].tolist():
        ratio = float(gain[channel])
        if not 0.05 < ratio < 20:
            rest = float(np.square(np.delete(first, channel)).sum())
        else:
            rest = float(np.square(off(undone(covariance, channel, ratio))).sum())
        if first[channel] and rest < left:
            times = float(abs(first[channel]))
            best, left = Change(channel, by.partner(channel), ratio, times), rest
    return best


def _kinds(gain: Array, by: Reference) -> tuple[NDArray[np.bool_], Change] | None:
    """Return which machines are of a second kind, and by which channel; None if all are of one."""
    n, found = len(gain), None
    for channel in np.flatnonzero(~np.isnan(gain).any(axis=0)).tolist():
        order = np.argsort(gain[:, channel], kind="stable")
        values = gain[order, channel]
        for cut in range(max(KIND, math.ceil(SHARE * n)), n - max(KIND, math.ceil(SHARE * n)) + 1):
            low, high = values[:cut], values[cut:]
            within = math.sqrt((low.var() * len(low) + high.var() * len(high)) / (n - 2))
            apart = float(high.mean() - low.mean())
            times = apart / max(within, 1e-9 * abs(apart), 1e-300)
            few, rest = (low, high) if len(low) <= len(high) else (high, low)
            ratio = float(few.mean() / rest.mean()) if rest.mean() else math.inf
            if times > max(APART, found[1].times if found else 0) and abs(ratio - 1) >= LEAST:
                second = np.zeros(n, dtype=bool)
                second[order[:cut] if few is low else order[cut:]] = True
                found = second, Change(channel, by.partner(channel), ratio, times)
    return found


MOST_CHANGES = 8

SURE, MISFIT = 6.0, 3.0
"""How many standard errors of independent rows, and by how many times the two summaries' own
disagreement, a change must exceed: rows are not independent, and relations are seldom linear."""


def changes(first: Subspace | WholeScatter, second: Subspace | WholeScatter) -> list[Change]:
    """Return the channels whose relations differ from one summary to another, the surest first."""
    before, after = covariance_of(first), covariance_of(second)
    rows, found = min(first.weight, second.weight), list[Change]()
    if rows <= 2 * first.dim:
        return []
    while len(found) < MOST_CHANGES:
        candidates = _candidates(before, after, rows)
        taken = {each.channel for each in found}
        ranked = sorted(candidates, key=lambda each: -each.times)
        ranked = [each for each in ranked if each.channel not in taken][:TRIED]
        if not ranked:
            break
        best = min(
            ranked,
            key=lambda each: sum(
                left.times**2
                for left in _candidates(before, undone(after, each.channel, each.ratio), rows)
            ),
        )
        found.append(best)
        after = undone(after, best.channel, best.ratio)
    return found


def _candidates(before: Array, after: Array, rows: float) -> list[Change]:
    """Return every channel whose gain changed, by each as the reference of the other."""
    ours, theirs = Reference.of(before), Reference.of(after)
    forth, back = gains(after, rows, ours), gains(before, rows, theirs)
    sure = (forth.gain > 0) & (back.gain > 0)  # false for NaN
    found = []
    for j in np.flatnonzero(sure).tolist():
        there, here = math.log(forth.gain[j]), -math.log(back.gain[j])
        change = (there + here) / 2
        error = math.hypot(forth.error[j] / forth.gain[j], back.error[j] / back.gain[j])
        times = abs(change) / max(SURE * error, MISFIT * abs(there - here) / 2, 1e-12)
        if times >= 1 and abs(math.expm1(change)) >= LEAST:
            found.append(Change(j, ours.partner(j), math.exp(change), times))
    return found
