"""Subspaces as they travel: float32 columns, or coarser ones where that does no harm.

The leading columns go as float32. Those whose sigma is at most 8 times the smallest may go
as int8 and a scale: what rounding leaks from one into another is then small against either.
The sender works out what the receiver will see, and says in `spectral_bound` by how much
that is off. What comes in is checked here, number by number, and believed afterwards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from submerge import Array, PeerError, Subspace
from submerge_proto.v1 import summary_pb2 as pb

MOST_DIM = 1 << 20
"""Longer vectors than any device sends."""

ALIKE = 8.0
"""Columns may be coarse whose sigma is at most so many times the smallest."""

OFF, OFF_COARSE, HONEST = 1e-3, 5e-2, 1e-5
"""How far from orthonormal columns may be, coarse ones, and float32's own rounding."""

LARGEST = 3.4e38
"""Squares beyond this are no float32."""


def packed(subspace: Subspace, *, coarse: bool = False, exact: bool = False) -> pb.Subspace:
    """Return a subspace as it travels; `exact`: as it is kept on one's own disk."""
    out = pb.Subspace(
        dim=subspace.dim,
        sigma=_bytes(subspace.sigma, "<f8"),
        mean=_bytes(subspace.mean, "<f8"),
        weight=subspace.weight,
        energy=subspace.energy,
        spectral_bound=subspace.spectral_bound,
    )
    if exact:
        out.exact = _bytes(subspace.basis.T, "<f8")
        return out
    fine = _fine(subspace.sigma) if coarse else subspace.rank
    out.columns = _bytes(subspace.basis.T[:fine], "<f4")
    if fine < subspace.rank:
        rows = np.asarray(subspace.basis.T[fine:], dtype=np.float64)
        scales = (np.abs(rows).max(axis=1) / 127).astype("<f4")
        steps = np.rint(rows / scales[:, None].astype(np.float64)).astype(np.int8)
        out.coarse, out.scales = steps.tobytes(), scales.tobytes()
        seen = _columns(out, subspace.rank)
        out.spectral_bound += _difference(subspace.basis, seen, subspace.sigma)
    return out


def unpacked(message: pb.Subspace, fingerprint: str, *, kept: bool = False) -> Subspace:
    """Return the subspace that a message holds; `kept`: it comes from one's own disk.

    Raises
    ------
    PeerError
        If no honest node could have written it.
    """
    dim = message.dim
    if not 1 <= dim <= MOST_DIM:
        raise PeerError(f"a subspace has 1 to {MOST_DIM} dimensions, got {dim}")
    if message.exact and not kept:
        raise PeerError("columns travel as float32, got float64")
    sigma, mean = _array(message.sigma, "sigma"), _array(message.mean, "mean", dim)
    if len(sigma) > dim:
        raise PeerError(f"a subspace has at most {dim} directions, got {len(sigma)}")
    numbers = np.array([message.weight, message.energy, message.spectral_bound])
    if not (np.isfinite(numbers).all() and numbers[0] > 0 and (numbers >= 0).all()):
        raise PeerError("weight, energy and bound must be finite and not negative")
    if not np.abs(mean).max() < LARGEST**0.5 or not message.energy < LARGEST:
        raise PeerError("mean and energy must be numbers whose squares are no larger than 3.4e38")
    if not ((sigma >= 0).all() and (np.diff(sigma) <= 0).all() and np.isfinite(sigma).all()):
        raise PeerError("sigma must be finite and descending, and not negative")
    if message.energy < float(sigma @ sigma) * (1 - 1e-5):
        raise PeerError("energy must not be less than what sigma holds")
    basis = _columns(message, len(sigma))
    basis.flags.writeable = False
    return Subspace(
        fingerprint,
        basis,
        sigma,
        mean,
        weight=message.weight,
        energy=message.energy,
        spectral_bound=message.spectral_bound,
    )


def arrived(subspace: Subspace) -> Subspace:
    """Return what the other end sees of it: float32 columns."""
    return replace(subspace, basis=np.asarray(subspace.basis, dtype=np.float32))


def _columns(message: pb.Subspace, k: int) -> Array:
    """The basis (dim, k), orthonormal."""
    dim = message.dim
    if message.exact:
        rows = _matrix(message.exact, "<f8", k, dim)
        return _orthonormal(rows, OFF).T
    n_coarse = len(message.scales) // 4
    if n_coarse > k:
        raise PeerError(f"a subspace of {k} columns has at most {k} coarse ones, got {n_coarse}")
    rows = _matrix(message.columns, "<f4", k - n_coarse, dim)
    if not n_coarse:
        return _orthonormal(rows, OFF).T
    if n_coarse > k - _fine(np.frombuffer(message.sigma, "<f8")):
        raise PeerError(f"columns are coarse only up to {ALIKE:g} times the smallest sigma")
    scales = np.frombuffer(message.scales, "<f4")
    steps = _matrix(message.coarse, "i1", n_coarse, dim)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = (steps * scales[:, None].astype(np.float64)).astype(np.float32)
    return _orthonormal(np.concatenate([rows, wide]), OFF_COARSE).T


def _orthonormal(rows: Array, off: float) -> Array:
    """Return rows as they are, if they are orthonormal; else the nearest that are, if near."""
    if not len(rows):
        return rows
    wide = np.asarray(rows, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        gram = wide @ wide.T
    error = gram - np.eye(len(gram))
    # Both below LARGEST**2: a float64 holds them, and NaN fails every comparison.
    if not np.abs(error).max() <= off:
        raise PeerError("columns must be orthonormal")
    if np.abs(error).max() <= HONEST:
        return rows
    lam, q = np.linalg.eigh(gram)
    if not max(1 - lam[0], lam[-1] - 1) <= off:
        raise PeerError("columns must be orthonormal")
    return np.asarray(((q / np.sqrt(lam)) @ q.T @ wide).astype(rows.dtype))


def _fine(sigma: Array) -> int:
    """How many leading columns have to be float32."""
    return int((sigma > ALIKE * sigma[-1]).sum()) if len(sigma) else 0


def _difference(before: Array, after: Array, sigma: Array) -> float:
    """||U S^2 U' - V S^2 V'||_2, by way of a basis of both."""
    stacked = np.hstack([before, after]).astype(np.float64)
    both = np.asarray(np.linalg.qr(stacked, mode="r"))
    weights = np.concatenate([sigma**2, -(sigma**2)])
    return float(np.abs(np.linalg.eigvalsh((both * weights) @ both.T)).max())


def _matrix(data: bytes, form: str, n: int, dim: int) -> Array:
    if len(data) != np.dtype(form).itemsize * n * dim:
        raise PeerError(f"expected {n} columns of {dim} numbers, got {len(data)} bytes")
    return np.frombuffer(data, form).reshape(n, dim)


def _array(data: bytes, what: str, length: int | None = None) -> Array:
    if len(data) % 8 or (length is not None and len(data) != 8 * length):
        expected = "whole numbers of float64" if length is None else f"{length} float64"
        raise PeerError(f"{what}: expected {expected}, got {len(data)} bytes")
    array = np.frombuffer(data, "<f8")
    if not np.isfinite(array).all():
        raise PeerError(f"{what} must be finite")
    return array


def _bytes(array: Array, form: str) -> bytes:
    return np.ascontiguousarray(array, dtype=form).tobytes()
