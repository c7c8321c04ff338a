"""What a client remembers of its channels, as protobuf and back: means, habits, what is usual."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from submerge import Array, PeerError
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.run_lengths import RunLengths
from submerge.stats.stuck import Habits
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import parts

Known = TypeVar("Known", Habits, RunLengths)


def mean(value: OwnMean) -> pb.OwnMean:
    """Return a node's own mean."""
    return pb.OwnMean(
        rows=floats(value.rows),
        features=b"" if value.features is None else floats(value.features),
        weight=value.weight,
        count=value.count,
        span_s=value.span_s,
    )


def mean_of(message: pb.OwnMean) -> OwnMean:
    """Return a node's own mean."""
    return OwnMean(
        floats_of("a mean", message.rows),
        floats_of("a mean", message.features) if message.features else None,
        parts.real("weight", message.weight),
        message.count,
        parts.real("span_s", message.span_s),
    )


def usual(value: ResidualScale) -> pb.ResidualScale:
    """Return how far channels usually are from what the others make of them."""
    squares, weight = floats(value.squares), floats(value.weight)
    return pb.ResidualScale(squares=squares, weight=weight, span_s=value.span_s)


def usual_of(message: pb.ResidualScale) -> ResidualScale:
    """Return how far channels usually are from what the others make of them."""
    squares, weight = floats_of("squares", message.squares), floats_of("weight", message.weight)
    if len(squares) != len(weight):
        raise PeerError(f"expected as many weights as {len(squares)} squares", kind="shape")
    return ResidualScale(squares, weight, parts.real("span_s", message.span_s))


def columns(value: Habits | RunLengths) -> Iterable[pb.Column]:
    """Return what is known of each channel, field by field."""
    return (pb.Column(name=name, values=floats(array)) for name, array in value._asdict().items())


def columns_of(messages: Any, none: Callable[[int], Known]) -> Known | None:
    """Return what is known of each channel; None if nothing is.

    Fields of a later version are passed over, and those of an earlier one that are not there
    are as they are before the first row.

    none : what that is, of so many channels
    """
    if not len(messages):
        return None
    known = none(len(messages[0].values) // 8)
    for each in messages:
        before = getattr(known, each.name, None) if each.name in known._fields else None
        if before is not None:
            known = known._replace(**{each.name: _column(each, before)})
    return known


def _column(message: pb.Column, before: Any) -> Any:
    """Return a number for each channel, of the same kind as before; NaN where that may be."""
    array = np.frombuffer(message.values, "<f8")
    if len(array) != len(before):
        raise PeerError(
            f"{message.name}: expected {len(before)} channels, got {len(array)}", kind="shape"
        )
    if np.isinf(array).any() or (np.isnan(array).any() and not np.isnan(before).all()):
        raise PeerError(f"{message.name} must be finite", kind="not_finite")
    return array.astype(before.dtype)


def floats(array: Array) -> bytes:
    """Return numbers as bytes."""
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def floats_of(what: str, data: bytes) -> Array:
    """Return finite numbers."""
    array = np.frombuffer(data, "<f8")
    if not np.isfinite(array).all():
        raise PeerError(f"{what} must be finite", kind="not_finite")
    return array
