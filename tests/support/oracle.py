"""Slow, obvious twins: what every fast routine is held against.

Nothing here is clever, shares a line with the package, or minds its cost. Data are
rows; `Twin` is what a perfect memory of them would hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np


@dataclass(frozen=True)
class Twin:
    """The exact scatter of weighted rows, and all that follows from it."""

    weight: float
    mean: np.ndarray
    scatter: np.ndarray

    @property
    def energy(self) -> float:
        return float(np.trace(self.scatter))

    @property
    def eigenvalues(self) -> np.ndarray:
        return np.maximum(np.linalg.eigvalsh(self.scatter)[::-1], 0)

    def basis(self, rank: int) -> np.ndarray:
        return np.linalg.eigh(self.scatter)[1][:, ::-1][:, :rank]


def twin(rows: np.ndarray, weights: np.ndarray | None = None, *, center: bool = True) -> Twin:
    """Dense, two passes, float64."""
    weights = np.ones(len(rows)) if weights is None else weights
    mean = np.zeros(rows.shape[1])
    if center:
        # About the first row, or the average itself would be the least exact thing here.
        mean = rows[0] + np.average(rows - rows[0], axis=0, weights=weights)
    off = rows - mean
    return Twin(float(weights.sum()), mean, (off * weights[:, None]).T @ off)


def decay(n: int, factor: float) -> np.ndarray:
    """Weights of n rows, the last of which counts fully."""
    return factor ** np.arange(n - 1, -1, -1.0)


def pooled_within(parts: list[np.ndarray]) -> np.ndarray:
    """Scatter of each part about its own mean, added up."""
    return sum(twin(part).scatter for part in parts)


def pooled_scatter(
    scatters: list[np.ndarray],
    weights: list[float],
    means: list[np.ndarray],
    *,
    between: bool = True,
) -> np.ndarray:
    """The scatters of several parts added up, with the distances between their means."""
    mean = sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights)
    total = sum(scatters)
    for w, m in zip(weights, means, strict=True):
        total = total + between * w * np.outer(m - mean, m - mean)
    return total


def scatter_of(subspace) -> np.ndarray:
    """What a subspace says the scatter is: U diag(sigma^2) U'."""
    basis = np.asarray(subspace.basis, dtype=np.float64)
    return basis @ np.diag(subspace.sigma**2) @ basis.T


def lacking(gram: np.ndarray, vectors: np.ndarray) -> float:
    """The largest eigenvalue of what is left of a Gram matrix beside orthonormal vectors."""
    off = np.eye(len(gram)) - vectors @ vectors.T
    return float(np.linalg.eigvalsh(off @ gram @ off)[-1])


def algorithm_2(U1, s1, U2, s2, *, rank, factors=(1.0, 1.0)):
    """Algorithm 2, corrected: the second factor multiplies both right-hand blocks."""
    a, b = factors
    Z = U1.T @ U2
    Q, R = np.linalg.qr(U2 - U1 @ Z)
    small = np.block(
        [[a * np.diag(s1), Z @ np.diag(b * s2)], [np.zeros((len(R), len(s1))), R @ np.diag(b * s2)]]
    )
    inner, sigma, _ = np.linalg.svd(small, full_matrices=False)
    return (np.hstack([U1, Q]) @ inner)[:, :rank], sigma[:rank]


def algorithm_4(U1, s1, U2, s2, *, rank, factors=(1.0, 1.0)):
    """Algorithm 4: the SVD of both, side by side."""
    both = np.hstack([factors[0] * U1 * s1, factors[1] * U2 * s2])
    U, sigma, _ = np.linalg.svd(both, full_matrices=False)
    return U[:, :rank], sigma[:rank]


def algorithm_5(U1, s1, U2, s2, *, rank, factors=(1.0, 1.0)):
    """Algorithm 5: QR of both, side by side, and the SVD of R."""
    Q, R = np.linalg.qr(np.hstack([factors[0] * U1 * s1, factors[1] * U2 * s2]))
    inner, sigma, _ = np.linalg.svd(R)
    return (Q @ inner)[:, :rank], sigma[:rank]


