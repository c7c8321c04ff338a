"""How the channels of machines behave, as protobuf and back: a client's record, without alarms.

An alarm belongs to a running node. So neither alarms nor what holds an open one go into a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

import numpy as np

from submerge import PeerError, Schema
from submerge.client.alarms.detector import DetectorState
from submerge.client.monitor_state import MonitorState
from submerge.protocol.desired_state import DesiredState
from submerge.stats.stuck import Habits, RunLengths
from submerge_proto.files.chunks import MOST_MACHINES, ascending
from submerge_proto.kept import monitor as kept_monitor
from submerge_proto.v1 import kept_pb2
from submerge_proto.v1 import learnt_pb2 as pb
from submerge_proto.wire import alarms, bounds, parts, sizes
from submerge_proto.wire.fields import number, within

NO_ORDERS = DesiredState("machine", 0)
"""In place of what an operator wants of a node: a file holds no orders. A machine may have a name
that no node can have."""

OF_CHANNELS = ("own", "run_lengths", "habits", "residual_scale", "offset")
"""What must have the width of the schema, or of its channels."""

NOT_NEGATIVE = frozenset(
    (
        *("weight", "scatter", "error", "learnt", "squares", "count", "span_s"),
        *("run", "longest", "at_lowest", "at_highest"),
    )
)
"""Numbers of channels that are counts, times or sums of squares."""


def monitors(value: Iterable[tuple[str, MonitorState]]) -> list[pb.MachineMonitor]:
    """Return the monitors of machines as messages, by machine."""
    ordered = sorted(value, key=lambda each: each[0])
    return [pb.MachineMonitor(machine=name, state=_state(state)) for name, state in ordered]


def monitors_of(
    messages: Sequence[pb.MachineMonitor], schema: Schema, lags: int
) -> tuple[tuple[str, MonitorState], ...]:
    """Return the monitors that messages hold."""
    names = ascending("machines", [each.machine for each in messages], MOST_MACHINES)
    return tuple(
        (name, _state_of(each.state, name, schema, lags))
        for name, each in zip(names, messages, strict=True)
    )


def without_alarms(state: MonitorState) -> MonitorState:
    """Return what a file holds of a monitor."""
    seen = state.detector
    detector = DetectorState(excused=seen.excused, hours=seen.hours, highest=seen.highest)
    return replace(
        state, detector=detector, desired=NO_ORDERS, reference=None, held=None, level=None
    )


def _state(state: MonitorState) -> bytes:
    message = kept_monitor.MONITOR.made(without_alarms(state))
    message.ClearField("desired")
    # The order of the kinds says nothing: the same state is the same bytes.
    hours = message.detector.hours
    for several in (hours.windows, hours.spared, message.detector.highest):
        several.sort(key=attrgetter("of"))
    return bytes(message.SerializeToString(deterministic=True))


def _state_of(data: bytes, machine: str, schema: Schema, lags: int) -> MonitorState:
    bounds.check(kept_pb2.NodeMonitor, data)
    message = kept_pb2.NodeMonitor.FromString(data)
    if message.detector.alarms or any(
        map(message.HasField, ("reference", "held", "level", "desired"))
    ):
        raise PeerError(f"the monitor of {machine}: expected no alarm and no order, got one")
    message.desired.CopyFrom(alarms.DESIRED_STATE.made(NO_ORDERS))
    with np.errstate(invalid="ignore"):  # a number that is too large for a count: refused below
        state = kept_monitor.MONITOR.read(message)
    if state.fingerprint != schema.fingerprint:
        raise PeerError(f"the monitor of {machine} is of another schema", kind="schema")
    _check_widths(state, machine, schema, lags)
    _check_numbers(state, machine, schema)
    return replace(state, desired=DesiredState(machine, 0))


def _check_widths(state: MonitorState, machine: str, schema: Schema, lags: int) -> None:
    channels, rest = divmod(schema.width, lags)
    fitting = state.of_schema(schema, channels)
    for part in OF_CHANNELS:
        held = getattr(state, part)
        if rest or (held is not None and held is not getattr(fitting, part)):
            raise PeerError(
                f"the monitor of {machine}: expected {channels} channels in each part, and all or"
                f" none of run lengths, habits and residual scale: {part.replace('_', ' ')} does"
                " not fit",
                kind="shape",
            )


def _check_numbers(state: MonitorState, machine: str, schema: Schema) -> None:
    """Refuse numbers that no rows give, or that overflow in sums."""
    for part in OF_CHANNELS:
        held = getattr(state, part)
        for name in _fields(held):
            least = 0.0 if name in NOT_NEGATIVE else -sizes.LARGEST
            numbers = np.asarray(getattr(held, name) if name else held, dtype=np.float64)
            # NaN stands for a channel that was never heard, where it passed the record's own check.
            if ((numbers < least) | (numbers > sizes.LARGEST)).any():
                raise PeerError(
                    f"the monitor of {machine}: {name or part} must be {least:g} to"
                    f" {sizes.LARGEST:g}",
                    kind="range",
                )
    hours, excused = state.detector.hours, state.detector.excused
    for sketch in (each for both in hours.windows.values() for each in both):
        number("scores", sketch.n, parts.MOST_READINGS)
    for size in (hours.watched_s, hours.allowed, *hours.spared.values()):
        within("a monitored time, or a limit", size)
    if any(channel >= schema.width for channel in excused) or len(excused) > schema.width:
        raise PeerError(f"the monitor of {machine}: expected channels of its schema", kind="range")


def _fields(held: Any) -> Sequence[str]:
    """Return the names of the numbers in a part; "" where it is one array."""
    if held is None:
        return ()
    if isinstance(held, Habits | RunLengths):
        return held._fields
    if isinstance(held, np.ndarray):
        return ("",)
    names = [each.name for each in fields(held)]
    return [name for name in names if getattr(held, name) is not None]
