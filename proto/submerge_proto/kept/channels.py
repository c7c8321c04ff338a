"""What a client remembers of its channels, as protobuf and back: means, habits, typical errors.

A column of a record has a name. `HABITS` and `RUN_LENGTHS` say which field each name is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from submerge import Array, PeerError
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.stuck import Habits, RunLengths
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import parts

Known = TypeVar("Known", Habits, RunLengths)

HABITS = {
    "weight": "weight",
    "mean": "mean",
    "scatter": "scatter",
    "error": "error",
    "learnt": "learnt",
    "others": "others",
    "others_then": "others_then",
    "stuck": "stuck",
}
"""Names of columns in records, in their order there, and the fields of `Habits`.

The names on the left are bytes on disks and never change.
"""

RUN_LENGTHS = {
    "last": "last",
    "lowest": "lowest",
    "highest": "highest",
    "run": "run",
    "longest": "longest",
    "at_lowest": "at_lowest",
    "at_highest": "at_highest",
}
"""The same of `RunLengths`."""


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


def residual_scale(value: ResidualScale) -> pb.ResidualScale:
    """Return the typical errors of channels as a message."""
    squares, weight = floats(value.squares), floats(value.weight)
    return pb.ResidualScale(squares=squares, weight=weight, span_s=value.span_s)


def residual_scale_of(message: pb.ResidualScale) -> ResidualScale:
    """Return the typical errors of channels that a message holds."""
    squares, weight = floats_of("squares", message.squares), floats_of("weight", message.weight)
    if len(squares) != len(weight):
        raise PeerError(f"expected as many weights as {len(squares)} squares", kind="shape")
    return ResidualScale(squares, weight, parts.real("span_s", message.span_s))


def columns(value: Habits | RunLengths) -> Iterable[pb.Column]:
    """Return what is known of each channel, field by field."""
    fields = HABITS if isinstance(value, Habits) else RUN_LENGTHS
    return (
        pb.Column(name=name, values=floats(getattr(value, field))) for name, field in fields.items()
    )


def columns_of(messages: Any, none: Callable[[int], Known]) -> Known | None:
    """Return what is known of each channel; None if nothing is.

    A name that this version does not know is skipped: a later version wrote it. A field without
    a column has its value from before the first row: an earlier version wrote the record.

    none : makes the value from before the first row, for a number of channels
    """
    if not len(messages):
        return None
    known = none(len(messages[0].values) // 8)
    fields = HABITS if isinstance(known, Habits) else RUN_LENGTHS
    for each in messages:
        field = fields.get(each.name)
        if field is not None:
            known = known._replace(**{field: _column(each, getattr(known, field))})
    return known


def _column(message: pb.Column, before: Any) -> Any:
    """Return a number for each channel, of the type of `before`; NaN only where that has NaN."""
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