def spca(rows: np.ndarray, *, rank: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 3's result by its definition: SVD of what is kept and the block, truncated.

    Uncentered, without spares. Returns basis (dim, rank) and sigma.
    """
    kept = np.empty((rows.shape[1], 0))
    for start in range(0, len(rows), block):
        U, sigma, _ = np.linalg.svd(
            np.hstack([kept, rows[start : start + block].T]), full_matrices=False
        )
        kept = U[:, :rank] * sigma[:rank]
    return U[:, :rank], sigma[:rank]


def sapca(
    rows: np.ndarray, *, start: int, block: int, alpha: float = 0.01, beta: float = 0.1
) -> list[tuple[int, np.ndarray]]:
    """The paper's rule without spares: after each block the rank, and the basis that is shown."""
    kept, rank, found = np.empty((rows.shape[1], 0)), start, []
    for first in range(0, len(rows), block):
        U, sigma, _ = np.linalg.svd(
            np.hstack([kept, rows[first : first + block].T]), full_matrices=False
        )
        sigma = sigma[:rank]
        kept = U[:, : len(sigma)] * sigma
        share = sigma[rank - 1] / sigma.sum() if len(sigma) >= rank and sigma.sum() > 0 else 0.0
        if share > beta and rank < rows.shape[1]:
            rank += 1
        elif share < alpha and rank > 1:
            rank -= 1
        found.append((rank, U[:, : min(rank, len(sigma))]))
    return found


def spe(rows, subspace) -> np.ndarray:
    """Row by row, by least squares: the distance that no point of the subspace beats."""
    found = []
    for row in rows:
        off = row - subspace.mean
        z = np.linalg.lstsq(subspace.basis, off, rcond=None)[0]
        found.append(float(np.sum((off - subspace.basis @ z) ** 2)))
    return np.array(found)


def conditional_mean(row: np.ndarray, twin: Twin, noise: float) -> np.ndarray:
    """Fill a row's gaps by the textbook's formula for a Gaussian with a known covariance."""
    gaps = np.isnan(row)
    C = twin.scatter / twin.weight + noise * np.eye(len(row))
    known = ~gaps
    filled = row.copy()
    filled[gaps] = twin.mean[gaps] + C[np.ix_(gaps, known)] @ np.linalg.solve(
        C[np.ix_(known, known)], row[known] - twin.mean[known]
    )
    return filled


def expected_rows(
    rows: np.ndarray, mean: np.ndarray, C: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Conditional mean in each gap, and the weighted sum of the rows' conditional covariances."""
    filled, added, missing = rows.copy(), np.zeros_like(C), np.isnan(rows)
    for gaps in np.unique(missing[missing.any(axis=1)], axis=0):
        known, those = ~gaps, (missing == gaps).all(axis=1)
        pull = C[np.ix_(gaps, known)] @ np.linalg.inv(C[np.ix_(known, known)])
        off = rows[np.ix_(those, known)] - mean[known]
        filled[np.ix_(those, gaps)] = mean[gaps] + off @ pull.T
        left = C[np.ix_(gaps, gaps)] - pull @ C[np.ix_(known, gaps)]
        added[np.ix_(gaps, gaps)] += weights[those].sum() * left
    return filled, added


def expectation_maximisation(
    past: Twin, rows: np.ndarray, weights: np.ndarray, *, rounds: int
) -> Twin:
    """Past and weighted rows with gaps, from the rows' own means on: a round is all in float64."""
    dim, kept = rows.shape[1], past.weight
    filled = rows.copy()
    added = np.zeros((dim, dim))
    for channel in range(dim):
        gaps = np.isnan(rows[:, channel])
        known, counted = rows[~gaps, channel], weights[~gaps]
        middle = np.average(known, weights=counted)
        filled[gaps, channel] = middle
        spread = np.average((known - middle) ** 2, weights=counted)
        added[channel, channel] = weights[gaps].sum() * spread
    for turn in range(rounds + 1):
        new = twin(filled, weights)
        total = kept + new.weight
        apart = new.mean - past.mean
        scatter = past.scatter + new.scatter + added
        scatter = scatter + kept * new.weight / total * np.outer(apart, apart)
        mean = past.mean + new.weight / total * apart
        if turn == rounds:
            return Twin(total, mean, scatter)
        seen = kept + (~np.isnan(rows) * weights[:, None]).sum(axis=0)
        alone = np.maximum(2 * dim / seen, 1)  # with few values, channels are nearly independent
        C = scatter / total / np.sqrt(np.outer(alone, alone))
        np.fill_diagonal(C, np.diag(scatter) / total)
        filled, added = expected_rows(rows, mean, C, weights)
    raise AssertionError("unreachable")


def maximum_likelihood(rows: np.ndarray, *, rounds: int = 100_000) -> Twin:
    """Mean and scatter of rows with gaps: expectation maximisation, until nothing changes."""
    weights, n = np.ones(len(rows)), len(rows)
    mean = np.nanmean(rows, axis=0)
    C = np.diag(np.nanvar(rows, axis=0))
    for _ in range(rounds):
        filled, added = expected_rows(rows, mean, C, weights)
        new = twin(filled)
        scatter = new.scatter + added
        off = np.abs(scatter / n - C).max() + np.abs(new.mean - mean).max()
        mean, C = new.mean, scatter / n
        if off <= 1e-12 * np.abs(C).max():
            return Twin(float(n), mean, scatter)
    raise AssertionError("it does not come to rest")


def angle(first: np.ndarray, second: np.ndarray) -> float:
    """Largest principal angle between two column spaces of one rank, in degrees."""
    Q1, Q2 = np.linalg.qr(first)[0], np.linalg.qr(second)[0]
    # By its sine: the cosine cannot tell small angles from none.
    off = Q2 - Q1 @ (Q1.T @ Q2)
    return float(np.degrees(np.arcsin(min(1.0, np.linalg.norm(off, 2)))))


def geometric_median(points: np.ndarray, rounds: int = 5000) -> np.ndarray:
    """Weiszfeld's iteration on whole points (n, d), until nothing moves; stops at a point."""
    middle = points.mean(axis=0)
    for _ in range(rounds):
        distances = np.linalg.norm(points - middle, axis=1)
        if distances.min() < 1e-12:
            break
        new = np.average(points, axis=0, weights=1 / distances)
        if np.linalg.norm(new - middle) < 1e-9 * np.linalg.norm(distances):
            break
        middle = new
    return middle


def summed_distance(points: np.ndarray, middle: np.ndarray) -> float:
    """What the geometric median makes least."""
    return float(np.linalg.norm(points - middle, axis=1).sum())


def watched(
    rows: list[dict[str, float]],
    limits: dict[str, float],
    *,
    after: int,
    of: int,
    at_once: tuple[str, ...] = (),
) -> list[bool]:
    """Go from row to row: which belong to an alarm, looking at all that came before each time.

    at_once : kinds of which one row is enough
    """

    def passed(row: int, times: float) -> bool:
        recent = rows[max(0, row + 1 - of) : row + 1]
        return any(
            rows[row][kind] > times * limit
            if kind in at_once
            else sum(each[kind] > times * limit for each in recent) >= after
            for kind, limit in limits.items()
        )

    marked: list[bool] = []
    for i in range(len(rows)):
        if marked and marked[-1]:
            marked.append(any(passed(j, 0.7) for j in range(max(0, i + 1 - 4 * of), i + 1)))
        else:
            marked.append(passed(i, 1.0))
    return marked


def ewma(scores: list[float], limit: float = np.inf, weight: float = 0.1) -> list[float]:
    """Sum scores with weights that fall from row to row, from the last sum over two limits on."""
    averages: list[float] = []
    first, at_first = 0, 0.0
    for n in range(len(scores)):
        ages = [(n - i, scores[i]) for i in range(first, n + 1)]
        average = sum(weight * (1 - weight) ** age * score for age, score in ages)
        averages.append(average + (1 - weight) ** (n + 1 - first) * at_first)
        if averages[-1] > 2 * limit:
            first, at_first = n + 1, 2 * limit
    return averages


def covariance_of(subspace) -> np.ndarray:
    """What a subspace says that rows vary by, noise of what it does not hold included."""
    lacking = max(1, subspace.dim - subspace.rank)
    noise = subspace.frobenius_bound / (subspace.weight * lacking)
    return scatter_of(subspace) / subspace.weight + noise * np.eye(subspace.dim)


def left_out(centered: np.ndarray, covariance: np.ndarray, channels: int) -> np.ndarray:
    """Each channel less what all others say, a dense solve each: copies of it are no others."""
    columns = np.arange(centered.shape[1])
    found = np.empty((len(centered), channels))
    for channel in range(channels):
        others = columns[columns % channels != channel]
        weights = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, channel])
        found[:, channel] = centered[:, channel] - centered[:, others] @ weights
    return found


