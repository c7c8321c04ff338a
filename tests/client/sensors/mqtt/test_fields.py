"""The numbers in a payload: of JSON or a bare text, bounded."""

from __future__ import annotations

import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.mqtt.decoder import (
    MalformedMessage,
    at,
    content_of,
    fields_of,
    number_of,
    seconds_of,
    words_of,
)

STATES = {"ON": 1.0, "true": 1.0, "false": 0.0}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            '{"a": 1, "b": {"c": 2.5, "d": [3, {"e": 4}]}}',
            {"a": 1, "b.c": 2.5, "b.d.0": 3, "b.d.1.e": 4},
        ),
        ('{"a": "21.5", "b": "soon", "c": null, "d": "1_0", "e": "nan"}', {"a": 21.5}),
        ('{"a": "ON", "b": "OFF", "c": true, "d": false}', {"a": 1, "c": 1, "d": 0}),
        ("[1, 2]", {"0": 1, "1": 2}),
        ("21.5", {"": 21.5}),
        (" -3e2\n", {"": -300}),
        ("ON", {"": 1}),
        ("true", {"": 1}),
        ("online", {}),
        ('"21.5"', {"": 21.5}),
        ('"ON"', {"": 1}),
        ("", {}),
        ("null", {}),
        ("{}", {}),
    ],
)
def test_a_payload_has_numbers_each_with_its_path(payload, expected) -> None:
    """Also from text; words by `states` alone."""
    assert expected == dict(fields_of(content_of(payload.encode()), STATES))


def test_without_states_words_are_nothing() -> None:
    """true is no 1, unless it is asked for."""
    assert [("b", 2.0)] == fields_of(content_of(b'{"a": true, "b": 2, "c": "ON"}'), {})


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"\xff", "expected text"),
        (b'{"a": 1', "expected JSON"),
        (b'{"a": NaN}', "expected JSON"),
        (b" " * 70_000, "expected 65536 bytes at most, got 70000"),
        (b"[" * 60_000, "expected JSON"),
        (b"[" + b"1," * 512 + b"1]", "expected 512 fields at most"),
    ],
)
def test_a_message_beyond_the_bounds_is_refused_whole(payload, error) -> None:
    """With what was expected."""
    with pytest.raises(MalformedMessage, match=re.escape(error)):
        fields_of(content_of(payload), {})


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        ({"a" * 129: 1}, "expected names of 128 printable characters at most, got 'aaa"),
        ({"a\nb": {"c": 1}}, "expected names of 128 printable characters at most, got 'a"),
        ({"\u202e": 1}, "expected names of 128 printable characters at most, got '"),
        ({"deep": [[[[[[[[1]]]]]]]]}, "expected 8 levels of objects at most, got more at 'deep."),
    ],
    ids=["long", "control", "direction", "deep"],
)
def test_a_field_that_cannot_be_used_hides_no_other(hostile, why) -> None:
    """Neither those before it nor those behind it, at any level."""
    unusable: list[str] = []
    content = {"t": 21.5, **hostile, "inner": {**hostile, "h": 40}}

    assert [("t", 21.5), ("inner.h", 40.0)] == fields_of(content, {}, unusable)
    assert [True, True] == [each.startswith(why[:40]) for each in unusable]


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(payload) -> None:
    """Nothing else is raised."""
    with suppress(MalformedMessage):
        fields_of(content_of(payload), STATES)


json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@given(json)
def test_any_json_is_read_or_refused(content) -> None:
    """Numbers of any size among it."""
    try:
        found = fields_of(content_of(msgspec.json.encode(content)), STATES)
    except MalformedMessage:
        return
    assert all(isinstance(value, float) for _, value in found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1751.25, 1751.25),
        (1_616_000_000_123, 1_616_000_000.123),
        ("1616000000", 1_616_000_000),
        ("1970-01-01T01:00:00Z", 3600),
        ("1970-01-01T00:00:01.048559511Z", 1.048559),
        ("1970-01-01T01:00:00", 3600),
        ("noon", None),
        (True, None),
        (None, None),
        (1e300, None),
    ],
)
def test_a_time_is_in_seconds_milliseconds_or_iso_8601(value, expected) -> None:
    """Anything else is no time."""
    assert expected == seconds_of(value)


@given(st.text() | st.integers() | st.floats())
def test_no_time_raises_anything(value) -> None:
    """Not even one of the year 99999."""
    seconds_of(value)


@pytest.mark.parametrize("text", ["", "-", ".", "1_0", "0x10", "inf", "1" * 65, "\u0661"])
def test_a_text_that_is_no_decimal_number_is_none(text) -> None:
    """Python reads some of these, devices do not write them."""
    assert number_of(text) is None


def test_a_path_leads_through_objects_and_arrays() -> None:
    """To nothing where there is nothing."""
    content = {"a": [{"b": 5}]}

    assert 5 == at(["a", "0", "b"], content)
    assert (None, None, None) == tuple(
        at(path, content) for path in (["a", "1"], ["a", "x"], ["c", "b"])
    )


def test_words_are_what_is_no_number() -> None:
    """Booleans and texts; `fields_of` reads them by `states` alone."""
    content = {"on": True, "state": " OFF ", "n": "21.5", "empty": "", "deep": [{"x": "open"}]}

    expected = [("on", "true"), ("state", "OFF"), ("deep.0.x", "open")]
    assert expected == words_of(content)
