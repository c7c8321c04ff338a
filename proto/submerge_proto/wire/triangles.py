"""Whole scatters on the wire: a packed triangle of float32 numbers in place of directions.

The triangle R is upper, row by row. The scatter is energy R'R, positive semi-definite whatever R
is; a triangle travels as it is, so that its rounding, which is in `spectral_bound`, is paid once.
On one's own disk (`exact`) its numbers are float64, and nothing is lost.

The triangle is in the field `columns`, and there is no sigma: a node of an earlier version refuses
such a message ("shape"). Under a new field it would see a summary without directions, and take it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from submerge import Array, PeerError
from submerge._linalg import Storage
from submerge.pca.row_sums import RowSums
from submerge.pca.whole_scatter import WholeScatter, triangle
from submerge_proto.v1 import summary_pb2 as pb
from submerge_proto.wire import sizes
from submerge_proto.wire.columns import array_of, bytes_of, energies_bytes, energies_of, flushed
from submerge_proto.wire.fields import within

MOST_WHOLE = 1 << 12
"""Most dimensions of a whole scatter: 32 MiB of numbers, more than any message holds."""


def packed(whole: WholeScatter, *, exact: bool = False) -> pb.Subspace:
    """Return a whole scatter as a message; `exact`: as it is kept on one's own disk."""
    if not exact:
        whole = saturated_whole(whole)
    out = pb.Subspace(
        dim=whole.dim,
        mean=bytes_of(whole.mean, "<f8"),
        weight=whole.weight,
        energy=whole.energy,
        spectral_bound=whole.spectral_bound,
        channel_energies=energies_bytes(whole.channel_energies),
        whole=True,
    )
    if exact and whole.held.ndim == 2:
        out.exact = bytes_of(whole.held[np.triu_indices(whole.dim)], "<f8")
        return out
    rounded, bound = triangle(whole)
    out.columns = bytes_of(rounded, "<f4")
    out.spectral_bound += bound
    return out


def unpacked(message: pb.Subspace, fingerprint: str, *, kept: bool = False) -> WholeScatter:
    """Return the whole scatter that a message holds; `kept`: it is from one's own disk."""
    dim = message.dim
    if not 1 <= dim <= MOST_WHOLE:
        raise PeerError(
            f"a whole scatter has 1 to {MOST_WHOLE} dimensions, got {dim}", kind="shape"
        )
    if message.sigma or message.coarse or message.scales:
        raise PeerError("expected a whole scatter, got one with directions", kind="shape")
    if message.exact and not kept:
        raise PeerError("a whole scatter travels as float32, got float64", kind="shape")
    sizes.check_numbers(message, np.empty(0))
    mean, energies = array_of(message.mean, "mean", dim), energies_of(message)
    energy, bound = message.energy, message.spectral_bound
    if message.exact:
        held = _symmetric(_triangle(message.exact, "<f8", dim), dim)
    else:
        held = _triangle(message.columns, "<f4", dim)
        if not _has_energy(held):
            raise PeerError("energy must not be less than the scatter holds", kind="energy")
    held.flags.writeable = False
    if not kept:
        sizes.check_sizes(message, mean)
        # No more can be missing from an eigenvalue than the whole energy.
        bound, mean = min(bound, energy), flushed(mean)
    whole = WholeScatter(fingerprint, held, mean, message.weight, energy, bound, energies)
    if energies is not None and not kept:
        sizes.check_channels(energies, channels_held(whole), energy, bound)
    return whole


def saturated_whole(whole: WholeScatter) -> WholeScatter:
    """Return a whole scatter that passes all checks of a receiver; itself if it does."""
    whole = sizes.within_sizes(_with_energy(whole))
    if whole.channel_energies is None:
        return whole
    energies = sizes.consistent(
        whole.channel_energies, channels_held(whole), whole.energy, whole.spectral_bound
    )
    return (
        whole if energies is whole.channel_energies else replace(whole, channel_energies=energies)
    )


def channels_held(whole: WholeScatter) -> Array:
    """Return what a whole scatter holds of the energy of each channel, its diagonal: (dim,)."""
    if whole.held.ndim == 2:
        return np.diag(whole.held).copy()
    return np.asarray(np.square(whole.factor).sum(axis=0))


def _with_energy(whole: WholeScatter) -> WholeScatter:
    """Return a whole scatter with no less energy than it holds, by the rounding of a sum."""
    if whole.held.ndim == 1:
        if _has_energy(whole.held):
            return whole
        whole = replace(whole, held=whole.scatter)
    held = float(np.trace(whole.held))
    return replace(whole, energy=held) if held > whole.energy else whole


def _has_energy(packed_rows: Storage) -> bool:
    """Return whether a triangle holds no more than the energy, to rounding."""
    held = float(np.square(packed_rows, dtype=np.float64).sum())
    return held * (1 - sizes.ROUNDING) <= 1.0


def _triangle(data: bytes, form: str, dim: int) -> Storage:
    """Return the numbers of a packed triangle, finite: (dim (dim + 1) / 2,)."""
    n = dim * (dim + 1) // 2
    if len(data) != np.dtype(form).itemsize * n:
        raise PeerError(
            f"expected a triangle of {n} numbers, for {dim} dimensions, got {len(data)} bytes",
            kind="shape",
        )
    numbers = np.frombuffer(data, form)
    if not np.isfinite(numbers).all():
        raise PeerError("a scatter must be finite", kind="not_finite")
    return numbers.astype(form[1:])


def _symmetric(packed_rows: Storage, dim: int) -> Array:
    """Return the symmetric matrix of a packed upper triangle."""
    full = np.zeros((dim, dim))
    full[np.triu_indices(dim)] = packed_rows
    return full + np.triu(full, 1).T


# Sums of rows, of groups whose models carry noise, are whole numbers of 64 bits.

MOST_ROWS = 1 << 40
"""Rows in one summary: with more, what noise is added to would pass 64 bits."""


def sums_packed(sums: RowSums) -> pb.Subspace:
    numbers = bytes_of(np.concatenate([sums.total, sums.squares]), "<i8")
    return pb.Subspace(dim=sums.dim, weight=sums.weight, sums=numbers, step=sums.step)


def sums_unpacked(message: pb.Subspace, fingerprint: str, *, kept: bool = False) -> RowSums:
    """Return the sums of rows that a message holds; `kept`: it is from one's own disk."""
    dim, count = message.dim, within("weight", message.weight)
    if not 1 <= dim <= MOST_WHOLE or len(message.sums) != 8 * (dim + dim * (dim + 1) // 2):
        raise PeerError(
            f"expected sums of 1 to {MOST_WHOLE} numbers, and the triangle of their squares, got"
            f" {len(message.sums)} bytes for {dim}",
            kind="shape",
        )
    if not count.is_integer() or not within("step", message.step) > 0:
        raise PeerError(
            f"expected whole rows in steps above 0, got {count:g} and {message.step:g}",
            kind="range",
        )
    numbers = np.frombuffer(message.sums, "<i8").astype(np.int64)
    sums = RowSums(fingerprint, message.step, int(count), numbers[:dim], numbers[dim:])
    # What was folded from reports is read again whatever it is: a store is not to be lost by it.
    if not kept and not (count <= MOST_ROWS and sums.possible):
        raise PeerError("expected sums that so many rows can have, got larger ones", kind="range")
    return sums
