"""Answers of several nodes to one drill, merged by channel where they are shown, never before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submerge.drill.drill import SIZED, ChannelAnswer
from submerge.schema import Schema


class SizeRange(NamedTuple):
    """A size over nodes: infinite where a node finds none."""

    best: float
    median: float
    worst: float


class ChannelDrill(NamedTuple):
    """What nodes would find of the faults of one channel: medians, scaled as rows are."""

    nodes: int
    blind: int
    deviation: float  # 1 where none travelled
    r2: float
    bias: SizeRange
    drift: SizeRange
    noise: SizeRange
    stuck: float  # mean shares of spans, NaN if unknown, as `swap`
    swap: float


def merged(answers: Sequence[Sequence[ChannelAnswer]]) -> tuple[ChannelDrill, ...]:
    """Return the answers of nodes, one channel after the other: each is a row of channels."""
    return tuple(_one(each) for each in zip(*answers, strict=True))


def in_units(answers: Sequence[ChannelDrill], schema: Schema) -> list[dict[str, Any]]:
    """Return each channel as an object for JSON: sizes in its unit, null where none is found."""
    scales = np.ones(schema.width) if schema.scaling is None else np.array(schema.scaling.scale)
    return [
        {
            "channel": channel.name,
            "unit": channel.unit,
            "nodes": each.nodes,
            "blind": each.blind,
            "deviation": _number(scale * each.deviation),
            "r2": round(each.r2, 4),
            **{kind: _spread_in_unit(getattr(each, kind), scale) for kind in SIZED},
            "stuck": _number(each.stuck),
            "swap": _number(each.swap),
        }
        for each, channel, scale in zip(answers, schema.named, scales.tolist(), strict=False)
    ]


def _one(answers: Sequence[ChannelAnswer]) -> ChannelDrill:
    bias, drift, noise = (
        _spread([getattr(each, kind) for each in answers]) for kind in ("bias", "drift", "noise")
    )
    return ChannelDrill(
        len(answers),
        sum(each.blind for each in answers),
        float(np.median([each.deviation for each in answers])),
        float(np.median([each.r2 for each in answers])),
        bias,
        drift,
        noise,
        _mean([each.stuck for each in answers]),
        _mean([each.swap for each in answers]),
    )


def _spread(sizes: list[float]) -> SizeRange:
    ranked = sorted(sizes)
    half = len(ranked) // 2
    # Of an even number the larger of both in the middle: it may be that one of them is infinite.
    return SizeRange(ranked[0], ranked[half], ranked[-1])


def _mean(shares: list[float]) -> float:
    known = [share for share in shares if not math.isnan(share)]
    return sum(known) / len(known) if known else math.nan


def _spread_in_unit(spread: SizeRange, scale: float) -> dict[str, float | None]:
    return {name: _number(scale * size) for name, size in spread._asdict().items()}


def _number(value: float) -> float | None:
    """Return what JSON can hold: null for a size that is none, and for a share that is unknown."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
