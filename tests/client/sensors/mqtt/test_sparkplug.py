"""Sparkplug B: payloads that a real protobuf library writes by the specification's table."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

protobuf = pytest.importorskip("google.protobuf")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

from submerge_client.sensors.mqtt import sparkplug as module  # noqa: E402
from submerge_client.sensors.mqtt.decoder import (  # noqa: E402
    Departed,
    MalformedMessage,
)
from submerge_client.sensors.mqtt.sparkplug import (  # noqa: E402
    SparkplugDecoder,
    Unborn,
    rebirth_request,
)

INT8, INT32, INT64, UINT32, FLOAT, DOUBLE, BOOLEAN, STRING, DATE_TIME = (
    1,
    3,
    4,
    7,
    9,
    10,
    11,
    12,
    13,
)

# The Sparkplug 3.0 specification, chapter "Payloads", its Google Protocol Buffer schema: names,
# numbers and types of the fields.
TABLE = {
    "PropertyValue": [
        *[("type", 1, "UINT32"), ("int_value", 3, "UINT32"), ("string_value", 8, "STRING")]
    ],
    "PropertySet": [("keys", 1, "*STRING"), ("values", 2, "*PropertyValue")],
    "Metric": [
        *[("name", 1, "STRING"), ("alias", 2, "UINT64"), ("timestamp", 3, "UINT64")],
        *[("datatype", 4, "UINT32"), ("is_historical", 5, "BOOL"), ("is_null", 7, "BOOL")],
        *[("properties", 9, "PropertySet"), ("int_value", 10, "UINT32")],
        *[("long_value", 11, "UINT64"), ("float_value", 12, "FLOAT")],
        *[("double_value", 13, "DOUBLE"), ("boolean_value", 14, "BOOL")],
        *[("string_value", 15, "STRING"), ("bytes_value", 16, "BYTES")],
    ],
    "Payload": [
        *[("timestamp", 1, "UINT64"), ("metrics", 2, "*Metric"), ("seq", 3, "UINT64")],
        *[("uuid", 4, "STRING"), ("body", 5, "BYTES")],
    ],
}


def _payload_class():
    file = descriptor_pb2.FileDescriptorProto(name="sparkplug_twin.proto", package="twin")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in TABLE.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind[0] == "*" else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            added = message.field.add(name=field, number=number, label=label)
            if kind in TABLE:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".twin.{kind}"
            else:
                added.type = getattr(kinds, f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("twin.Payload"))


PAYLOAD = _payload_class()


def payload(*metrics: dict, **more) -> bytes:
    """A payload as the library writes it."""
    return PAYLOAD(metrics=list(metrics), **more).SerializeToString()


def topic(kind: str, device: str = "") -> str:
    return f"spBv1.0/plant/{kind}/line1" + (f"/{device}" if device else "")


def values(
    decoder: SparkplugDecoder, kind: str, *metrics: dict, device: str = ""
) -> dict | Unborn | Departed:
    found = decoder.read(topic(kind, device), payload(*metrics))
    if isinstance(found, Unborn | Departed):
        return found
    return {f"{m.device}/{m.field}": m.value for m in found}


def test_a_birth_names_what_data_have_an_alias_for() -> None:
    """The specification's way: NBIRTH, DBIRTH, then DDATA with aliases and without types."""
    decoder = SparkplugDecoder({})
    session = values(decoder, "NBIRTH", {"name": "bdSeq", "datatype": INT64, "long_value": 3})
    born = values(
        decoder,
        "DBIRTH",
        {"name": "Outlet/Temp", "alias": 7, "datatype": FLOAT, "float_value": 21.5},
        {"name": "Level", "alias": 8, "datatype": INT32, "int_value": 2**32 - 5},
        device="pump",
    )
    later = values(decoder, "DDATA", {"alias": 8, "int_value": 2**32 - 6}, device="pump")

    assert {} == session
    assert {"plant.line1.pump/Outlet/Temp": 21.5, "plant.line1.pump/Level": -5} == born
    assert {"plant.line1.pump/Level": -6} == later


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ({"datatype": INT8, "int_value": 255}, -1),
        ({"datatype": INT8, "int_value": 2**32 - 1}, -1),
        ({"datatype": INT64, "long_value": 2**64 - 3}, -3),
        ({"datatype": UINT32, "int_value": 2**32 - 1}, 2**32 - 1),
        ({"datatype": DOUBLE, "double_value": 0.1}, 0.1),
        ({"datatype": BOOLEAN, "boolean_value": True}, 1),
        ({"datatype": STRING, "string_value": "RUN"}, 2),
        ({"datatype": STRING, "string_value": "other"}, None),
        ({"datatype": DATE_TIME, "long_value": 5}, None),
        ({"datatype": INT32, "int_value": 1, "is_historical": True}, None),
        ({"datatype": 17, "bytes_value": b"1"}, None),
    ],
)
def test_types_are_read_as_the_specification_writes_them(metric, expected) -> None:
    """Signed numbers as two's complement; words by `states`; the rest is no reading."""
    decoder = SparkplugDecoder({"true": 1.0, "RUN": 2.0})
    found = values(decoder, "NBIRTH", {"name": "x", **metric})

    assert ({} if expected is None else {"plant.line1/x": expected}) == found


