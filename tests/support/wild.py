"""The wildest messages that are believed: every number at a bound, next to zero, or far apart.

A receiver accepts each of them. What an aggregator then sends must be accepted as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge import PeerError, Schema, Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.messages import Census, Counts, Report, ScoreSketches, Stamp
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, ScoreTrail
from submerge.protocol.summaries import KernelSummary
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import LARGEST_POINT, LEAST_WIDTH, Moments, Reservoir
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge_proto.v1 import summary_pb2 as pb
from submerge_proto.wire import columns, parts, triangles
from submerge_proto.wire.sizes import LARGEST, held_by
from support.alarm_statuses import most_alarms
from support.nodes import EPOCH
from support.wire import READINGS, kernel_schema, travelled


def wild(rng: np.random.Generator, schema: Schema, most_weight: float) -> Subspace:
    """The wildest subspace that is believed, of this schema."""
    while True:
        try:
            return columns.unpacked(_wild(rng, schema.dim, most_weight), schema.fingerprint)
        except PeerError:
            pass  # a little too wild


def wild_whole(rng: np.random.Generator, schema: Schema, most_weight: float) -> WholeScatter:
    """The wildest whole scatter that is believed, of this schema."""
    while True:
        try:
            message = _wild_whole(rng, schema.dim, most_weight)
            return triangles.unpacked(message, schema.fingerprint)
        except PeerError:
            pass  # a little too wild


def wild_summary(
    rng: np.random.Generator, schema: Schema, most_weight: float
) -> Subspace | KernelSummary | WholeScatter:
    """The wildest that a group of this schema can have: two subspaces, if it has features."""
    if schema.linear and rng.random() < 0.4:
        return wild_whole(rng, schema, most_weight)
    first = wild(rng, schema, most_weight)
    if schema.linear:
        return first
    while True:
        try:
            linear = _wild(rng, schema.width, most_weight, first.weight)
            return KernelSummary(first, columns.unpacked(linear, schema.fingerprint))
        except PeerError:
            pass  # a little too wild


def schema_of(kernel: bool, width: int, **fields: Any) -> Schema:
    """A group's, of so many channels; `kernel`: of their features."""
    schema = Schema(width, **fields)
    return replace(schema, features=kernel_schema(width, 6).features) if kernel else schema


def _wild(
    rng: np.random.Generator, dim: int, most_weight: float, weight: float | None = None
) -> pb.Subspace:
    k = int(rng.integers(0, dim + 1))
    rows = np.eye(dim)[rng.permutation(dim)[:k]]
    if rng.random() < 0.7:
        rows = np.linalg.qr(rng.standard_normal((dim, dim)))[0][:k]
    rows = rows + rng.uniform(-1, 1, (k, dim)) * rng.choice([0, 9e-6, 4e-4]) / dim
    rows = rows * rng.choice([1, 1 + 4.9e-6, 1 - 4.9e-6])
    weight, mean, most = _edges(rng, dim, most_weight, weight)
    sizes = [*np.array([0, 1e-50, 1.001e-50, 1e-30, 1, 1e3]) * weight**0.5]
    sizes += [*np.array([1e-16, 3e-16, 1e-15, 1e-8, 1e-4, 0.99]) * (max(most, 0) / dim) ** 0.5]
    sigma = np.sort(rng.choice(sizes, k))[::-1]
    if k and rng.random() < 0.3:
        sigma = np.full(k, sigma[0])
    held = float(sigma @ sigma)
    energy = max(held, float(rng.choice([held, 1.5 * held, 0.999 * most, max(most, 0)])))
    if energy == held and rng.random() < 0.5:
        energy *= 1 - 1e-5  # as far below as float32 may round
    return pb.Subspace(
        dim=dim,
        columns=rows.astype("<f4").tobytes(),
        sigma=sigma.astype("<f8").tobytes(),
        mean=mean.astype("<f8").tobytes(),
        weight=weight,
        energy=energy,
        spectral_bound=float(rng.choice([0, energy, 1e300])),
        channel_energies=_wild_energies(rng, held_by(rows.astype("<f4"), sigma), energy),
    )


