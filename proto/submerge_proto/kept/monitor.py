"""A client's node monitor as protobuf, and back: means, maxima, alarms, the desired state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from submerge import PeerError
from submerge.client.alarms.blocks import KeptBlocks
from submerge.client.alarms.detector import DetectorState, SilentChannels
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.new_level import NewLevel
from submerge.client.monitor_state import MonitorState
from submerge.pca.own_scatter import KAPPAS, WIDEST, OwnScatter
from submerge.protocol.alarm_status import REMEMBERED
from submerge.protocol.messages import Model
from submerge.stats.departures import Departures
from submerge.stats.duty import DutyCycles
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, packed, unpacked
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.resolution import Resolution
from submerge.stats.statistic import KINDS, By
from submerge.stats.stuck import Habits, RunLengths
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, forms, parts, scores
from submerge_proto.wire.fields import (
    PLAIN,
    WORST,
    Part,
    finite,
    floats,
    form,
    number,
    or_empty,
    real,
    several,
    within,
)

T = TypeVar("T")

Known = TypeVar("Known", Habits, RunLengths, Resolution, SilentChannels, DutyCycles, Departures)

COLUMNS: dict[type[Any], tuple[str, ...]] = {
    Habits: ("weight", "mean", "scatter", "error", "learnt", "others", "others_then", "stuck"),
    RunLengths: ("last", "lowest", "highest", "run", "longest", "at_lowest", "at_highest"),
    Resolution: ("last", "step", "before", "seen"),
    SilentChannels: ("lasting", "longest", "known"),
    DutyCycles: DutyCycles._fields,
    Departures: Departures._fields,
}
"""Names of columns in records, in their order there: bytes on disks, which never change. So far the
fields are called the same."""

_FLOATS = floats("a value")

OWN_MEAN = form(
    pb.OwnMean,
    OwnMean,
    rows=floats("a mean"),
    features=or_empty(floats("a mean")),
    weight=finite("weight"),
    count=PLAIN,
    span_s=finite("span_s"),
)


def _residual_scale(**fields: Any) -> ResidualScale:
    scale = ResidualScale(**fields)
    if len(scale.squares) != len(scale.weight):
        raise PeerError(f"expected as many weights as {len(scale.squares)} squares", kind="shape")
    return scale


RESIDUAL_SCALE = form(
    pb.ResidualScale,
    _residual_scale,
    squares=floats("squares"),
    weight=floats("weight"),
    span_s=finite("span_s"),
)


def _columns(value: Habits | RunLengths | Resolution) -> Iterable[pb.Column]:
    fields = COLUMNS[type(value)]
    return (pb.Column(name=name, values=_FLOATS.made(getattr(value, name))) for name in fields)


def _columns_of(messages: Any, none: Callable[[int], Known]) -> Known | None:
    """Return what is known of each channel; None if nothing is."""
    if not len(messages):
        return None
    known = none(len(messages[0].values) // 8)
    fields = COLUMNS[type(known)]
    # A later version may write other names; an earlier one may have left a column out.
    for each in messages:
        if each.name in fields:
            known = known._replace(**{each.name: _column(each, getattr(known, each.name))})
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


def _model_of(message: wire.Model) -> Model:
    parts.check_version(message.header.version)
    return forms.MODEL.read(message)


MODEL = replace(forms.MODEL, read=_model_of)


def _kind(name: str) -> By:
    for kind in KINDS:
        if name == kind:
            return kind
    raise PeerError(f"expected one of {', '.join(KINDS)}, got {name[:80]!r}")


def _by_kind(part: Part[T]) -> Part[dict[By, T]]:
    """Return how what is known of each statistic is a repeated field."""

    def made(value: Mapping[By, T]) -> list[Any]:
        known = [(kind, part.made(each)) for kind, each in value.items()]
        for kind, each in known:
            each.of = kind
        return [each for _, each in known]

    return Part(made, lambda sent: {_kind(each.of): part.read(each) for each in sent})


_VALUES = _by_kind(
    Part(
        lambda value: pb.Hours.Value(value=min(value, WORST)),
        lambda sent: real("a limit", sent.value),
    )
)

_WINDOWS: Part[Any] = _by_kind(
    Part(
        lambda both: pb.Hours.Windows(before=packed(both[0]), filling=packed(both[1])),
        lambda sent: (unpacked(sent.before, FINE), unpacked(sent.filling, FINE)),
    )
)

_BLOCKS = form(
    pb.Hours,
    KeptBlocks,
    windows=_WINDOWS,
    blocks=PLAIN.at("hours"),
    spared=_VALUES,
    watched_s=finite("watched_s"),
    allowed=finite("allowed"),
    block_s=scores.BLOCK_S,
    before=scores.MAXIMA.maybe,
)


def _highest(value: HighestSoFar) -> list[pb.DetectorState.Highest]:
    return [
        pb.DetectorState.Highest(
            of=kind,
            value=min(value.values.get(kind, 0.0), WORST),
            rows=rows,
            mean=min(value.means.get(kind, 0.0), WORST),
        )
        for kind, rows in value.rows.items()
    ]


def _highest_of(messages: Any) -> HighestSoFar:
    return HighestSoFar(
        {_kind(each.of): number("rows", each.rows) for each in messages},
        {_kind(each.of): within("a score", each.value) for each in messages},
        {_kind(each.of): within("a score", each.mean) for each in messages},
    )


_DETECTOR = form(
    pb.DetectorState,
    DetectorState,
    alarms=several(alarms.ALARM, "alarms", 1 + REMEMBERED),
    held_s=finite("held_s"),
    frozen=_VALUES,
    blame=floats("blame"),
    excused=several(PLAIN),
    raised=PLAIN,
    confirmed=PLAIN,
    hours=_BLOCKS,
    highest=Part(_highest, _highest_of),
)

_LEVEL = form(pb.NewLevel, NewLevel, mean=OWN_MEAN, half=OWN_MEAN.maybe, calm_s=finite("calm_s"))


def _of_channels(none: Callable[[int], Known]) -> Part[Any]:
    """Return how what is known of each channel is a repeated field."""
    return Part(
        lambda value: () if value is None else _columns(value), lambda sent: _columns_of(sent, none)
    )


def _monitor(**fields: Any) -> MonitorState:
    state = MonitorState(**fields)
    own, held, reference = state.own, state.held, state.reference
    if reference is None and held is not None:
        raise PeerError("expected a model beside the mean of the open alarm, got none")
    other = reference is not None and reference.fingerprint != state.fingerprint
    if other or (reference is not None and reference.summary is None):
        raise PeerError("expected a model of the same schema that has learnt something")
    if own is not None and held is not None and _shape(own) != _shape(held):
        raise PeerError(f"means of one node: got {_shape(own)} and {_shape(held)}", kind="shape")
    return state


def _shape(mean: OwnMean) -> tuple[int, int]:
    return len(mean.rows), 0 if mean.features is None else len(mean.features)


def _triangle() -> Part[Any]:
    """Return how a symmetric matrix is the bytes of its upper triangle."""

    def made(value: Any) -> bytes:
        return bytes(_FLOATS.made(value[np.triu_indices(len(value))]))

    def read(sent: bytes) -> Any:
        numbers = _FLOATS.read(sent)
        dim = round((2 * len(numbers) + 0.25) ** 0.5 - 0.5)
        if dim * (dim + 1) // 2 != len(numbers) or not 0 < dim <= WIDEST:
            raise PeerError(f"{len(numbers)} numbers are no scatter's triangle", kind="shape")
        sums = np.zeros((dim, dim))
        sums[np.triu_indices(dim)] = numbers
        if (np.diag(sums) < 0).any():
            raise PeerError("a scatter must not be negative", kind="range")
        return sums + np.triu(sums, 1).T

    return Part(made, read)


def _scatter(sums: Any, weight: float, evidence: Any) -> OwnScatter:
    if len(evidence) != len(KAPPAS):
        evidence = np.zeros(len(KAPPAS))  # another version has others: it begins again
    return OwnScatter(sums, weight, np.zeros_like(sums), evidence=tuple(evidence.tolist()))


SCATTER = form(
    pb.OwnScatter,
    _scatter,
    sums=_triangle(),
    weight=finite("weight"),
    evidence=Part(lambda value: _FLOATS.made(np.array(value)), _FLOATS.read),
)

MONITOR = form(
    pb.NodeMonitor,
    _monitor,
    fingerprint=parts.FINGERPRINT,
    own=OWN_MEAN.maybe,
    detector=_DETECTOR,
    desired=alarms.DESIRED_STATE,
    reference=MODEL.maybe,
    held=OWN_MEAN.maybe,
    run_lengths=_of_channels(RunLengths.none),
    habits=_of_channels(Habits.none),
    residual_scale=RESIDUAL_SCALE.maybe,
    level=_LEVEL.maybe,
    offset=or_empty(floats("an offset")),
    resolution=_of_channels(Resolution.none),
    scatter=SCATTER.maybe,
    silences=_of_channels(SilentChannels.none),
    unsure=or_empty(floats("a noise")),
    duty=_of_channels(DutyCycles.none),
    departures=_of_channels(Departures.none),
)
