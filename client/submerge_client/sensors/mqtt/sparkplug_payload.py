"""metrics_in(): the payload of a Sparkplug B message, field by field.

The numbers are those of the Sparkplug 3.0 specification's protobuf schema, `sparkplug_b.proto`:
messages Payload, Metric, PropertySet and PropertyValue. Other fields are skipped.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from submerge_client.sensors.mqtt.decoder import MalformedMessage, check_size, seconds_of
from submerge_client.sensors.mqtt.fields import LONGEST_NAME
from submerge_client.sensors.mqtt.protobuf import (
    message_in,
    read_fields,
    real_in,
    text_in,
    whole_in,
    write_field,
)


class PayloadField(IntEnum):
    """Numbers of the fields of Payload."""

    TIMESTAMP = 1
    METRICS = 2


class MetricField(IntEnum):
    """Numbers of the fields of Metric; from `INT` on, its value."""

    NAME = 1
    ALIAS = 2
    TIMESTAMP = 3
    DATATYPE = 4
    IS_HISTORICAL = 5
    IS_NULL = 7
    PROPERTIES = 9
    INT = 10
    LONG = 11
    FLOAT = 12
    DOUBLE = 13
    BOOLEAN = 14
    STRING = 15


KEYS, VALUES, PROPERTY_INT, PROPERTY_STRING = 1, 2, 3, 8
"""Fields of PropertySet, and the whole number and the text of a PropertyValue."""

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
    """A metric, as it was sent.

    device : the name of the device that sent it
    name, alias : either may be None
    value : None for a type that is no number, boolean or text
    datatype : 0 without one
    time : seconds since 1970, or None
    unit : or ""
    is_historical : whether it is of an earlier time
    is_gone : whether it says that it has no value: it is null, or not good
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
    """Return the metrics in a payload.

    Raises
    ------
    MalformedMessage
        If it is not a payload of Sparkplug B, or too large.
    """
    check_size(payload)
    sent: float | None = None
    raw = list[memoryview]()
    for number, _, value in read_fields(memoryview(bytes(payload))):
        if number == PayloadField.TIMESTAMP:
            sent = seconds_of(whole_in(value))
        elif number == PayloadField.METRICS:
            raw.append(message_in(value))
    if len(raw) > MOST_METRICS:
        raise MalformedMessage(f"expected {MOST_METRICS} metrics at most, got {len(raw)}")
    return [_metric(data, device, sent) for data in raw]


def as_payload(name: str, *, datatype: int, milliseconds: int) -> bytes:
    """Return a payload with one metric that is true."""
    metric = (
        write_field(MetricField.NAME, name.encode())
        + write_field(MetricField.TIMESTAMP, milliseconds)
        + write_field(MetricField.DATATYPE, datatype)
        + write_field(MetricField.BOOLEAN, 1)
    )
    header = write_field(PayloadField.TIMESTAMP, milliseconds)
    return header + write_field(PayloadField.METRICS, metric)


def _metric(data: memoryview, device: str, sent: float | None) -> Metric:
    name, alias, datatype, time = None, None, 0, sent
    value: Value = None
    unit, is_historical, is_gone = "", False, False
    for number, _, content in read_fields(data):
        match number:
            case MetricField.NAME:
                name = _name(content)
            case MetricField.ALIAS:
                alias = whole_in(content)
            case MetricField.TIMESTAMP:
                time = seconds_of(whole_in(content))
            case MetricField.DATATYPE:
                datatype = whole_in(content)
            case MetricField.IS_HISTORICAL:
                is_historical = whole_in(content) != 0
            case MetricField.IS_NULL:
                is_gone |= whole_in(content) != 0
            case MetricField.PROPERTIES:
                unit, is_good = _properties(message_in(content))
                is_gone |= not is_good
            case MetricField.STRING:
                value = text_in(content)
            case MetricField.FLOAT | MetricField.DOUBLE:
                value = real_in(content)
            case MetricField.BOOLEAN:
                value = whole_in(content) != 0
            case MetricField.INT | MetricField.LONG:
                value = whole_in(content)
    return Metric(device, name, alias, value, datatype, time, unit, is_historical, is_gone)


def _name(content: int | memoryview) -> str | None:
    name = text_in(content)
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise MalformedMessage(
            f"expected a name of {LONGEST_NAME} printable characters, got {name[:40]!r}"
        )
    return name or None


def _properties(properties: memoryview) -> tuple[str, bool]:
    """Return the unit among a metric's properties, or "", and whether its value is good."""
    keys, values = list[str](), list[memoryview]()
    for number, _, content in read_fields(properties):
        if number == KEYS:
            keys.append(text_in(content))
        elif number == VALUES:
            values.append(message_in(content))
        if max(len(keys), len(values)) > MOST_METRICS:
            raise MalformedMessage(f"expected {MOST_METRICS} properties at most, got more")
    unit, is_good = "", True
    for key, value in zip(keys, values, strict=False):
        for number, _, content in read_fields(value):
            if key == UNIT and number == PROPERTY_STRING:
                unit = text_in(content)[:32]
            elif key == QUALITY and number == PROPERTY_INT:
                is_good = whole_in(content) == GOOD
    return unit if unit.isprintable() else "", is_good
