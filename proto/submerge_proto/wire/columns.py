"""Subspaces on the wire: float32 columns, or coarser ones where the error is small.

Columns whose sigma is at most 8 times the smallest may be sent as int8 and a scale: the rounding
error between two of them is then small against either, and is added to `spectral_bound`. Received
subspaces are checked here and in `sizes`, number by number, and trusted afterwards.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from submerge import Array, PeerError, Subspace
from submerge_proto.v1 import summary_pb2 as pb
from submerge_proto.wire.sizes import (
    LEAST,
    check_channels,
    check_numbers,
    check_sizes,
    held_by,
    saturated,
    saturated_on_disk,
)

MOST_DIM, MOST_RANK = 1 << 20, 1 << 10  # most dimensions and columns: more than any device sends
ALIKE = 8.0  # columns may be coarse whose sigma is at most so many times the smallest

OFF, OFF_COARSE, HONEST = 1e-3, 5e-2, 1e-5
"""How far from orthonormal columns may be: float32 ones, coarse ones, and by float32's rounding."""

FAINT = 1e-50  # readings that differ by less are equal: squares of less underflow in a merge


def packed(subspace: Subspace, *, coarse: bool = False, exact: bool = False) -> pb.Subspace:
    """Return a subspace as a message; `exact`: as it is kept on one's own disk."""
    subspace = saturated_on_disk(subspace) if exact else saturated(subspace)
    out = pb.Subspace(
        dim=subspace.dim,
        sigma=bytes_of(subspace.sigma, "<f8"),
        mean=bytes_of(subspace.mean, "<f8"),
        weight=subspace.weight,
        energy=subspace.energy,
        spectral_bound=subspace.spectral_bound,
        channel_energies=energies_bytes(subspace.channel_energies),
    )
    rows = subspace.basis.T
    if exact and rows.dtype == np.float64:
        out.exact = bytes_of(rows, "<f8")
        return out
    fine = _fine(subspace.sigma) if coarse and not exact else subspace.rank
    out.columns = bytes_of(rows[:fine], "<f4")
    if fine == subspace.rank:
        return out
    wide = np.asarray(rows[fine:], dtype=np.float64)
    scales = (np.abs(wide).max(axis=1) / 127).astype("<f4")
    steps = np.rint(wide / scales[:, None].astype(np.float64)).astype(np.int8)
    out.coarse, out.scales = steps.tobytes(), scales.tobytes()
    try:
        seen = _columns(out, subspace.rank, subspace.rank, OFF_COARSE / 2)
    except PeerError:
        # Long columns with a few large numbers: 127 steps are too coarse for the small ones.
        return packed(subspace)
    out.spectral_bound += _difference(subspace.basis, seen, subspace.sigma)
    return out


def unpacked(message: pb.Subspace, fingerprint: str, *, kept: bool = False) -> Subspace:
    """Return the subspace that a message holds; `kept`: it is from one's own disk."""
    dim = message.dim
    if not 1 <= dim <= MOST_DIM:
        raise PeerError(f"a subspace has 1 to {MOST_DIM} dimensions, got {dim}", kind="shape")
    if message.exact and not kept:
        raise PeerError("columns travel as float32, got float64", kind="shape")
    sigma, mean = array_of(message.sigma, "sigma"), array_of(message.mean, "mean", dim)
    if len(sigma) > min(dim, MOST_RANK):
        raise PeerError(
            f"expected at most {min(dim, MOST_RANK)} directions, got {len(sigma)}", kind="shape"
        )
    check_numbers(message, sigma)
    bound, weight = message.spectral_bound, message.weight
    if not kept:
        check_sizes(message, mean)
        # No more can be missing from an eigenvalue than the whole energy.
        bound, mean = min(bound, message.energy), flushed(mean)
    faint = FAINT * weight**0.5 if weight >= LEAST else math.inf
    held = len(sigma)
    if held and not sigma[-1] >= faint:
        held = int((sigma >= faint).sum())
    basis = _columns(message, len(sigma), held, OFF_COARSE)
    basis.flags.writeable = False
    energies = energies_of(message)
    if energies is not None and not kept:
        check_channels(energies, held_by(basis.T, sigma[:held]), message.energy, bound)
    return Subspace(
        fingerprint,
        basis,
        sigma[:held],
        mean,
        weight=weight,
        energy=message.energy,
        spectral_bound=bound,
        channel_energies=energies,
    )


def energies_bytes(energies: Array | None) -> bytes:
    return b"" if energies is None else bytes_of(energies, "<f8")


