"""A client's node monitor as protobuf, and back: means, maxima, alarms, the desired state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from submerge import Array, PeerError
from submerge.client.alarms.blocks import KeptBlocks
from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.new_level import NewLevel
from submerge.client.monitor_state import MonitorState
from submerge.protocol.alarm_status import REMEMBERED
from submerge.protocol.messages import Model
from submerge.stats.block_maxima import By
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, packed, unpacked
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.stuck import Habits, RunLengths
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, forms, parts, scores

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


def channel_mean(value: OwnMean) -> pb.OwnMean:
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

    A name that this version does not know is skipped: a later version wrote it. A field without a
    column has its value from before the first row (`none`): an earlier version wrote the record.
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


def model_of(message: wire.Model) -> Model:
    """Return the model in a record."""
    parts.check_version(message.header.version)
    return forms.model_of(message)


STATISTICS: dict[str, By] = {
    "spe": "spe",
    "t2": "t2",
    "linear": "linear",
    "channel": "channel",
    "distance": "distance",
    "smoothed": "smoothed",
}
"""Names in records (`Value.of`, `Windows.of`), and what the code calls them.

The names on the left are bytes on disks. A name that is not here is refused.
"""

_ON_DISK: dict[By, str] = {kind: name for name, kind in STATISTICS.items()}


def monitor(value: MonitorState) -> pb.NodeMonitor:
    """Return the monitor as a message."""
    message = pb.NodeMonitor(
        fingerprint=bytes.fromhex(value.fingerprint),
        detector=_detector(value.detector),
        desired=alarms.desired(value.desired),
    )
    if value.run_lengths is not None:
        message.run_lengths.extend(columns(value.run_lengths))
    if value.habits is not None:
        message.habits.extend(columns(value.habits))
    if value.residual_scale is not None:
        message.residual_scale.CopyFrom(residual_scale(value.residual_scale))
    for field, mean in ((message.own, value.own), (message.held, value.held)):
        if mean is not None:
            field.CopyFrom(channel_mean(mean))
    if value.level is not None:
        message.level.CopyFrom(_level(value.level))
    if value.offset is not None:
        message.offset = floats(value.offset)
    if value.reference is not None:
        message.reference.CopyFrom(forms.model(value.reference))
    return message


def monitor_of(message: pb.NodeMonitor) -> MonitorState:
    """Return the monitor that a message holds."""
    own = mean_of(message.own) if message.HasField("own") else None
    held = mean_of(message.held) if message.HasField("held") else None
    reference = model_of(message.reference) if message.HasField("reference") else None
    fingerprint = parts.fingerprint(message.fingerprint)
    if reference is None and held is not None:
        raise PeerError("expected a model beside the mean of the open alarm, got none")
    other = reference is not None and reference.fingerprint != fingerprint
    if other or (reference is not None and reference.summary is None):
        raise PeerError("expected a model of the same schema that has learnt something")
    if own is not None and held is not None and _shape(own) != _shape(held):
        raise PeerError(f"means of one node: got {_shape(own)} and {_shape(held)}", kind="shape")
    return MonitorState(
        fingerprint=fingerprint,
        own=own,
        detector=_detector_of(message.detector),
        desired=alarms.desired_of(message.desired),
        reference=reference,
        held=held,
        run_lengths=columns_of(message.run_lengths, RunLengths.none),
        habits=columns_of(message.habits, Habits.none),
        residual_scale=residual_scale_of(message.residual_scale)
        if message.HasField("residual_scale")
        else None,
        level=_level_of(message.level) if message.HasField("level") else None,
        offset=floats_of("an offset", message.offset) if message.offset else None,
    )


def _level(value: NewLevel) -> pb.NewLevel:
    half = None if value.half is None else channel_mean(value.half)
    return pb.NewLevel(mean=channel_mean(value.mean), half=half, calm_s=value.calm_s)


def _level_of(message: pb.NewLevel) -> NewLevel:
    half = mean_of(message.half) if message.HasField("half") else None
    return NewLevel(mean_of(message.mean), half, parts.real("calm_s", message.calm_s))


def _shape(mean: OwnMean) -> tuple[int, int]:
    return len(mean.rows), 0 if mean.features is None else len(mean.features)


def _detector(value: DetectorState) -> pb.DetectorState:
    return pb.DetectorState(
        alarms=map(alarms.alarm, value.alarms),
        held_s=value.held_s,
        frozen=_values(value.frozen),
        blame=floats(value.blame),
        excused=value.excused,
        raised=value.raised,
        confirmed=value.confirmed,
        hours=_blocks(value.hours),
        highest=_highest(value.highest),
    )


def _detector_of(message: pb.DetectorState) -> DetectorState:
    return DetectorState(
        alarms.alarms_of(message.alarms, 1 + REMEMBERED),
        parts.real("held_s", message.held_s),
        _values_of(message.frozen),
        floats_of("blame", message.blame),
        tuple(message.excused),
        message.raised,
        message.confirmed,
        _blocks_of(message.hours),
        _highest_of(message.highest),
    )


def _blocks(value: KeptBlocks) -> pb.Hours:
    windows = (
        pb.Hours.Windows(of=_ON_DISK[kind], before=packed(before), filling=packed(filling))
        for kind, (before, filling) in value.windows.items()
    )
    return pb.Hours(
        windows=windows,
        hours=value.blocks,
        spared=_values(value.spared),
        watched_s=value.watched_s,
        allowed=value.allowed,
        block_s=value.block_s,
        before=None if value.before is None else scores.maxima(value.before),
    )


def _blocks_of(message: pb.Hours) -> KeptBlocks:
    windows = {
        _kind(each.of): (unpacked(each.before, FINE), unpacked(each.filling, FINE))
        for each in message.windows
    }
    return KeptBlocks(
        windows,
        message.hours,
        _values_of(message.spared),
        parts.real("watched_s", message.watched_s),
        parts.real("allowed", message.allowed),
        scores.block_s_of(message.block_s),
        scores.maxima_of(message.before) if message.HasField("before") else None,
    )


def _highest(value: HighestSoFar) -> list[pb.DetectorState.Highest]:
    return [
        pb.DetectorState.Highest(
            of=_ON_DISK[kind],
            value=min(value.values.get(kind, 0.0), parts.WORST),
            rows=rows,
            mean=min(value.means.get(kind, 0.0), parts.WORST),
        )
        for kind, rows in value.rows.items()
    ]


def _highest_of(messages: Any) -> HighestSoFar:
    return HighestSoFar(
        {_kind(each.of): parts.number("rows", each.rows) for each in messages},
        {_kind(each.of): parts.within("a score", each.value) for each in messages},
        {_kind(each.of): parts.within("a score", each.mean) for each in messages},
    )


def _values(values: Mapping[By, float]) -> list[pb.Hours.Value]:
    return [
        pb.Hours.Value(of=_ON_DISK[kind], value=min(n, parts.WORST)) for kind, n in values.items()
    ]


def _values_of(messages: Any) -> dict[By, float]:
    return {_kind(each.of): parts.real("a limit", each.value) for each in messages}


def _kind(name: str) -> By:
    if name not in STATISTICS:
        raise PeerError(f"expected one of {', '.join(STATISTICS)}, got {name[:80]!r}")
    return STATISTICS[name]
