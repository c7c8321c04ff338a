"""restated(): what was learnt of some channels, as a summary of others.

With K the channels that both schemas have, and N those that are new, what is known of K goes over
exactly. Rows from before a channel came are completed (docs/decisions/0040) by the regression of N
on K in rows that have all channels, `like`. As a row has either all channels or lacks all new ones,
that is the maximum likelihood in one step (Little and Rubin 2002, section 7.2):

    S_KN = S_KK B,    S_NN = B' S_KK B + w C

with w the weight, B the coefficients and C the covariance of the residuals. Few rows say little
of B and C, so `FIRST_ROWS` rows stand beside them in which K varies as ever, and new channels vary
by one unit and follow nothing.

B cannot be found from directions, which leave out what each channel varies by itself, nor held
by them: a new channel then stands beside the others, with its own mean and variance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.pca.subspace import Subspace, oriented
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Schema

Piece = Subspace | WholeScatter

FIRST_ROWS = 10.0  # weight of what is assumed of a new channel, in rows


def restated(piece: Piece, old: Schema, new: Schema, like: Piece | None = None) -> Piece:
    """Return a summary under schema `old` as one under `new`, of one family.

    like : Has all channels, under `new`; without it nothing is known of new ones.
    """
    change = _change(old, new)
    if isinstance(piece, WholeScatter):
        return _restated_scatter(piece, new, change, like)
    return _restated_directions(piece, new, change, like)


class _Change(NamedTuple):
    """How channels go over: `kept` places were `source`, and x becomes x * ratio + shift."""

    kept: npt.NDArray[np.intp]
    source: npt.NDArray[np.intp]
    came: npt.NDArray[np.intp]
    ratio: Array
    shift: Array


def _change(old: Schema, new: Schema) -> _Change:
    places = {channel: i for i, channel in enumerate(old.named)}
    found = [places.get(channel, -1) for channel in new.named]
    source = np.array(found, dtype=np.intp)
    kept, came = np.flatnonzero(source >= 0), np.flatnonzero(source < 0)
    source = source[kept]
    ratio, shift = np.ones(len(kept)), np.zeros(len(kept))
    if old.scaling != new.scaling:
        offset, scale = (each[source] for each in _units(old))
        new_offset, new_scale = (each[kept] for each in _units(new))
        # Equal numbers leave a channel's bits as they are.
        ratio, shift = scale / new_scale, (offset - new_offset) / new_scale
    return _Change(kept, source, came, ratio, shift)


def _units(schema: Schema) -> tuple[Array, Array]:
    scaling = schema.scaling
    if scaling is None:
        return np.zeros(schema.width), np.ones(schema.width)
    return np.array(scaling.offset), np.array(scaling.scale)


class _Before(NamedTuple):
    """What rows say that lack new channels: (kept,) both, and the `unit` variance of these."""

    mean: Array
    variance: Array
    unit: float


class _Expected(NamedTuple):
    """New channels given kept ones: mean (new,) at theirs, slopes (kept, new), covariance left."""

    mean: Array
    slopes: Array
    rest: Array


def _expected(like: Piece | None, change: _Change, before: _Before) -> _Expected:
    """Return what rows with all channels say."""
    kept, came = change.kept, change.came
    none = np.zeros((len(kept), len(came)))
    if not isinstance(like, WholeScatter) or not like.weight > 0:
        # Directions leave out the noise of each channel, which a regression would need.
        mean, variance = _beside(like, change, before.unit)
        return _Expected(mean, none, np.diag(variance))
    S = like.scatter
    among, across = S[np.ix_(kept, kept)], S[np.ix_(kept, came)]
    # Not only as kept channels vary in these rows: the first ones may be of one quiet minute.
    variance = np.maximum(before.variance, np.diag(among) / like.weight)
    ridge = FIRST_ROWS * np.maximum(variance, np.finfo(float).tiny)
    # An empty system has an empty solution.
    slopes = np.asarray(np.linalg.solve(among + np.diag(ridge), across), dtype=np.float64)
    mixed = across.T @ slopes
    rest = S[np.ix_(came, came)] - mixed - mixed.T + slopes.T @ among @ slopes
    rest = (rest + rest.T) / 2 + FIRST_ROWS * before.unit * np.eye(len(came))
    away = (before.mean - like.mean[kept]) @ slopes
    return _Expected(like.mean[came] + away, slopes, rest / (like.weight + FIRST_ROWS))


def _beside(like: Piece | None, change: _Change, unit: float) -> tuple[Array, Array]:
    """Return mean and variance of new channels, (new,), each by itself; `unit` is assumed."""
    came = change.came
    if like is None or not like.weight > 0:
        return np.zeros(len(came)), np.full(len(came), unit)
    energies = like.channel_energies
    if energies is None and isinstance(like, WholeScatter):
        energies = np.diag(like.scatter)
    spread = np.full(len(came), unit * like.weight) if energies is None else energies[came]
    return like.mean[came], (spread + FIRST_ROWS * unit) / (like.weight + FIRST_ROWS)


def _restated_scatter(
    whole: WholeScatter, new: Schema, change: _Change, like: Piece | None
) -> WholeScatter:
    kept, came, source, ratio = change.kept, change.came, change.source, change.ratio
    among = whole.scatter[np.ix_(source, source)] * ratio * ratio[:, None]
    means = whole.mean[source] * ratio + change.shift
    mean, scatter = np.zeros(new.dim), np.zeros((new.dim, new.dim))
    mean[kept], scatter[np.ix_(kept, kept)] = means, among
    known = whole.channel_energies
    energies = np.zeros(new.dim)
    energies[kept] = np.diag(among) if known is None else known[source] * ratio**2
    bound = whole.spectral_bound * float((ratio**2).max(initial=0.0))
    if len(came):
        variance = energies[kept] / whole.weight if whole.weight > 0 else energies[kept]
        unit = _unit(new, energies[kept], whole.weight)
        expected = _expected(like, change, _Before(means, variance, unit))
        across = among @ expected.slopes
        mean[came] = expected.mean
        scatter[np.ix_(kept, came)], scatter[np.ix_(came, kept)] = across, across.T
        within = expected.slopes.T @ across + whole.weight * expected.rest
        scatter[np.ix_(came, came)] = (within + within.T) / 2
        energies[came] = np.diag(within)
        bound *= 1.0 + float((expected.slopes**2).sum())
    for array in (mean, scatter, energies):
        array.flags.writeable = False
    return WholeScatter(
        new.fingerprint,
        scatter,
        mean,
        whole.weight,
        float(energies.sum()),
        bound,
        None if known is None else energies,
    )


def _restated_directions(
    subspace: Subspace, new: Schema, change: _Change, like: Piece | None
) -> Subspace:
    kept, came, source, ratio = change.kept, change.came, change.source, change.ratio
    weight, known = subspace.weight, subspace.channel_energies
    columns = np.zeros((subspace.rank, new.dim))
    scaled = np.asarray(subspace.basis, dtype=np.float64)[source].T * ratio
    columns[:, kept] = scaled * subspace.sigma[:, None]
    held = np.square(columns).sum(axis=0)
    if known is None:
        # What directions do not hold is spread evenly, as in `with_even_energies`.
        missing = subspace.frobenius_bound / subspace.dim
        energies = held + missing * _placed(ratio**2, kept, new.dim)
    else:
        energies = _placed(known[source] * ratio**2, kept, new.dim)
    mean = _placed(subspace.mean[source] * ratio + change.shift, kept, new.dim)
    bound = subspace.spectral_bound * float((ratio**2).max(initial=0.0))
    if len(came):
        unit = _unit(new, energies[kept], weight)
        mean[came], variance = _beside(like, change, unit)
        energies[came] = weight * variance
        # Beside the others: the largest of two blocks, and no direction holds any of the second.
        bound = max(bound, float(energies[came].max()))
    _, sigma, rows = np.linalg.svd(columns, full_matrices=False)
    found = int(np.count_nonzero(sigma > new.dim * np.finfo(float).eps * max(sigma[:1], default=0)))
    rows = np.ascontiguousarray(rows[:found].astype(subspace.basis.dtype))
    return replace(
        oriented(
            rows,
            sigma[:found],
            schema=new.fingerprint,
            mean=mean,
            weight=weight,
            energy=float(energies.sum()),
            spectral_bound=bound,
            channel_energies=None if known is None else energies,
        ),
        spares=max(0, subspace.spares - (subspace.rank - found)),
    )


def _placed(values: Array, places: npt.NDArray[np.intp], dim: int) -> Array:
    """Return a vector (dim,) with values at some places, and zeros elsewhere."""
    vector = np.zeros(dim)
    vector[places] = values
    return vector


def _unit(new: Schema, energies: Array, weight: float) -> float:
    """Return the variance that is assumed of a new channel: of a scaled one 1."""
    if new.scaling is not None or not len(energies) or not weight > 0:
        return 1.0
    return float(energies.mean() / weight) or 1.0