def energies_of(message: pb.Subspace) -> Array | None:
    """Return finite energies of channels; None from a node of an earlier version."""
    if not message.channel_energies:
        return None
    return array_of(message.channel_energies, "channel energies", message.dim)


def flushed(mean: Array) -> Array:
    """Return a mean with 0 for numbers near 0: its difference to another becomes a sigma."""
    sizes = np.abs(mean)
    if sizes.min() >= FAINT:
        return mean
    faint = (sizes < FAINT) & (mean != 0)
    return np.where(faint, 0.0, mean) if faint.any() else mean


def _columns(message: pb.Subspace, k: int, held: int, off_coarse: float) -> Array:
    """Return the first `held` of k columns, (dim, held), orthonormal."""
    dim = message.dim
    if message.exact:
        rows = _matrix(message.exact, "<f8", k, dim)
        return _orthonormal(rows[:held], OFF).T
    n_coarse = len(message.scales) // 4
    if n_coarse and n_coarse > k - _fine(np.frombuffer(message.sigma, "<f8")):
        raise PeerError(
            f"columns are coarse only up to {ALIKE:g} times the smallest sigma", kind="range"
        )
    rows = _matrix(message.columns, "<f4", k - n_coarse, dim)
    if not (message.scales or message.coarse):
        return _orthonormal(rows[:held], OFF).T
    scales = _matrix(message.scales, "<f4", n_coarse, 1)
    steps = _matrix(message.coarse, "i1", n_coarse, dim)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.concatenate([rows, np.multiply(steps, scales, dtype=np.float32)])
    return _orthonormal(rows[:held], off_coarse).T


def _orthonormal(rows: Array, off: float) -> Array:
    """Return orthonormal rows as they are, nearly orthonormal ones corrected; refuse others."""
    if not len(rows):
        return rows
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(rows, dtype=np.float64)
        gram = wide @ wide.T
    defect = gram - _identity(len(gram))
    if np.vdot(defect, defect) <= HONEST**2:  # then none is larger
        return rows
    worst = np.abs(defect).max()
    # NaN fails every comparison.
    if not worst <= off:
        if not np.isfinite(rows).all():
            raise PeerError("columns must be finite", kind="not_finite")
        raise PeerError("columns must be orthonormal", kind="not_orthonormal")
    if worst <= HONEST:
        return rows
    lam, q = np.linalg.eigh(gram)
    if not max(1 - lam[0], lam[-1] - 1) <= off:
        raise PeerError("columns must be orthonormal", kind="not_orthonormal")
    return np.asarray(((q / np.sqrt(lam)) @ q.T @ wide).astype(rows.dtype))


@lru_cache(maxsize=8)
def _identity(k: int) -> Array:
    return np.eye(k)


def _fine(sigma: Array) -> int:
    """Return how many leading columns have to be float32."""
    return int((sigma > ALIKE * sigma[-1]).sum()) if len(sigma) else 0


def _difference(before: Array, after: Array, sigma: Array) -> float:
    """Return ||U S^2 U' - V S^2 V'||_2, in a basis of both."""
    stacked = np.hstack([before, after]).astype(np.float64)
    both = np.asarray(np.linalg.qr(stacked, mode="r"))
    weights = np.concatenate([sigma**2, -(sigma**2)])
    return float(np.abs(np.linalg.eigvalsh((both * weights) @ both.T)).max())


def _matrix(data: bytes, form: str, n: int, dim: int) -> Array:
    if len(data) != np.dtype(form).itemsize * n * dim:
        raise PeerError(
            f"expected {n} columns of {dim} numbers, got {len(data)} bytes", kind="shape"
        )
    return np.frombuffer(data, form).reshape(n, dim)


def array_of(data: bytes, what: str, length: int | None = None) -> Array:
    """Return finite float64 numbers, `length` of them if that is given."""
    if len(data) % 8 or (length is not None and len(data) != 8 * length):
        expected = "whole numbers of float64" if length is None else f"{length} float64"
        raise PeerError(f"{what}: expected {expected}, got {len(data)} bytes", kind="shape")
    array = np.frombuffer(data, "<f8")
    # One pass of BLAS accepts most: a finite sum of squares has finite terms.
    if not (math.isfinite(np.vdot(array, array)) or np.isfinite(array).all()):
        raise PeerError(f"{what} must be finite", kind="not_finite")
    return array


def bytes_of(array: Array, form: str) -> bytes:
    return np.ascontiguousarray(array, dtype=form).tobytes()
