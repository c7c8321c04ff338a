"""A fleet of alike nodes, and what liars among them may say.

60 nodes by default, 30 channels, 4 directions of normal variation over a floor of noise. An
attack turns an honest summary into a liar's; all liars of one attack collude: they share `off`,
directions orthogonal to the honest ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from submerge import MergeTree, Schema, Subspace

DIM, RANK, SPARES, NODES = 30, 4, 5, 60
VARIANCES = np.array([4.0, 3.0, 2.0, 1.0])
NOISE = 0.2
SIZE = float(VARIANCES.sum()) ** 0.5
"""One standard deviation of a reading."""


@dataclass(frozen=True)
class Fleet:
    """Honest summaries by node, and the directions that they have in common.

    true : (DIM, RANK), of the law that all readings follow
    off : (DIM, DIM - RANK), orthogonal to them
    """

    parts: dict[str, Subspace]
    true: np.ndarray
    off: np.ndarray

    def lying(self, attack: Attack, liars: int, seed: int = 0) -> tuple[dict[str, Subspace], set]:
        """Return the summaries when so many lie, and who does."""
        rng = np.random.default_rng(seed)
        chosen = {str(name) for name in rng.permutation(sorted(self.parts))[:liars]}
        return {
            name: attack(part, self, rng) if name in chosen else part
            for name, part in self.parts.items()
        }, chosen


Attack = Callable[[Subspace, Fleet, np.random.Generator], Subspace]


def fleet(
    seed: int,
    rows: Callable[[np.random.Generator], int] = lambda rng: int(rng.integers(100, 400)),
    *,
    nodes: int = NODES,
    dim: int = DIM,
    variances: np.ndarray = VARIANCES,
    noise: float = NOISE,
    turned: float = 0.0,
    shifted: float = 0.0,
    louder: float = 0.0,
) -> Fleet:
    """Return a fleet whose nodes all saw the same law.

    Parameters
    ----------
    rows : how many readings a node has
    turned : how much each node's directions differ from the common ones, 0.2 is 10 degrees
    shifted : size of each node's own offset
    louder : standard deviation of the logarithm of a node's amplitude
    """
    rng = np.random.default_rng(seed)
    rank, axes = len(variances), np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    true, off = axes[:, :rank], axes[:, rank:]
    schema, parts = Schema.anonymous(dim), {}
    for i in range(nodes):
        n, own = rows(rng), true
        if turned:
            bent = true + turned / dim**0.5 * rng.standard_normal(true.shape)
            own = np.linalg.qr(bent)[0]
        X = rng.standard_normal((n, rank)) * np.sqrt(variances) @ own.T
        X += noise * rng.standard_normal((n, dim))
        X *= np.exp(louder * rng.standard_normal())
        X += shifted / dim**0.5 * rng.standard_normal(dim)
        parts[f"node-{i:02d}"] = summary(X, schema, rank=rank + SPARES)
    return Fleet(parts, true, off)


def summary(X: np.ndarray, schema: Schema, *, rank: int) -> Subspace:
    """What a node would send of so many readings, by its scatter: fast where they are many."""
    if len(X) <= X.shape[1]:
        return Subspace.of(X, schema, rank=rank)
    mean = X.mean(axis=0)
    values, vectors = np.linalg.eigh((X - mean).T @ (X - mean))
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    k = min(rank, int(np.count_nonzero(values > 1e-12 * values[0])))
    rest = float(values[k]) if k < len(values) else 0.0
    basis = vectors[:, :k].astype(np.float32)
    weight, energy = float(len(X)), float(values.sum())
    return Subspace(schema.fingerprint, basis, np.sqrt(values[:k]), mean, weight, energy, rest)


def merged(parts: dict[str, Subspace], *, rank: int = RANK) -> np.ndarray:
    """The directions of a model: as a machine merges, and shows."""
    tree = MergeTree(rank=rank + SPARES)
    for name, part in parts.items():
        tree[name] = part
    return np.asarray(tree.root().truncated(rank).basis, dtype=np.float64)


def message(part: Subspace, basis: np.ndarray, variances, *, times: float = 1.0) -> Subspace:
    """A part with other directions, of such variances; `times` the weight."""
    weight = part.weight * times
    sigma = np.sqrt(np.asarray(variances, dtype=np.float64) * weight)
    order = np.argsort(-sigma, kind="stable")
    return replace(
        part,
        basis=basis[:, order].astype(np.float32),
        sigma=sigma[order],
        weight=weight,
        energy=1.02 * float(sigma @ sigma),
        spectral_bound=0.0,
    )


def turned(fleet: Fleet, degrees: float, directions: int = RANK) -> np.ndarray:
    """The true directions, the last ones turned out of their space."""
    angle, basis = np.radians(degrees), fleet.true.copy()
    basis[:, -directions:] = (
        np.cos(angle) * basis[:, -directions:] + np.sin(angle) * fleet.off[:, :directions]
    )
    return basis


def _own(part: Subspace, fleet: Fleet, rng: np.random.Generator) -> Subspace:
    mixed = np.linalg.qr(rng.standard_normal((fleet.off.shape[1], RANK)))[0]
    return message(part, fleet.off @ mixed, VARIANCES)


def _moved(part: Subspace, fleet: Fleet, deviations: float) -> Subspace:
    return replace(part, mean=part.mean + deviations * SIZE * fleet.off[:, 0])


def _stuck(part: Subspace, fleet: Fleet, at: float) -> Subspace:
    nothing = np.empty((len(part.mean), 0), np.float32), np.empty(0)
    mean = at * SIZE * fleet.off[:, 0]
    return Subspace(part.schema, *nothing, mean, part.weight, 0.0, 0.0)


def _beside(part: Subspace, fleet: Fleet) -> Subspace:
    """As loud as caps allow, in an honest direction; the lie is just what noise may be."""
    basis = np.hstack([fleet.true[:, :1], fleet.off[:, :8]])
    return message(part, basis, [30.0, *[0.35] * 8], times=3)


NAMED: dict[str, Attack] = {
    "orthogonal, in bounds": lambda p, f, _: message(p, f.off[:, :RANK], VARIANCES),
    "huge sigma": lambda p, f, _: message(p, f.off[:, :RANK], 1e8 * VARIANCES),
    "huge weight": lambda p, f, _: message(p, f.off[:, :RANK], VARIANCES, times=1e6),
}
"""What the machine is asked to bear."""

OTHERS: dict[str, Attack] = {
    "each its own directions": _own,
    "all energy in one direction": lambda p, f, _: message(p, f.off[:, :1], [SIZE**2]),
    "turned by 30 degrees": lambda p, f, _: message(p, turned(f, 30), VARIANCES),
    "half of the directions honest": lambda p, f, _: message(p, turned(f, 90, 2), VARIANCES),
    "weakest direction, at the caps": lambda p, f, _: message(
        p, turned(f, 90, 1), 3 * VARIANCES, times=3
    ),
    "few rows, huge sigma": lambda p, f, _: message(p, f.off[:, :1], [1e9], times=8 / p.weight),
    "mean 10 deviations off": lambda p, f, _: _moved(p, f, 10),
    "mean 1 deviation off": lambda p, f, _: _moved(p, f, 1),
    "stuck, and 10 deviations off": lambda p, f, _: _stuck(p, f, 10),
    "stuck at 0": lambda p, f, _: _stuck(p, f, 0),
    "bounds that lie, honest directions": lambda p, _f, _r: replace(
        p, energy=3 * p.energy, spectral_bound=1e12
    ),
    "huge energy, honest directions": lambda p, f, _: message(p, f.true, [4e8, 3, 2, 1]),
}
"""What it bears as well, or what does no harm."""

CLEVER: dict[str, Attack] = {
    "mean 0.3 deviations off": lambda p, f, _: _moved(p, f, 0.3),
    "turned by 14 degrees": lambda p, f, _: message(p, turned(f, 14), VARIANCES),
    "turned by 14 degrees, at the caps": lambda p, f, _: message(
        p, turned(f, 14), 3 * VARIANCES, times=3
    ),
    "weakest turned by 14, all energy in it": lambda p, f, _: message(
        p, turned(f, 14, 1), [1, 1, 1, 27], times=3
    ),
    "in the noise, at the caps": lambda p, f, _: _beside(p, f),
}
"""What stays below every limit: the harm is bounded, and is done."""