def alike(covariance: np.ndarray) -> np.ndarray:
    """Partial correlations of channels, without signs: of what all others leave of two, each."""
    precision = np.linalg.inv(covariance)
    sizes = np.sqrt(np.diag(precision))
    return np.abs(precision / np.outer(sizes, sizes)) * (1 - np.eye(len(sizes)))


def fall(matrix: np.ndarray, row: np.ndarray, channel: int) -> float:
    """By how much x' matrix x falls at best when one channel may be anything, along a parabola."""
    change = np.zeros(len(row))
    change[channel] = 1.0
    below, here, above = (
        float((row + t * change) @ matrix @ (row + t * change)) for t in (-1, 0, 1)
    )
    bend, slope = (above + below) / 2 - here, (above - below) / 2
    return slope**2 / (4 * bend)


def filled_covariance(covariance: np.ndarray, present: np.ndarray) -> np.ndarray:
    """How rows vary whose absent channels are filled by their conditional mean."""
    known = covariance[np.ix_(present, present)]
    fills = covariance[:, present] @ np.linalg.inv(known)
    return fills @ known @ fills.T


@dataclass(frozen=True)
class Run:
    """One reading that was repeated."""

    value: float
    length: int


def runs(readings: np.ndarray) -> list[Run]:
    """What one channel said, the last run included; gaps are passed over."""
    found: list[Run] = []
    for reading in readings[~np.isnan(readings)].tolist():
        if found and found[-1].value == reading:
            found[-1] = Run(reading, found[-1].length + 1)
        else:
            found.append(Run(reading, 1))
    return found


