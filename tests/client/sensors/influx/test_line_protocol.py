"""Line protocol: what a line means, against a slow twin, and what hostile lines cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge_client.sensors.influx.line_protocol import MalformedLine, ParsedLine, parse, written
from support import line_protocol_twin as twin

PIECES = (
    *("a", "flow", "é", ",", "=", " ", "\\", '"', "#", "\t", "\r", "\n", "\0", "1", "-", ".", "+"),
    *("1.5", "1e5", "2i", "3u", "t", "true", "False", "tr", "NaN", "inf", '"x y"', "\\,", "\\ "),
    *(
        "\\=",
        '\\"',
        "\\\\",
        "m,k=v",
        "f=1",
        " f=1.5 ",
        " 1767225600000000000",
        "99999999999999999999",
    ),
)

LINES = st.lists(st.sampled_from(PIECES), max_size=14).map(lambda parts: "".join(parts).encode())
NAMES = st.text(st.sampled_from('aé, ="#1.\0\u00a0'), min_size=1, max_size=6)
VALUES = st.one_of(
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.sampled_from('aé, ="\\\t\r\0'), max_size=6),
)


def answered(line: bytes):
    """What a parser says: a metric, None, or "refused"."""
    try:
        return parse(line)
    except MalformedLine:
        return "refused"


def expected(line: bytes):
    """The same of the twin."""
    try:
        return twin.parse(line)
    except twin.NoMetric:
        return "refused"


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        (
            'measurement,tag=value field=1.5,other=2i,flag=true,text="x" 10',
            (
                "measurement",
                {"tag": "value"},
                {"field": 1.5, "other": 2.0, "flag": True, "text": "x"},
                10,
            ),
        ),
        (r"a\ b\,c,k\=1=v\ 2 f\,g=3u", ("a b,c", {"k=1": "v 2"}, {"f,g": 3.0}, None)),
        ("opcua,id=ns\\=3;s\\=T temp=79.0 -5", ("opcua", {"id": "ns=3;s=T"}, {"temp": 79.0}, -5)),
        (r'm f="say \"hi\" \\ there"', ("m", {}, {"f": r'say "hi" \ there'}, None)),
        ("m=1 f=1", ("m=1", {}, {"f": 1.0}, None)),
        ("m f=.5,g=5.,h=-1e-3\r", ("m", {}, {"f": 0.5, "g": 5.0, "h": -0.001}, None)),
        ("  m   f=T   7  ", ("m", {}, {"f": True}, 7)),
        ("m f=1,f=2", ("m", {}, {"f": 2.0}, None)),
        (r"m,k=a\\b f=1", ("m", {"k": r"a\\b"}, {"f": 1.0}, None)),
    ],
)
def test_meaning(line, metric):
    """A line means what Telegraf's own parser reads in it."""
    assert ParsedLine(*metric) == parse(line.encode())


@pytest.mark.parametrize("line", ["", "   ", "# a comment", "\t# m f=1", "\r"])
def test_no_metric(line):
    """Comments and empty lines are no metric, and no mistake."""
    assert parse(line.encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        *("m", "m ", "m,k f=1", "m,k= f=1", ",k=v f=1", "m f", "m f=", "m f=NaN", "m f=inf"),
        *("m f=-1u", "m f=+1", "m f=1e", 'm f="open', "m f=1 1.5", "m f=1 x", "m f=1,", "m f=tr"),
        *("m f=1 9223372036854775808", "m f=123456789012345678901i", "m f=1 2 3", 'm f="a"b'),
        "m f=٣",  # a digit, and not one of ten
        r"m,k=a\\,j=b f=1",  # the second backslash escapes the comma
    ],
)
def test_refused(line):
    """What is no line protocol is refused, whole."""
    assert answered(line.encode()) == "refused"


@given(LINES)
@example(b"m,k=a\\\\ f=1")
@example(b"m\\\\,k=a f=1")
@example(b'm f="\\')
def test_twin(line):
    """However lines are put together, the parser says what a walk over their characters says."""
    said, walked = answered(line), expected(line)

    assert walked == (tuple(said) if isinstance(said, ParsedLine) else said)


@given(
    NAMES.filter(lambda name: not name.lstrip(" ").startswith("#") and name.strip(" ")),
    st.dictionaries(NAMES, NAMES, max_size=3),
    st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    st.integers(-(2**63) + 1, 2**63 - 1),
)
def test_round_trip(measurement, tags, fields, time):
    """What is written is read back, with every name, value and time."""
    line = written(measurement, tags, fields, time)

    assert ParsedLine(measurement, tags, fields, time) == parse(line.removesuffix(b"\n"))


def test_not_finite():
    """Numbers that line protocol does not have are left out."""
    assert written("m", {}, {"a": math.nan, "b": math.inf, "c": 1.0}, 5) == b"m c=1.0 5\n"


@pytest.mark.slow
def test_hostile_lines():
    """A hundred thousand hostile lines raise nothing but the refusal."""
    rng = np.random.default_rng(21)
    alphabet = [piece.encode() for piece in PIECES] + [b"\xff", b"\xc3", b"\xed\xa0\x80"]
    good = b'modbus,host=h,name=p\\ 1 flow=21.5,on=t,say="a, b" 1767225600000000000'
    lines = [
        b"".join(alphabet[j] for j in picks[: i % 20])
        for i, picks in enumerate(rng.integers(len(alphabet), size=(50_000, 20)).tolist())
    ]
    places = rng.integers(len(good), size=(50_000, 3)).tolist()
    for i, (at, values) in enumerate(
        zip(places, rng.integers(256, size=(50_000, 3)).tolist(), strict=True)
    ):
        line = bytearray(good)
        for j in range(i % 3 + 1):
            line[at[j]] = values[j]
        lines.append(bytes(line))
    refused = sum(answered(line) == "refused" for line in lines)

    assert 10_000 < refused < 100_000


@pytest.mark.parametrize(
    ("line", "is_metric"),
    [
        (b"m f=" + b"1" * 1_000_000, True),
        (b"m f=1" + b" " * 1_000_000, True),
        (b"m" + b"\\" * 999_999, False),
        (b"m," + b"k=v," * 250_000 + b" f=1", False),
        (b'm f="' + b'\\"' * 500_000, False),
        (b"m " + b"f=1," * 250_000, False),
        (b" " * 1_000_000 + b"m", False),
    ],
)
def test_long_lines(line, is_metric):
    """A line of a megabyte is read or refused in one pass: no repetition is tried again."""
    assert (answered(line) != "refused") is is_metric
