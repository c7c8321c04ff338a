"""Missing: rows with gaps, and how far the model then is from batch PCA of the complete rows.

Light (see accuracy.py) with 10 % and 30 % of its values hidden, at random and in outages of one
channel, of 6 to 24, 12 to 96 and 96 to 288 rows (of five minutes: half an hour to two, one to
eight, eight to 24 hours). Error is that of the complete rows, over the optimum; worst of the seeds.

- filled: gaps are filled by the engine's own directions, and learnt as they are (blocks of 45).
- pairs: the covariance of each pair of channels over the rows that have both, made positive
  semi-definite. It needs two sums and a count for each pair.
- learnt: `SAPCA.partial_fit(rows, gaps=...)`, where the scatter is held.
- a fault's distance: of 15 noises, in rows of two causes and four channels, median; by EM of 200
  rounds over all rows, by `fit`, and by `partial_fit` in calls of 50. What is missing: a share at
  random, or one channel at the start, in the middle, at the end (a quarter of the rows).
- off by: `submerge replay`'s error on values hidden on purpose, over the error on those that are
  really missing, less one.
"""

import gzip
from collections.abc import Callable, Iterator

import numpy as np

import measure
from report import Table, command
from submerge import SAPCA, Array, Model, Schema, Subspace
from submerge.pca.expectation import Guesses, Mask
from submerge.pca.missing import fill
from submerge.sklearn import SubspaceDetector
from submerge_lab.replay.rows import hidden_error

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


def plant(noise: float, n: int, seed: int) -> Array:
    """Return rows (n, 4) of two hidden causes and a noise."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).normal(size=(2, 4)) * 2
    return rng.normal(size=(n, 2)) @ loadings + noise * rng.normal(size=(n, 4))


def everywhere(rows: Array) -> Found:
    """Return mean and covariance by expectation maximisation over all rows."""
    mean, C = np.nanmean(rows, axis=0), np.diag(np.nanvar(rows, axis=0))
    patterns, which = np.unique(np.isnan(rows), axis=0, return_inverse=True)
    for _ in range(200):
        full, added = rows - mean, np.zeros_like(C)
        for i, gone in enumerate(patterns):
            some, there = which.ravel() == i, ~gone
            if gone.any() and there.any():
                slopes = np.linalg.solve(C[np.ix_(there, there)], C[np.ix_(there, gone)])
                full[np.ix_(some, gone)] = full[np.ix_(some, there)] @ slopes
                left = C[np.ix_(gone, gone)] - C[np.ix_(gone, there)] @ slopes
                added[np.ix_(gone, gone)] += some.sum() * left
        shift = full.mean(axis=0)
        C = ((full - shift).T @ (full - shift) + added) / len(rows)
        mean = mean + shift
    return mean, C


def distances(quick: bool) -> Table:
    """Measure how far a fault is, by each way to learn rows with gaps."""
    found, n = [], 1500 if quick else 6000
    parts = {"start": slice(0, n // 4), "middle": slice(n // 3, n // 3 + n // 4)}
    parts["end"] = slice(-n // 4, None)
    for noise in (0.03, 0.1, 0.3, 1.0):
        X, fault = plant(noise, n, 8), plant(noise, 200, 9)
        fault[:, 1] += 15 * noise
        for name in ("none", "1%", "5%", "10%", *parts):
            rows = X.copy()
            if name in parts:
                rows[parts[name], 3] = np.nan
            elif name != "none":
                share = float(name[:-1]) / 100
                rows[np.random.default_rng(1).random(X.shape) < share] = np.nan
            rows = rows[2 * np.isnan(rows).sum(axis=1) <= 4]
            mean, C = everywhere(rows)
            off = fault - mean
            calls = SubspaceDetector()
            for start in range(0, len(rows), 50):
                calls.partial_fit(rows[start : start + 50])
            each = (
                np.einsum("ij,ij->i", off @ np.linalg.inv(C), off),
                Model.fit(rows).score(fault)["distance"],
                -calls.score_samples(fault),
            )
            found.append((f"{noise:g}", name, *(float(np.median(way)) for way in each)))
    ways = ("EM over all rows", "fit", "partial_fit, calls of 50")
    columns = {"noise": "", "missing": ""} | dict.fromkeys(ways, ".1f")
    return Table("Distance of a fault of 15 noises", columns, found)


def room(quick: bool) -> list[Table]:
    """Measure each way to hide values."""
    if not measure.LIGHT.exists():
        measure.say(f"missing: no {measure.LIGHT}: nothing measured (set SUBMERGE_DATA)")
        return [distances(quick)]
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
    light = Table("Error of complete rows over the optimum, on Light", columns, found)
    return [distances(quick), light]


if __name__ == "__main__":
    command(room)