def _edges(
    rng: np.random.Generator, dim: int, most_weight: float, weight: float | None
) -> tuple[float, np.ndarray, float]:
    """A weight, a mean, and the most energy that readings of both can have."""
    if weight is None:
        weight = min(float(rng.choice([2.0**-600, 1e-100, 1.0, 1e9, most_weight])), most_weight)
    size = rng.choice([0, 1e-310, 1.0, 1e12, 1.84e19, np.nextafter(LARGEST**0.5, 0)])
    mean = size * rng.choice([-1, 0, 1, 0.5], dim)
    return weight, mean, weight * (dim * LARGEST - float(mean @ mean))


def _wild_energies(rng: np.random.Generator, held: np.ndarray, energy: float) -> bytes:
    """Energies of channels that cover what is held just so, the rest in a single one; or none."""
    if rng.random() < 0.4:
        return b""
    energies = held * float(rng.choice([1, 1 - 9e-6]))
    energies[int(rng.integers(len(held)))] += energy - energies.sum()
    energies *= float(rng.choice([1, 1 + 9e-6, 1 - 9e-6]))
    return np.maximum(energies, 0.0).astype("<f8").tobytes()


def _wild_whole(rng: np.random.Generator, dim: int, most_weight: float) -> pb.Subspace:
    weight, mean, most = _edges(rng, dim, most_weight, None)
    R = rng.standard_normal((dim, dim)) * rng.choice([0, 1e-38, 1e-44, 1e-7, 1], (dim, dim))
    packed = R[np.triu_indices(dim)]
    length = float(np.linalg.norm(packed))
    packed *= float(rng.choice([0, 0.5, 1, 1 + 4e-6])) / length if length else 0.0
    packed = packed.astype("<f4")
    energy = max(0.0, float(rng.choice([0, 1e-300, 1e-40, 1, most * 1e-9, most * 0.999, most])))
    square = np.zeros((dim, dim))
    square[np.triu_indices(dim)] = np.square(packed, dtype=np.float64)
    return pb.Subspace(
        dim=dim,
        columns=packed.tobytes(),
        mean=mean.astype("<f8").tobytes(),
        weight=weight,
        energy=energy,
        spectral_bound=float(rng.choice([0, energy, 1e300])),
        channel_energies=_wild_energies(rng, energy * square.sum(axis=0), energy),
        whole=True,
    )


def wild_report(rng: np.random.Generator, schema: Schema, stamp: Stamp, **fields: Any) -> Report:
    """The wildest report that is believed."""
    while True:
        try:
            return travelled(_wild_report(rng, schema, stamp, **fields))
        except PeerError:
            pass  # a little too wild


def _wild_report(rng: np.random.Generator, schema: Schema, stamp: Stamp, **fields: Any) -> Report:
    fence, learnt = fields["fence"], int(rng.choice([1, 100, READINGS]))
    report = Report(
        stamp,
        final=bool(rng.random() < 0.15),
        fingerprint=schema.fingerprint,
        summary=None,
        moments=None,
        counts=Counts(learnt, *(int(n) for n in rng.choice([0, READINGS], 2))),
        as_of=float(rng.choice([EPOCH, EPOCH - 1e9, EPOCH + 1e9, 0, 1e308, -1e308, 5e-324])),
        synced=bool(rng.random() < 0.7),
        version=int(rng.choice([0, 5, 2**62, 2**62 + 1, 2**63 - 1])),
        lifetime=int(rng.choice([0, 2**62])),
        **fields,
    )
    if rng.random() < 0.8:
        weight = float(learnt) * (1 + 1e-6 if rng.random() < 0.5 else 1)
        report = replace(report, summary=wild_summary(rng, schema, weight))
    if rng.random() < 0.3:
        report = replace(report, moments=wild_moments(rng, schema.width, learnt))
    if rng.random() < 0.5:
        ages = (2**40,) * int(rng.integers(0, 65))
        report = replace(report, census=Census(2**40, ages))
    if rng.random() < 0.5:
        values = rng.choice([0, 1e-300, 1, 5, 1e300], int(rng.integers(1, 40))) * rng.random()
        sketch = QuantileSketch.of(values)
        many = READINGS // sketch.n if rng.random() < 0.5 else 1
        crowd = QuantileSketch(sketch.level, tuple((index, n * many) for index, n in sketch.bins))
        linear = sketch if rng.random() < 0.5 else None
        report = replace(report, scores=ScoreSketches(crowd, sketch, linear, wild_peaks(rng)))
    if rng.random() < 0.7:
        report = replace(report, alarm_status=wild_vigil(rng, stamp.node, above=bool(fence)))
    if not fence and rng.random() < 0.5:
        report = replace(report, trail=wild_trail(rng))
    return report