def counted(alarm) -> tuple[object, ...]:
    """What of an alarm is in its revision; figures only where they move no more."""
    always = alarm.node, alarm.number, alarm.began, alarm.ended, alarm.version, alarm.verdict
    if alarm.ended == 0.0:
        return always
    return *always, alarm.peaked, alarm.worst, alarm.cause, alarm.top, alarm.withheld


def incident_names(alarms, rates, windows_s) -> list[set[str]]:
    """The names of the alarms of each incident, the first first: each window by itself, joined."""
    alarms = [each for each in alarms if not each.provisional]
    dense: list[set[str]] = []
    for window_s in windows_s:
        runs = _overlapping(_windows(alarms, window_s, rates.least(window_s)))
        for run in runs:
            within = [each for each in alarms if each.name in run]
            dense += _windows(within, window_s, rates.least(window_s, apart=len(run)))
    began = {each.name: (each.began, each.node) for each in alarms}
    spans = sorted(_overlapping(dense), key=lambda names: min(began[name] for name in names))
    return [_without_early(names, began, rates, windows_s) for names in spans]


def _without_early(names, began, rates, windows_s) -> set[str]:
    """An incident without first alarms that a background of false ones brings sooner."""
    order = sorted(names, key=began.__getitem__)
    rest = [SimpleNamespace(name=n, began=began[n][0], node=began[n][1]) for n in order[1:]]
    if not any(_windows(rest, each, rates.least(each, apart=len(names))) for each in windows_s):
        return names
    first, second, last = (began[order[i]][0] for i in (0, 1, -1))
    # Of gaps of any mean, each weighed by how well it explains the others.
    n, rate = len(rest) - 1, np.geomspace(1e-7, 10, 40_000)
    weight = np.exp(n * np.log(rate) - rate * (last - second + 300) - math.lgamma(n))
    weight *= (last - second + 300) ** n / rate
    density = weight * rate * np.exp(-rate * (second - first))
    likely = ((density[1:] + density[:-1]) / 2 * np.diff(rate)).sum()
    if likely >= rates.nodes * rates.per_s(len(names)):
        return names
    return _without_early(set(order[1:]), began, rates, windows_s)


