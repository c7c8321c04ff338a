"""ModelView: what a model holds, for charts: loadings by channel, the spectrum and its bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from submerge_proto.files import learnt as learnt_file

MOST_CHANNELS, MOST_DIRECTIONS = 512, 64
"""Of a model with more, those with the largest parts are shown."""

DIGITS = 5


@dataclass(frozen=True, slots=True)
class DirectionView:
    """One direction of normal variation.

    share : of all variation, kept and discarded
    scored : whether nodes score with it; else it is a spare one
    loadings : signed, by channel, in the order of the channels
    """

    share: float
    scored: bool
    loadings: list[float]


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model.

    channels, units : Of the channels that are shown; with lags each counts several times.
    left_out : Channels that are not shown.
    rank : Directions that nodes score with; 0 if their configuration says it.
    rest : Share of all variation that no direction has: a bound on what one more could explain.
    noise : Standard deviation of each channel's noise, in units of what was learnt; empty if none
        is known.
    limits : Limits by statistic, for each of `shares`.
    """

    group: str
    version: int
    fingerprint: str
    created_s: float
    expires_s: float
    learnt: int
    withheld: int
    lost: int
    nodes: int
    rank: int
    widened: float
    channels: list[str]
    units: list[str]
    left_out: int
    directions: list[DirectionView]
    rest: float
    noise: list[float]
    shares: list[float]
    limits: dict[str, list[float]]


def model_view(data: bytes) -> ModelView:
    """Return what the bytes of a model hold; raises PeerError if they are no model."""
    model, schema = learnt_file.model_of(data)
    parts = () if model.summary is None else model.summary.parts
    summary = parts[-1] if parts else None
    names = list(schema.names)
    units = [""] * len(names)
    if not isinstance(schema.channels, int):
        units = [channel.unit for channel in schema.channels]
    basis = np.zeros((len(names), 0)) if summary is None else np.asarray(summary.basis, np.float64)
    shares = np.zeros(0)
    if summary is not None and summary.energy > 0:
        shares = summary.sigma**2 / summary.energy
    # The channels with the largest parts in what varies most, in their own order.
    weight = np.sqrt((basis**2 * shares[: basis.shape[1]]).sum(axis=1))
    chosen = np.sort(np.argsort(-weight, kind="stable")[:MOST_CHANNELS])
    noise = np.sqrt(model.factors[-1].noise) if model.factors else np.zeros(0)
    limits, of = dict[str, list[float]](), model.limits
    if of is not None:
        kinds = {"distance": of.distance, "spe": of.spe, "t2": of.t2, "linear": of.linear}
        limits = {kind: _short(np.asarray(each)) for kind, each in kinds.items() if len(each or ())}
    return ModelView(
        model.group,
        model.version,
        model.fingerprint,
        model.created,
        model.expires,
        model.counts.learnt,
        model.counts.withheld,
        model.counts.lost,
        model.nodes,
        model.rank,
        model.widened,
        [names[j] for j in chosen],
        [units[j] if j < len(units) else "" for j in chosen],
        len(names) - len(chosen),
        [
            DirectionView(
                _rounded(share), not model.rank or i < model.rank, _short(basis[chosen, i])
            )
            for i, share in enumerate(shares[:MOST_DIRECTIONS].tolist())
        ],
        _rounded(max(0.0, 1.0 - float(shares.sum()))) if summary is not None else 0.0,
        _short(noise[chosen]) if len(noise) == len(names) else [],
        [] if of is None else [_rounded(each) for each in of.shares],
        limits,
    )


def _short(values: np.ndarray) -> list[float]:
    return [_rounded(each) for each in values.tolist()]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else 0.0