def wild_trail(rng: np.random.Generator) -> ScoreTrail:
    """Return a trail at an end of the calendar, of any levels."""
    levels = rng.bytes(int(rng.choice([1, MINUTES])))
    return ScoreTrail(int(rng.choice([len(levels) - 1, LAST_MINUTE])), levels)


def wild_moments(rng: np.random.Generator, width: int, learnt: int) -> Moments:
    """The wildest moments that are believed, with a sample of the wildest points."""
    count, most = int(rng.choice([1, learnt])), parts.MOST_MOMENT
    mean = most * rng.choice([0, 1e-300, 0.7, -1, 1], width)
    room = np.maximum(most**2 * (1 - 1e-15) - mean**2, 0)
    m2 = count * np.minimum(room, rng.choice([0, 5e-324, 1.0, 0.5e280, np.inf]))
    sample = None
    if width >= LEAST_WIDTH:
        priorities = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
        drawn = np.unique(rng.choice(priorities, min(count, 4)))
        points = LARGEST_POINT * rng.choice([-1, 0, 1e-300, 1], (len(drawn), 4))
        sample = Reservoir(drawn, points.astype(np.float32))
    return Moments(count, mean, m2, sample)


def wild_peaks(rng: np.random.Generator) -> BlockMaxima | None:
    """The wildest peaks that are believed: none, a few, or so many that sums are cut."""
    sketches = []
    for _ in range(4):
        values = rng.choice([0, 1e-300, 1, 5, 1e250], int(rng.integers(0, 300)))
        sketch = QuantileSketch.of(
            values * rng.lognormal(0, rng.choice([0.1, 5]), len(values)), FINE
        )
        many = READINGS // max(sketch.n, 1) if rng.random() < 0.3 else 1
        bins = tuple((index, n * many) for index, n in sketch.bins)
        sketches.append(QuantileSketch(sketch.level, bins, FINE))
    spe, t2, linear, channel = sketches
    longest = int(rng.choice([0, 1, 500, 2**62]))
    return BlockMaxima(spe, t2, linear, longest, channel) if rng.random() < 0.8 else None


def wild_vigil(rng: np.random.Generator, node: str, *, above: bool) -> AlarmStatus:
    """The wildest that is believed of a client; or of an aggregator, of many nodes."""
    number, ended = int(rng.choice([0, 2**62])), float(rng.choice([0, 5e-324, 1e11]))
    alarm = replace(most_alarms(node, 1)[0], number=number, ended=ended, worst=1.7e308)
    others = [replace(alarm, node=name) for name in ("x", "q")] if above else []
    times = (2.0**62, 2.0**62, float(rng.choice([-1, 0, 2.0**62])))
    return AlarmStatus(
        tuple(rng.choice([0, 2**40], 5).tolist()) if above else AlarmStatus.at("stale"),
        (alarm, *others) * int(rng.integers(0, 10)),
        2**40 if above else 0,
        *times[:2],
        *rng.choice([0, 2**62], 2).tolist(),
        times[2],
        int(rng.choice([0, 5, 2**62])),
    )
