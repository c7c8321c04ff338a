"""metrics_in(): the payload of a Sparkplug B message, as `sparkplug.proto` describes it.

A payload of 64 KiB at most is read at once, and holds messages three levels deep: fields that we do
not know are skipped by protobuf, which bounds how deep they are.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from submerge_client.sensors.mqtt.decoder import (
    LONGEST_NAME,
    MalformedMessage,
    check_size,
    seconds_of,
)
from submerge_proto import sparkplug_pb2 as pb

BOOLEAN, DATE_TIME = 11, 13
"""Values of `datatype`."""

UNIT = "engUnit"
"""The property that edge nodes use for a unit, by convention."""

QUALITY, GOOD = "Quality", 192
"""The property that says whether a value is good; others are 0 (bad) and 500 (stale)."""

MOST_METRICS = 2048
"""Metrics in a message, and properties of a metric."""

Value = int | float | str | bool | None


class Metric(NamedTuple):
    """A metric as sent: name or alias, and a value, None if of no type that is read.

    `time` is seconds since 1970; it `is_gone` if it is null, or not good.
    """

    device: str
    name: str | None
    alias: int | None
    value: Value
    datatype: int
    time: float | None
    unit: str
    is_historical: bool
    is_gone: bool


def metrics_in(payload: bytes | bytearray, device: str) -> list[Metric]:
    """Return the metrics in a payload."""
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
    return [_metric(each, device, _time(message)) for each in message.metrics]


def as_payload(name: str, *, datatype: int, milliseconds: int) -> bytes:
    """Return a payload with one metric that is true."""
    metric = pb.Metric(name=name, timestamp=milliseconds, datatype=datatype, boolean_value=True)
    return bytes(pb.Payload(timestamp=milliseconds, metrics=[metric]).SerializeToString())


def _time(message: pb.Payload | pb.Metric) -> float | None:
    return seconds_of(message.timestamp) if message.HasField("timestamp") else None


def _metric(message: pb.Metric, device: str, sent: float | None) -> Metric:
    name = message.name
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise MalformedMessage(
            f"expected a name of {LONGEST_NAME} printable characters, got {name[:40]!r}"
        )
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
