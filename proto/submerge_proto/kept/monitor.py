"""What a client's lookout remembers, as protobuf and back: means, peaks, alarms, a wish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submerge import PeerError
from submerge.client.alarm_limits import Hours
from submerge.client.detector import Watched
from submerge.client.monitor import Kept
from submerge.protocol.alarm_status import REMEMBERED
from submerge.protocol.messages import Model
from submerge.stats.block_maxima import KINDS, By
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, packed, unpacked
from submerge.stats.run_lengths import RunLengths
from submerge.stats.stuck import Habits
from submerge_proto.kept import channels
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, forms, parts


def model_of(message: wire.Model) -> Model:
    """Return a model that was kept."""
    parts.check_version(message.header.version)
    return forms.model_of(message)


def monitor(value: Kept) -> pb.NodeMonitor:
    """Return what a client looks at its readings with."""
    message = pb.NodeMonitor(
        fingerprint=bytes.fromhex(value.fingerprint),
        watched=_watched(value.watched),
        desired=alarms.desired(value.desired),
    )
    if value.run_lengths is not None:
        message.run_lengths.extend(channels.columns(value.run_lengths))
    if value.habits is not None:
        message.habits.extend(channels.columns(value.habits))
    if value.usual is not None:
        message.usual.CopyFrom(channels.usual(value.usual))
    for field, mean in ((message.own, value.own), (message.held, value.held)):
        if mean is not None:
            field.CopyFrom(channels.mean(mean))
    if value.reference is not None:
        message.reference.CopyFrom(forms.model(value.reference))
    return message


def monitor_of(message: pb.NodeMonitor) -> Kept:
    """Return what a client looks at its readings with."""
    own = channels.mean_of(message.own) if message.HasField("own") else None
    held = channels.mean_of(message.held) if message.HasField("held") else None
    reference = model_of(message.reference) if message.HasField("reference") else None
    fingerprint = parts.fingerprint(message.fingerprint)
    if reference is None and held is not None:
        raise PeerError("expected a model beside the mean that belongs to it, got none")
    other = reference is not None and reference.fingerprint != fingerprint
    if other or (reference is not None and reference.summary is None):
        raise PeerError("expected a model of the same schema, that knows something")
    if own is not None and held is not None and _shape(own) != _shape(held):
        raise PeerError(f"means of one node: got {_shape(own)} and {_shape(held)}", kind="shape")
    return Kept(
        fingerprint=fingerprint,
        own=own,
        watched=_watched_of(message.watched),
        desired=alarms.desired_of(message.desired),
        reference=reference,
        held=held,
        run_lengths=channels.columns_of(message.run_lengths, RunLengths.none),
        habits=channels.columns_of(message.habits, Habits.none),
        usual=channels.usual_of(message.usual) if message.HasField("usual") else None,
    )


def _shape(mean: OwnMean) -> tuple[int, int]:
    return len(mean.rows), 0 if mean.features is None else len(mean.features)


def _watched(value: Watched) -> pb.Watched:
    return pb.Watched(
        alarms=map(alarms.alarm, value.alarms),
        held_s=value.held_s,
        frozen=_levels(value.frozen),
        blame=channels.floats(value.blame),
        excused=value.excused,
        raised=value.raised,
        confirmed=value.confirmed,
        hours=_hours(value.hours),
    )


def _watched_of(message: pb.Watched) -> Watched:
    return Watched(
        alarms.alarms_of(message.alarms, 1 + REMEMBERED),
        parts.real("held_s", message.held_s),
        _levels_of(message.frozen),
        channels.floats_of("blame", message.blame),
        tuple(message.excused),
        message.raised,
        message.confirmed,
        _hours_of(message.hours),
    )


def _hours(value: Hours) -> pb.Hours:
    windows = (
        pb.Hours.Windows(of=kind, before=packed(before), filling=packed(filling))
        for kind, (before, filling) in value.windows.items()
    )
    return pb.Hours(
        windows=windows,
        hours=value.hours,
        spared=_levels(value.spared),
        watched_s=value.watched_s,
        allowed=value.allowed,
    )


def _hours_of(message: pb.Hours) -> Hours:
    windows = {
        _kind(each.of): (unpacked(each.before, FINE), unpacked(each.filling, FINE))
        for each in message.windows
    }
    return Hours(
        windows,
        message.hours,
        _levels_of(message.spared),
        parts.real("watched_s", message.watched_s),
        parts.real("allowed", message.allowed),
    )


def _levels(values: Mapping[By, float]) -> list[pb.Hours.Level]:
    return [pb.Hours.Level(of=kind, value=min(n, parts.WORST)) for kind, n in values.items()]


def _levels_of(messages: Any) -> dict[By, float]:
    return {_kind(each.of): parts.real("a limit", each.value) for each in messages}


def _kind(name: str) -> By:
    if name not in KINDS:
        raise PeerError(f"expected scores of a kind that is known, got {name[:80]!r}")
    return name
