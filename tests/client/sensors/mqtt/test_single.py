"""What MQTT messages mean, without a broker."""

from __future__ import annotations

import re

import pytest

from submerge import UsageError
from submerge_client.sensors.mqtt.messages import SingleDecoder
from submerge_client.sensors.tally import ProblemTally, no_log

CHANNELS = ("temp", "hum.2")


def published(topic: str = "a/{channel}/b", value: str = "value", time: str = "") -> SingleDecoder:
    return SingleDecoder(CHANNELS, ProblemTally(no_log), topic=topic, value=value, time=time)


@pytest.mark.parametrize(
    ("template", "subscription", "heard"),
    [
        (
            "a/{channel}/b",
            "a/+/b",
            {"a/temp/b": 0, "a/hum.2/b": 1, "a/dew/b": None, "a/temp/c": None, "a/b": None},
        ),
        ("{channel}", "+", {"temp": 0, "": None, "hum.2": 1}),
        ("a/s-{channel}-x", "a/+", {"a/s-temp-x": 0, "a/s-x": None, "a/temp": None}),
        ("a{channel}a", "+", {"atempa": 0, "a": None}),
    ],
)
def test_a_topic_names_its_channel(template, subscription, heard) -> None:
    """Its place in the schema, or None; the filter covers all channels."""
    reader = published(template)

    assert (subscription,) == reader.subscriptions
    assert heard == {topic: reader.channel(topic) for topic in heard}


@pytest.mark.parametrize(
    ("value", "time", "payload", "said"),
    [
        ("", "", "21.5", (21.5, None)),
        ("", "", " -3e2\n", (-300, None)),
        ("", "", "null", (None, None)),
        ("", "", "", (None, None)),
        ("value", "", '{"value": 21}', (21, None)),
        ("value", "", '{"value": "21.5", "unit": "C"}', (21.5, None)),
        ("value", "", '{"value": null}', (None, None)),
        ("value", "", " ", (None, None)),
        ("reading.celsius", "", '{"reading": {"celsius": 1}}', (1, None)),
        ("v", "t", '{"v": 1, "t": 1751.25}', (1, 1751.25)),
        ("v", "t", '{"v": 1, "t": "1970-01-01T01:00:00Z"}', (1, 3600)),
        ("v", "t", '{"v": 1, "t": "1970-01-01T01:00:00+01:00"}', (1, 0)),
        ("v", "t", '{"v": 1, "t": "1970-01-01T01:00:00"}', (1, 3600)),
        ("v", "t", '{"v": 1, "t": 1751000000000}', (1, 1751000000)),
        ("v", "a.t", '{"v": 1, "a": {"t": "60"}}', (1, 60)),
    ],
)
def test_what_a_message_says(value, time, payload, said) -> None:
    """A bare number or one in JSON, with or without a time; null is no reading."""
    assert said == published(value=value, time=time).read(payload.encode())


@pytest.mark.parametrize(
    ("value", "time", "payload", "error"),
    [
        ("", "", b"on", "could not convert string to float"),
        ("", "", b"1_0", "expected a number, got '1_0'"),
        ("", "", b"\xff", "can't decode byte 0xff"),
        ("value", "", b"21.5", "expected something at 'value', got nothing"),
        ("value", "", b"{}", "expected something at 'value', got nothing"),
        ("a.b", "", b'{"a": 5}', "expected something at 'a.b', got nothing"),
        ("value", "", b'{"value": true}', "expected a number, got True"),
        ("value", "", b'{"value": {}}', "expected a number, got {}"),
        ("value", "", b'{"value": 1', "truncated"),
        ("value", "", b" " * 70_000, "expected 65536 bytes at most, got 70000"),
        ("v", "t", b'{"v": 1}', "expected something at 't', got nothing"),
        ("v", "t", b'{"v": 1, "t": null}', "expected seconds since 1970 or ISO 8601, got None"),
        ("v", "t", b'{"v": 1, "t": "noon"}', "expected seconds since 1970 or ISO 8601, got 'noon'"),
        ("v", "t", b'{"v": 1, "t": "nan"}', "expected seconds since 1970 or ISO 8601, got 'nan'"),
    ],
)
def test_a_message_that_means_nothing_says_why(value, time, payload, error) -> None:
    """It is a ValueError, which the sensor counts."""
    with pytest.raises(ValueError, match=re.escape(error)):
        published(value=value, time=time).read(payload)


def test_a_bare_number_has_no_time() -> None:
    """The settings are refused before anything is connected."""
    with pytest.raises(UsageError, match="time must be left out where a message is a bare"):
        published(value="", time="t")
