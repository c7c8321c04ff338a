"""Sparkplug B: metrics of edge nodes and devices, by the Sparkplug 3.0 specification.

1. The device of a metric is `group.node` or `group.node.device`, its field is the metric's name.
2. A birth (NBIRTH, DBIRTH) gives each metric a name, a type, and an alias. Data (NDATA, DDATA) may
   have the alias alone. An edge node's birth and its death end all aliases from before.
3. Data with an alias whose birth was not heard have no names: they are `Unborn`. Births are not
   retained, so it takes a new one; `rebirth_request` is the message that asks for it.
4. Historical metrics, null, times, `bdSeq` (the number of a session) and other types are no
   readings. A metric that is null, or whose property `Quality` is not 192 (good), has no value.
5. The death of an earlier session, by its `bdSeq`, says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError

from submerge_client.sensors.mqtt.decoder import (
    LONGEST_NAME,
    Departed,
    MalformedMessage,
    RebirthRequest,
    as_number,
    check_size,
    is_usable,
    seconds_of,
    unusable_name,
)
from submerge_proto import sparkplug_pb2 as pb

NAMESPACE = "spBv1.0"
BIRTHS, DATA, DEATHS = ("NBIRTH", "DBIRTH"), ("NDATA", "DDATA"), ("NDEATH", "DDEATH")

MOST_KNOWN = 8192  # metrics that are known of births, over all edge nodes

SIGNED_BITS = {1: 8, 2: 16, 3: 32, 4: 64}
"""Int8, Int16, Int32 and Int64, which are written as numbers without a sign."""

SESSION, REBIRTH = "bdSeq", "Node Control/Rebirth"

UNUSABLE = "\0"
"""Stands for names that cannot be used: the metrics have aliases, which data come with."""


class MetricReading(NamedTuple):
    """A number of a device, None if it has none; seconds since 1970, None without a time."""

    device: str
    field: str
    value: float | None
    time: float | None
    unit: str


class Unborn(NamedTuple):
    """Data without names, of an edge node whose birth was not heard."""

    group: str
    node: str


class SparkplugDecoder:
    def __init__(self, states: Mapping[str, float]) -> None:
        self._states = states
        # Births of each edge node: by alias, and by device and name.
        self._births: dict[tuple[str, str], dict[int | tuple[str, str], Metric]] = {}

    def read(
        self, topic: str, payload: bytes | bytearray, unusable: list[str] | None = None
    ) -> list[MetricReading] | Unborn | Departed:
        """Read a message; `unusable` gets why metrics are left out."""
        levels = topic.split("/")
        if len(levels) not in (4, 5) or levels[2] not in BIRTHS + DATA + DEATHS:
            return []  # a command, or the state of a host
        _, group, kind, node, *rest = levels
        device = ".".join((group, node, *rest))
        if not is_usable(device):
            raise MalformedMessage(f"expected a name of {LONGEST_NAME} characters, got more")
        metrics = metrics_in(payload, device, [] if unusable is None else unusable)
        if kind in DEATHS:
            return self._died((group, node), device, metrics, ends_node=kind == "NDEATH")
        if kind in BIRTHS:
            self._remember((group, node), metrics, begins=kind == "NBIRTH")
        birth = self._births.get((group, node), {})
        found = list[MetricReading]()
        for metric in metrics:
            key = metric.alias if metric.name is None else (device, metric.name)
            known = metric if key is None else birth.get(key, metric)
            if known.name is None:
                return Unborn(group, node)
            value = self._number(metric, metric.datatype or known.datatype)
            if known.name not in (SESSION, REBIRTH, UNUSABLE) and (
                value is not None or metric.is_gone
            ):
                found.append(
                    MetricReading(known.device, known.name, value, metric.time, known.unit)
                )
        return found

    def _died(
        self, node: tuple[str, str], device: str, metrics: list[Metric], *, ends_node: bool
    ) -> Departed:
        if not ends_node:
            return Departed((f"{device}/",))
        known = self._births.get(node, {}).get((device, SESSION))
        if known is not None and any(
            metric.name == SESSION and metric.value != known.value for metric in metrics
        ):
            return Departed(())
        self._births.pop(node, None)
        return Departed((f"{device}/", f"{device}."))

    def _remember(self, node: tuple[str, str], metrics: list[Metric], *, begins: bool) -> None:
        birth = {} if begins else dict(self._births.get(node, {}))
        for metric in metrics:
            if metric.name is not None:
                birth[metric.device, metric.name] = metric
                if metric.alias is not None:
                    birth[metric.alias] = metric
        if len(birth) > MOST_KNOWN:
            raise MalformedMessage(f"expected {MOST_KNOWN} metrics of an edge node, got more")
        self._births.pop(node, None)
        self._births[node] = birth
        while sum(map(len, self._births.values())) > MOST_KNOWN:
            del self._births[next(iter(self._births))]

    def _number(self, metric: Metric, datatype: int) -> float | None:
        if metric.is_historical or metric.is_gone or datatype == DATE_TIME:
            return None
        value, bits = metric.value, SIGNED_BITS.get(datatype, 0)
        if bits and type(value) is int:
            value &= (1 << bits) - 1
            value -= (value >> (bits - 1)) << bits
        return as_number(value, self._states)


def rebirth_request(unborn: Unborn, milliseconds: int) -> RebirthRequest:
    """Return the message that asks an edge node for its births."""
    metric = pb.Metric(name=REBIRTH, timestamp=milliseconds, datatype=BOOLEAN, boolean_value=True)
    payload = pb.Payload(timestamp=milliseconds, metrics=[metric]).SerializeToString()
    return RebirthRequest(f"{NAMESPACE}/{unborn.group}/NCMD/{unborn.node}", payload)


# metrics_in(): the payload of a Sparkplug B message, as `sparkplug.proto` describes it.
#
# A payload of 64 KiB at most is read at once, and holds messages three levels deep: fields that we
# do not know are skipped by protobuf, which bounds how deep they are.

BOOLEAN, DATE_TIME = 11, 13  # values of `datatype`
UNIT = "engUnit"  # the property that edge nodes use for a unit, by convention

QUALITY, GOOD = "Quality", 192
"""The property that says whether a value is good; others are 0 (bad) and 500 (stale)."""

MOST_METRICS = 2048  # metrics in a message, and properties of a metric

Value = int | float | str | bool | None


class Metric(NamedTuple):
    """A metric as sent: name or alias, and a value, None if of no type that is read."""

    device: str
    name: str | None
    alias: int | None
    value: Value
    datatype: int
    time: float | None  # seconds since 1970
    unit: str
    is_historical: bool
    is_gone: bool  # null, or not good


def metrics_in(payload: bytes | bytearray, device: str, unusable: list[str]) -> list[Metric]:
    check_size(payload)
    try:
        message = pb.Payload.FromString(bytes(payload))
    except (DecodeError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())[:80]
        raise MalformedMessage(f"expected a payload of Sparkplug B, got none: {why}") from None
    if len(message.metrics) > MOST_METRICS:
        raise MalformedMessage(
            f"expected {MOST_METRICS} metrics at most, got {len(message.metrics)}"
        )
    return [_metric(each, device, _time(message), unusable) for each in message.metrics]


def _time(message: pb.Payload | pb.Metric) -> float | None:
    return seconds_of(message.timestamp) if message.HasField("timestamp") else None


def _metric(message: pb.Metric, device: str, sent: float | None, unusable: list[str]) -> Metric:
    name = message.name
    if not is_usable(name):
        unusable.append(unusable_name(name))
        name = UNUSABLE
    alias = message.alias if message.HasField("alias") else None
    kind = message.WhichOneof("value")
    value = None if kind is None else getattr(message, kind)
    unit, is_good = _properties(message.properties)
    time, is_gone = _time(message), message.is_null or not is_good
    return Metric(
        *(device, name or None, alias, value, message.datatype),
        *(sent if time is None else time, unit, message.is_historical, is_gone),
    )


def _properties(properties: pb.PropertySet) -> tuple[str, bool]:
    """Return the unit among a metric's properties, or "", and whether its value is good."""
    unit, is_good = "", True
    if max(len(properties.keys), len(properties.values)) > MOST_METRICS:
        raise MalformedMessage(f"expected {MOST_METRICS} properties at most, got more")
    for key, value in zip(properties.keys, properties.values, strict=False):
        if key == UNIT:
            unit = value.string_value[:32]
        elif key == QUALITY and value.HasField("int_value"):
            is_good = value.int_value == GOOD
    return unit if unit.isprintable() else "", is_good
