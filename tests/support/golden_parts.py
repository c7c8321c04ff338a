"""Parts that several golden records share: schemas, summaries, alarms, wishes, reports, models.

Every field is set, to a value that no default has, and two fields of one record never hold
the same value where that can be: fields that change places change the bytes, too. Numbers are
exact in binary, so that the same code gives the same bytes on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge import Channel, Scaling, Schema, Subspace
from submerge.features import Gaussian, RandomFourier
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.messages import Counts, Incarnation, Model, Report, ScoreSketches, Stamp
from submerge.protocol.summaries import KernelSummary
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import Moments, Reservoir
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge.stats.score_limits import Limits

NOW = 1_700_086_400.5
"""Wall time at which the golden records were written, Unix seconds."""

ROOT = Incarnation(1_500_000_000_789, 0xFEDCBA9876543210)
SITE = Incarnation(1_600_000_000_456, 0x1122334455667788)

CHANNELS = (
    Channel("bearing heat", "°C"),
    Channel("flow", "l/min"),
    Channel("load", "%"),
    Channel("läuft"),
)
LINEAR = Schema(
    CHANNELS,
    scaling=Scaling((21.5, 3.0, 50.0, 0.5), (4.0, 0.25, 16.0, 0.125)),
    center="own",
    half_life=604_800.0,
)
"""Of 4 channels."""

OPEN_LINEAR = replace(LINEAR, scaling=None)
"""As it is asked for, before the fleet has worked out a scaling."""

KERNEL = Schema(
    tuple(Channel(f"x{i}", "mm/s") for i in range(8)),
    scaling=Scaling(tuple(i / 2 for i in range(8)), tuple(i + 1.0 for i in range(8))),
    features=RandomFourier(Gaussian(0.25), 4, "fourier-pair", seed=7),
    center="own",
    half_life=86_400.0,
)
"""Of 8 channels and 4 features."""

OPEN_KERNEL = replace(KERNEL, features=KERNEL.features.settled_at(None))
"""As it is before the fleet has worked out gamma."""

HALVES = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]]) / 2
"""Orthonormal, (3, 4), and exact in float32."""

PAIRS = np.kron(np.eye(2), np.full(4, 0.5))
"""Orthonormal, (2, 8), and exact in float32."""


def numbers(first: float, n: int = 4, step: float = 0.125) -> np.ndarray:
    """Return n different numbers."""
    return np.arange(n) * step + first


def subspace(rows: np.ndarray, first: float, *, weight: float, dtype: str = "<f4") -> Subspace:
    """Return a subspace of these directions; its other numbers begin at `first`."""
    sigma = numbers(first, len(rows))[::-1]
    return Subspace(
        schema="",
        basis=rows.T.astype(dtype),
        sigma=sigma,
        mean=numbers(-first, rows.shape[1]),
        weight=weight,
        energy=float(sigma @ sigma) + 2 * first,
        spectral_bound=first / 2,
    )


def linear(first: float = 8.0, *, weight: float = 86_000.5, dtype: str = "<f4") -> Subspace:
    """Return what a linear group has learnt."""
    learnt = subspace(HALVES, first, weight=weight, dtype=dtype)
    return replace(learnt, schema=LINEAR.fingerprint)


def with_energies(first: float = 8.0) -> Subspace:
    """Return what a linear group has learnt, with the energy of each channel."""
    learnt = linear(first)
    held = np.square(learnt.basis, dtype=np.float64) @ learnt.sigma**2
    rest = np.array([0.5, 0.25, 0.125, 0.125]) * (learnt.energy - held.sum())
    return replace(learnt, channel_energies=held + rest)


def whole(*, dtype: str = "<f4") -> WholeScatter:
    """Return what a narrow group has learnt: "<f8" as it was merged, "<f4" as it travels."""
    packed = np.array([0.5, 0.25, 0.125, 0.0, 0.5, 0.125, -0.25, 0.25, 0.125, 0.125], dtype="<f4")
    held = packed
    if dtype == "<f8":
        R = np.zeros((4, 4))
        R[np.triu_indices(4)] = packed
        held = 64.0 * (R.T @ R) + 2.0**-40 * np.eye(4)
    return WholeScatter(
        schema=LINEAR.fingerprint,
        held=held,
        mean=numbers(-8.0),
        weight=86_000.5,
        energy=64.0,
        spectral_bound=0.0009765625,
        channel_energies=np.array([20.0, 24.0, 10.25, 9.75]),
    )


def kernel(first: float = 16.0, *, weight: float = 85_000.25, dtype: str = "<f4") -> KernelSummary:
    """Return what a kernel group has learnt."""
    both = (
        subspace(rows, number, weight=weight, dtype=dtype)
        for rows, number in ((HALVES, first), (PAIRS, first + 4))
    )
    features, readings = (replace(each, schema=KERNEL.fingerprint) for each in both)
    return KernelSummary(features=features, linear=readings)


def coarse_sketch(first: int) -> QuantileSketch:
    """Return a sketch of scores."""
    return QuantileSketch(level=0, bins=((first - 8, 1), (first, 20), (first + 8, 300)))


def fine_sketch(first: int) -> QuantileSketch:
    """Return a sketch of peaks."""
    bins = ((first - 64, 2), (first, 30), (first + 31, 400))
    return QuantileSketch(level=-2, bins=bins, grain=FINE)


def maxima(first: int, *, of_readings: bool) -> BlockMaxima:
    """Return what the scores of each hour came to; four different sketches."""
    return BlockMaxima(
        spe=fine_sketch(first),
        t2=fine_sketch(first + 1),
        linear=fine_sketch(first + 2)
        if of_readings
        else QuantileSketch(level=-2, bins=(), grain=FINE),
        longest=700 + first,
        channel=fine_sketch(first + 3),
    )


def scores(first: int, *, of_readings: bool) -> ScoreSketches:
    """Return sketches of recent scores."""
    return ScoreSketches(
        spe=coarse_sketch(first),
        t2=coarse_sketch(first + 1),
        linear=coarse_sketch(first + 2) if of_readings else None,
        maxima=maxima(first + 10, of_readings=of_readings),
    )


def limits(first: float, *, of_readings: bool) -> Limits:
    """Return measured limits."""
    return Limits(
        shares=(0.5, 0.75, 0.875),
        spe=tuple(numbers(first, 3).tolist()),
        t2=tuple(numbers(first + 1, 3).tolist()),
        n=4096 + int(first),
        linear=tuple(numbers(first + 2, 3).tolist()) if of_readings else (),
    )


def moments(width: int, count: int, *, sample: bool) -> Moments:
    """Return moments, with a sample of readings or without."""
    points = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    priorities = np.array([3, 0x0123456789ABCDEF, 2**64 - 1], dtype=np.uint64)
    return Moments(
        count=count,
        mean=numbers(20.5, width),
        m2=numbers(2.0, width, 0.25),
        sample=Reservoir(priorities=priorities, points=points) if sample else None,
    )


def alarms(node: str, first: str = "spe") -> tuple[Alarm, ...]:
    """Return an open alarm of the cause `first`, and one that is over of each other."""
    verdicts: dict[Any, Any] = {
        "spe": "",
        "t2": "accepted",
        "linear": "rejected",
        "channel": "",
        "stuck": "",
    }
    causes = [first, *(cause for cause in verdicts if cause != first)]
    reported = []
    for i, cause in enumerate(causes):
        alarm = Alarm(
            node=node,
            number=1_700_086_390_000 - 1000 * i,
            began=1_700_086_390.25 - i,
            peaked=1_700_086_395.5 - i,
            ended=1_700_086_399.75 - i if i else 0.0,
            worst=3.25 + i,
            cause=cause,
            top=(("bearing heat", 0.5), ("flow", 0.25), ("läuft", 0.125)),
            version=1_700_086_000_000 + i,
            withheld=60 + i,
            verdict=verdicts[cause],
        )
        reported.append(alarm)
    return tuple(reported)


def alarm_status(node: str, state: int = 2) -> AlarmStatus:
    """Return how a client watches; states: learning, armed, alarm, paused, stale."""
    return AlarmStatus(
        states=tuple(int(i == state) for i in range(5)),
        alarms=alarms(node),
        open=1,
        watched_s=604_800.5,
        allowed=1.25,
        raised=4,
        confirmed=2,
        armed_in_s=3600.5,
        desired=1_700_086_400_777,
    )


def report(
    node: str, group: str, current: Incarnation, seq: int, *, summary: Any, **fields: Any
) -> Report:
    """Return a client's report of everything."""
    of_readings = isinstance(summary, KernelSummary)
    schema = KERNEL if of_readings else LINEAR
    said: dict[str, Any] = {
        "final": True,
        "pinned": SITE,
        "fence": b"",
        "fingerprint": schema.fingerprint,
        "summary": summary,
        "moments": moments(schema.width, 50 + seq, sample=of_readings),
        "counts": Counts(learnt=86_401 + seq, withheld=17 + seq, lost=5 + seq),
        "as_of": NOW - seq,
        "synced": True,
        "version": 1_700_086_000_000 + seq,
        "lifetime": 600_000 + seq,
        "census": None,
        "scores": scores(seq, of_readings=of_readings),
        "software": "submerge 0.0.9",
        "certified_until": 1_800_000_000.5 + seq,
        "alarm_status": alarm_status(node),
    }
    return Report(stamp=Stamp(node, group, current, seq), **{**said, **fields})


def model(group: str, *, summary: Any, first: int, **fields: Any) -> Model:
    """Return a model; its numbers begin at `first`."""
    of_readings = isinstance(summary, KernelSummary)
    schema = KERNEL if of_readings else LINEAR
    said: dict[str, Any] = {
        "version": 1_700_086_000_000 + first,
        "schema": schema.canonical,
        "fingerprint": schema.fingerprint,
        "summary": summary,
        "limits": limits(float(first), of_readings=of_readings),
        "counts": Counts(learnt=1_000_000 + first, withheld=500 + first, lost=20 + first),
        "nodes": 12 + first,
        "staleness": (256.0 + first, 512.0 + first, 1024.0 + first),
        "created": NOW - 100 - first,
        "expires": NOW + 3000 + first,
        "maxima": maxima(first + 20, of_readings=of_readings),
    }
    return Model(group=group, **{**said, **fields})
