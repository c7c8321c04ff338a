"""How the channels of machines behave, as protobuf and back: a client's record, without alarms.

An alarm belongs to a running node. So neither alarms nor what holds an open one go into a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

from submerge import PeerError, Schema
from submerge.client.detector import DetectorState
from submerge.client.monitor_state import MonitorState
from submerge.protocol.desired_state import DesiredState
from submerge_proto.files.chunks import MOST_MACHINES, ascending
from submerge_proto.kept import monitor as kept_monitor
from submerge_proto.v1 import kept_pb2
from submerge_proto.v1 import learnt_pb2 as pb
from submerge_proto.wire import alarms, bounds

NO_ORDERS = DesiredState("machine", 0)
"""In place of what an operator wants of a node: a file holds no orders. A machine may have a name
that no node can have."""

OF_CHANNELS = ("own", "level", "run_lengths", "habits", "residual_scale", "offset")
"""What must have the width of the schema."""


def monitors(value: Iterable[tuple[str, MonitorState]]) -> list[pb.MachineMonitor]:
    """Return the monitors of machines as messages, by machine."""
    ordered = sorted(value, key=lambda each: each[0])
    return [pb.MachineMonitor(machine=name, state=_state(state)) for name, state in ordered]


def monitors_of(
    messages: Sequence[pb.MachineMonitor], schema: Schema
) -> tuple[tuple[str, MonitorState], ...]:
    """Return the monitors that messages hold.

    Raises
    ------
    PeerError
        If they are not of the schema, or hold an alarm.
    """
    names = ascending("machines", [each.machine for each in messages], MOST_MACHINES)
    return tuple(
        (name, _state_of(each.state, name, schema))
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
    message = kept_monitor.monitor(without_alarms(state))
    # The order of the kinds says nothing: the same state is the same bytes.
    hours = message.detector.hours
    for several in (hours.windows, hours.spared, message.detector.highest):
        several.sort(key=attrgetter("of"))
    return bytes(message.SerializeToString(deterministic=True))


def _state_of(data: bytes, machine: str, schema: Schema) -> MonitorState:
    bounds.check(kept_pb2.NodeMonitor, data)
    message = kept_pb2.NodeMonitor.FromString(data)
    if message.detector.alarms or message.HasField("reference") or message.HasField("level"):
        raise PeerError(f"the monitor of {machine}: expected no alarm in a file, got one")
    message.desired.CopyFrom(alarms.desired(NO_ORDERS))
    state = kept_monitor.monitor_of(message)
    if state.fingerprint != schema.fingerprint:
        raise PeerError(f"the monitor of {machine} is of another schema", kind="schema")
    fitting = state.of_schema(schema, schema.width)
    for part in OF_CHANNELS:
        held = getattr(state, part)
        if held is not None and held is not getattr(fitting, part):
            raise PeerError(
                f"the monitor of {machine}: expected {schema.width} channels in its"
                f" {part.replace('_', ' ')}, and all three of run lengths, habits and residual"
                " scale",
                kind="shape",
            )
    return replace(state, desired=DesiredState(machine, 0))