def _windows(alarms, window_s, least) -> list[set[str]]:
    order = sorted(alarms, key=lambda each: (each.began, each.node))
    found = []
    for i, first in enumerate(order):
        within = [each for each in order[i:] if each.began <= first.began + window_s]
        if len({each.node for each in within}) >= least:
            found.append({each.name for each in within})
    return found


def _overlapping(sets) -> list[set[str]]:
    """The sets, as long as any two of them share a name joined into one."""
    joined = [set(each) for each in sets]
    while True:
        pairs = ((a, b) for a in joined for b in joined if a is not b and a & b)
        pair = next(pairs, None)
        if pair is None:
            return joined
        joined = [each for each in joined if each is not pair[0] and each is not pair[1]]
        joined.append(pair[0] | pair[1])


def alarm_events(before, after) -> list[tuple[str, object]]:
    """What happened between two states without two alarms of one name, a question at a time."""
    events = []
    for new in after:
        olds = [old for old in before if (old.node, old.number) == (new.node, new.number)]
        if not olds:
            events.append(("start", new))
        if new.ended and (not olds or not olds[0].ended):
            events.append(("end", new))
        elif olds and counted(olds[0]) != counted(new):
            events.append(("change", new))
        elif olds and olds[0] != new:
            events.append(("worse", new))
    named = [(new.node, new.number) for new in after]
    events += [("gone", old) for old in before if (old.node, old.number) not in named]
    # `sorted` is stable: the start of an alarm stays in front of its end.
    return sorted(events, key=lambda each: (each[1].number, each[1].node))


def mean_log_density(rows: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """The mean log density of rows under a Gaussian, one row after the other."""
    inverse, dim = np.linalg.inv(covariance), len(mean)
    constant = dim * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]
    return float(np.mean([-(constant + (x - mean) @ inverse @ (x - mean)) / 2 for x in rows]))


def row_by_row(rows: np.ndarray, kept: np.ndarray | None = None, *, center: bool = True) -> Twin:
    """The leaf's operations in their order, to the bit; before row i the past counts kept[i]."""
    (n, dim), weight = rows.shape, 0.0
    origin, mean, scatter = np.zeros(dim), np.zeros(dim), np.zeros((dim, dim))
    for i in range(n):
        if kept is not None and kept[i] != 1:
            weight, scatter = weight * kept[i], scatter * kept[i]
        if center and weight == 0:
            origin = rows[i]
        before, weight = weight, weight + 1
        off = (rows[i] - origin) - mean
        if center:
            mean = mean + off / weight
        scatter = scatter + np.outer(off * (before / weight if center else 1.0), off)
    upper = np.triu(scatter)
    return Twin(weight, mean + origin, upper + np.triu(upper, 1).T)


def row_sums(rows: np.ndarray, clip: float) -> tuple[list[int], list[list[int]]]:
    """Sums of rows in whole steps, and of their products, number by number."""
    dim, step = rows.shape[1], clip / 1024
    total, squares = [0] * dim, [[0] * dim for _ in range(dim)]
    for row in rows.tolist():
        length = math.hypot(*row)
        shorter = [x * min(1.0, clip / length) if length else x for x in row]
        z = [round(x / step) for x in shorter]
        if sum(x * x for x in z) > 1024**2:
            z = [math.trunc(x / step) for x in shorter]
        for i in range(dim):
            total[i] += z[i]
            for j in range(dim):
                squares[i][j] += z[i] * z[j]
    return total, squares