def test_data_without_a_birth_have_no_names() -> None:
    """Nor after the edge node has died, or was born with other aliases."""
    decoder = SparkplugDecoder({})
    metric = {"name": "x", "alias": 1, "datatype": UINT32, "int_value": 4}
    unborn = Unborn("plant", "line1")
    before = values(decoder, "NDATA", {"alias": 1, "int_value": 4})
    values(decoder, "NBIRTH", metric)
    known = values(decoder, "NDATA", {"alias": 1, "int_value": 5})
    values(decoder, "NDEATH")
    dead = values(decoder, "NDATA", {"alias": 1, "int_value": 6})
    values(decoder, "NBIRTH", {**metric, "alias": 2})
    other = values(decoder, "NDATA", {"alias": 1, "int_value": 7})
    values(decoder, "NBIRTH", {**metric, "alias": 3})
    former = values(decoder, "NDATA", {"alias": 2, "int_value": 7})

    assert (unborn, {"plant.line1/x": 5.0}, unborn, unborn) == (before, known, dead, other)
    assert unborn == former


@pytest.mark.parametrize("kind", ["NCMD", "DCMD"])
def test_only_births_and_data_have_readings(kind) -> None:
    """Whatever is in the others."""
    assert {} == values(SparkplugDecoder({}), kind, {"name": "x", "int_value": 4})


def quality(code: int) -> dict:
    return {"keys": ["Quality"], "values": [{"type": INT32, "int_value": code}]}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ({"is_null": True}, None),
        ({"int_value": 4, "properties": quality(0)}, None),
        ({"int_value": 4, "properties": quality(500)}, None),
        ({"int_value": 4, "properties": quality(192)}, 4.0),
    ],
)
def test_a_metric_that_is_null_or_not_good_has_no_value(metric, expected) -> None:
    """The codes are those of the specification: 0 is bad, 500 stale, 192 good."""
    found = values(SparkplugDecoder({}), "NDATA", {"name": "x", "datatype": INT32, **metric})

    assert {"plant.line1/x": expected} == found


def test_a_death_ends_a_device_or_an_edge_node_with_its_devices() -> None:
    """And nothing of another whose name only begins alike."""
    node = values(SparkplugDecoder({}), "NDEATH")
    device = values(SparkplugDecoder({}), "DDEATH", device="pump")
    names = ["plant.line1/x", "plant.line1.pump/x", "plant.line12/x", "plant.line1.pump2/x"]

    assert [True, True, False, True] == [node.covers(name) for name in names]
    assert [False, True, False, False] == [device.covers(name) for name in names]


@pytest.mark.parametrize(("dies", "expected"), [(7, True), (6, False)])
def test_the_death_of_an_earlier_session_says_nothing(dies, expected) -> None:
    """A broker may publish an old will after the edge node has been born again."""
    decoder = SparkplugDecoder({})
    session = {"name": "bdSeq", "datatype": INT64}
    metric = {"name": "x", "alias": 1, "datatype": UINT32, "int_value": 4}
    values(decoder, "NBIRTH", {**session, "long_value": 7}, metric)
    death = values(decoder, "NDEATH", {**session, "long_value": dies})
    data = values(decoder, "NDATA", {"alias": 1, "int_value": 5})

    assert expected == death.covers("plant.line1/x") == isinstance(data, Unborn)


def test_a_metric_has_the_unit_of_its_birth_and_the_time_of_its_data() -> None:
    """In seconds; without one of its own, the message's."""
    decoder = SparkplugDecoder({})
    unit = {"keys": ["Quality", "engUnit"], "values": [{"type": 3}, {"string_value": "bar"}]}
    decoder.read(topic("NBIRTH"), payload({"name": "p", "alias": 1, "properties": unit}))
    own, sent = (
        decoder.read(topic("NDATA"), data)[0]
        for data in (
            payload({"alias": 1, "int_value": 1, "timestamp": 1_486_144_502_122}),
            payload({"alias": 1, "int_value": 1}, timestamp=1_486_144_502_999),
        )
    )

    assert ("bar", 1_486_144_502.122) == (own.unit, own.time)
    assert 1_486_144_502.999 == sent.time


