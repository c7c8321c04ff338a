"""Missing: rows with gaps, and how far the model then is from batch PCA of the complete rows.

Light (see accuracy.py) with 10 % and 30 % of its values hidden, at random and in outages of one
channel, of 6 to 24, 12 to 96 and 96 to 288 rows (of five minutes: half an hour to two, one to
eight, eight to 24 hours). Error is that of the complete rows, over the optimum; worst of the seeds.

- filled: gaps are filled by the engine's own directions, and learnt as they are (blocks of 45).
- pairs: the covariance of each pair of channels over the rows that have both, made positive
  semi-definite. It needs two sums and a count for each pair.
- learnt: `SAPCA.partial_fit(rows, gaps=...)`, where the scatter is held.
- off by: `submerge replay`'s error on values hidden on purpose, over the error on those that are
  really missing, less one.
"""

import gzip
from collections.abc import Callable, Iterator

import numpy as np

import measure
from report import Table, command
from submerge import SAPCA, Array, Schema, Subspace
from submerge.pca.expected import Guesses, Mask
from submerge.pca.missing import fill
from submerge_fleet.replay.hidden import hidden_error

RANKS = (4, 8, 10, 16)
OUTAGES = ((6, 24), (12, 96), (96, 288))
RANK = 10

Found = tuple[Array, Array]
"""Mean and covariance."""


def hidings() -> Iterator[tuple[str, float, Callable[[tuple[int, int], int], Mask]]]:
    """Return each way to hide values of (n, dim): its name, its share, and what draws it."""
    for share in (0.1, 0.3):
        yield (
            "at random",
            share,
            lambda shape, seed, share=share: np.random.default_rng(seed).random(shape) < share,
        )
        for least, most in OUTAGES:

            def outages(
                shape: tuple[int, int],
                seed: int,
                share: float = share,
                least: int = least,
                most: int = most,
            ) -> Mask:
                rng, hidden = np.random.default_rng(seed), np.zeros(shape, dtype=bool)
                while hidden.mean() < share:
                    channel, start = rng.integers(shape[1]), rng.integers(shape[0])
                    hidden[start : start + rng.integers(least, most + 1), channel] = True
                return hidden

            yield f"outages of {least} to {most} rows", share, outages


def guessed(rows: Array) -> Array:
    """Return rows with zero in each gap: a guess counts only where a block has nothing else."""
    return np.nan_to_num(rows)


def learnt(rows: Array, rank: int = RANK) -> SAPCA:
    """Learn rows with gaps."""
    engine = SAPCA(rank, schema=Schema.anonymous(rows.shape[1]))
    return engine.partial_fit(guessed(rows), gaps=Guesses(np.isnan(rows)))


def expected(rows: Array) -> Found:
    """Return what the engine holds of rows with gaps."""
    held = learnt(rows).whole_scatter
    return held.mean, held.scatter


def filled(rows: Array) -> Found:
    """Fill by the engine's own directions, and learn what was filled."""
    engine = SAPCA(RANK, schema=Schema.anonymous(rows.shape[1]))
    engine.partial_fit(fill(rows[:45], _means(rows[:45]))[0])
    for start in range(45, len(rows), 45):
        engine.partial_fit(fill(rows[start : start + 45], engine.shown)[0])
    held = engine.whole_scatter
    return held.mean, held.scatter


def pairs(rows: Array) -> Found:
    """Return the mean of each channel, and the covariance of each pair."""
    known = (~np.isnan(rows)).astype(np.float64)
    about = np.nanmean(rows, axis=0)
    values = np.nan_to_num(rows - about)
    counts, sums = known.T @ known, values.T @ known
    C = values.T @ values / counts - (sums / counts) * (sums / counts).T
    lam, vectors = np.linalg.eigh(C)
    return about, (vectors * np.maximum(lam, 0.0)) @ vectors.T


def _means(rows: Array) -> Subspace:
    mean = np.nan_to_num(np.nanmean(rows, axis=0))
    return SAPCA(1, schema=Schema.anonymous(len(mean))).partial_fit(mean[None]).subspace


def over_optimum(X: Array, found: Found, tails: Array) -> list[float]:
    """Return the error of complete rows over the optimum, at each rank."""
    mean, C = found
    vectors = np.linalg.eigh(C)[1][:, ::-1]
    return [measure.residual(X - mean, vectors[:, :r]) / tails[r] for r in RANKS]


def off_by(X: Array, rows: Array) -> float:
    """Return by how much replay's figure differs from the error on what is really missing."""
    gaps = np.isnan(rows)
    true = np.mean((fill(rows, learnt(rows).shown)[0] - X)[gaps] ** 2)
    return (hidden_error(rows, lambda part: learnt(part).shown) or 0.0) / float(true) - 1


WAYS = {"filled": filled, "pairs": pairs, "learnt": expected}


def room(quick: bool) -> list[Table]:
    """Measure each way to hide values."""
    if not measure.LIGHT.exists():
        measure.say(f"missing: no {measure.LIGHT}: nothing measured (set SUBMERGE_DATA)")
        return []
    with gzip.open(measure.LIGHT, "rt") as file:
        X = np.loadtxt(file)[:7700]
    tails, found = measure.tails(X - X.mean(axis=0)), []
    for name, share, hide in measure.progress(list(hidings()), "missing"):
        hidden = [np.where(hide(X.shape, s), np.nan, X) for s in range(1 if quick else 5)]
        for way, learn in WAYS.items():
            errors = np.max([over_optimum(X, learn(rows), tails) for rows in hidden], axis=0)
            off = [off_by(X, rows) for rows in hidden] if learn is expected else [None]
            worst = max(off, key=abs) if learn is expected else None
            found.append((name, f"{share:.0%}", way, *errors, worst))
    columns = {"hidden": "", "share": "", "way": ""}
    columns |= {f"rank {r}": ".4f" for r in RANKS} | {"off by": "+.1%"}
    return [Table("Error of complete rows over the optimum, on Light", columns, found)]


if __name__ == "__main__":
    command(room)
