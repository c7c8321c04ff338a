"""Factors of a model on the wire: the noise of each channel, and loadings where they are apart.

Numbers travel as float32. Noise that float32 cannot hold is brought within its range first.

An honest root gives each channel a noise of at least a ten-thousandth of its variance (`LEAST` of
`pca.factor`), and what factors hold of a channel is never more than its variance. A receiver allows
`STEEP` between the two: what it solves with them then has an inverse, whatever a parent sends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge import Array, PeerError
from submerge.pca.factor import Factors
from submerge.protocol.summaries import Summary
from submerge_proto.v1 import summary_pb2 as pb
from submerge_proto.wire.columns import MOST_RANK, bytes_of

LEAST, LARGEST = float(np.finfo(np.float32).tiny), float(np.float32(3e38))
"""Least and largest noise, and largest loading: squares of such quotients are float64."""

STEEP = 1e8
"""Largest part of a channel that factors hold, over its noise."""


def packed(factors: Factors) -> pb.Factors:
    """Return factors as a message."""
    noise = bytes_of(np.clip(factors.noise, LEAST, LARGEST), "<f4")
    if factors.loadings is None:
        return pb.Factors(noise=noise)
    loadings = np.clip(factors.loadings.T, -LARGEST, LARGEST)
    return pb.Factors(noise=noise, loadings=bytes_of(loadings, "<f4"))


def unpacked(messages: Sequence[pb.Factors], summary: Summary | None) -> tuple[Factors, ...]:
    """Return the factors that messages hold, for each part of a summary; () if there are none.

    Raises PeerError if they do not go with the summary.
    """
    if not messages:
        return ()
    subspaces = () if summary is None else summary.parts
    if len(messages) != len(subspaces):
        raise PeerError(
            f"expected factors for each of {len(subspaces)} subspaces, got {len(messages)}",
            kind="shape",
        )
    known = tuple(_one(each, part.dim) for each, part in zip(messages, subspaces, strict=True))
    for factors, part in zip(known, subspaces, strict=True):
        held = np.square(factors.loadings_of(part)).sum(axis=1)
        if not (held <= STEEP * factors.noise).all():
            raise PeerError(
                f"expected noise of at least {1 / STEEP:g} of what factors hold of a channel, got"
                f" {(factors.noise / np.maximum(held, LEAST)).min():.3g}",
                kind="range",
            )
    return known


def _one(message: pb.Factors, dim: int) -> Factors:
    noise = _numbers(message.noise)
    if len(noise) != dim:
        raise PeerError(f"expected the noise of {dim} channels, got {len(noise)}", kind="shape")
    if not (noise >= LEAST).all() or not (noise <= LARGEST).all():
        raise PeerError(f"noise must be {LEAST:g} to {LARGEST:g}", kind="range")
    if not message.loadings:
        return Factors(noise)
    loadings = _numbers(message.loadings)
    k, rest = divmod(len(loadings), dim)
    if rest or not k <= min(dim, MOST_RANK):
        raise PeerError(
            f"expected loadings of {dim} channels, got {len(loadings)} numbers", kind="shape"
        )
    if not (np.abs(loadings) <= LARGEST).all():
        raise PeerError(f"loadings must be at most {LARGEST:g} either way", kind="range")
    return Factors(noise, loadings.reshape(k, dim).T)


def _numbers(data: bytes) -> Array:
    """Return float32 numbers, as float64."""
    if len(data) % 4:
        raise PeerError(f"factors: expected float32, got {len(data)} bytes", kind="shape")
    return np.frombuffer(data, "<f4").astype(np.float64)