def test_a_rebirth_request_is_one_that_the_library_reads() -> None:
    """Node Control/Rebirth is true, to the node's commands."""
    request = rebirth_request(Unborn("plant", "line1"), 1_486_144_502_122)
    read = PAYLOAD.FromString(request.payload)

    assert "spBv1.0/plant/NCMD/line1" == request.topic
    assert ["Node Control/Rebirth"] == [metric.name for metric in read.metrics]
    assert (BOOLEAN, True) == (read.metrics[0].datatype, read.metrics[0].boolean_value)
    assert not read.HasField("seq")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x08", "expected a payload of Sparkplug B, got none"),
        (b"\x08" + b"\xff" * 11, "expected a payload of Sparkplug B, got none"),
        (b"\x00\x00", "expected a payload of Sparkplug B, got none"),
        (b"\x0b", "expected a payload of Sparkplug B, got none"),
        (b"\x12\x05ab", "expected a payload of Sparkplug B, got none"),
        (b"\x12\x02\x0a\x00" * 2049, "expected 2048 metrics at most"),
        (b"\x12\x04\x0a\x02\xff\xff", "expected a payload of Sparkplug B, got none"),
        (b"\x9b\x06" * 200 + b"\x9c\x06" * 200, "expected a payload of Sparkplug B, got none"),
        (bytes(1 << 17), "expected"),
    ],
)
def test_bytes_that_are_no_payload_are_refused(data, error) -> None:
    """With what was expected; what was known of births stays."""
    decoder = SparkplugDecoder({})
    values(decoder, "NBIRTH", {"name": "x", "alias": 1, "int_value": 4})
    with pytest.raises(MalformedMessage, match=error) as refused:
        decoder.read(topic("NBIRTH"), data)
    assert "\n" not in str(refused.value)

    assert {"plant.line1/x": 5.0} == values(decoder, "NDATA", {"alias": 1, "int_value": 5})


def test_births_are_forgotten_before_they_fill_the_memory(monkeypatch) -> None:
    """Those of the edge node that was born first."""
    monkeypatch.setattr(module, "MOST_KNOWN", 4)
    decoder = SparkplugDecoder({})
    metric = {"name": "x", "alias": 1, "int_value": 4}
    for node in "abc":
        decoder.read(f"spBv1.0/g/NBIRTH/{node}", payload(metric))
    data = payload({"alias": 1, "int_value": 5})
    known = [isinstance(decoder.read(f"spBv1.0/g/NDATA/{node}", data), list) for node in "abc"]

    assert [False, True, True] == known


kinds = st.sampled_from(["NBIRTH", "DBIRTH", "NDATA", "DDATA", "NDEATH", "NCMD", "STATE"])


@given(kinds, st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(kind, data) -> None:
    """Nothing else is raised."""
    with suppress(MalformedMessage):
        SparkplugDecoder({}).read(topic(kind), data)


metrics = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=5),
        "alias": st.integers(0, 3),
        "timestamp": st.integers(0, 2**64 - 1),
        "datatype": st.integers(0, 34),
        "is_null": st.booleans(),
        "double_value": st.floats(),
    },
)


@given(st.lists(st.tuples(kinds, st.lists(metrics, max_size=3)), max_size=4))
def test_any_messages_are_read_or_refused(messages) -> None:
    """Whatever births and data come, in whatever order."""
    decoder = SparkplugDecoder({})
    for kind, each in messages:
        with suppress(MalformedMessage):
            decoder.read(topic(kind), payload(*each))


@given(st.floats(width=32, allow_nan=False))
def test_floats_keep_their_bits(value) -> None:
    """As the library wrote them."""
    found = values(SparkplugDecoder({}), "NBIRTH", {"name": "x", "float_value": value})

    assert struct.pack("<d", value) == struct.pack("<d", found["plant.line1/x"])


def test_a_name_that_cannot_be_used_hides_no_other_metric() -> None:
    """Nor do data that come under its alias ask for another birth."""
    decoder, unusable = SparkplugDecoder({}), list[str]()
    bad = {"name": "a\x1b" * 9, "alias": 1, "int_value": 1}
    birth = payload(bad, {"name": "flow", "alias": 2, "int_value": 2})
    found = decoder.read(topic("NBIRTH"), birth, unusable)

    assert ["flow"] == [metric.field for metric in found]
    assert ["expected names of 128"] == [each[:21] for each in unusable]
    assert {"plant.line1/flow": 3} == values(
        decoder, "NDATA", {"alias": 1, "int_value": 7}, {"alias": 2, "int_value": 3}
    )
