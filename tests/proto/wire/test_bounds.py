"""Bounds before reading: what is small to send and large to read is refused unread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Channel, PeerError, Scaling, Schema
from submerge.protocol.messages import Census, Left, ScoreSketches
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import Limits
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import bounds, codec
from support.bombs import BOMBS, field
from support.wire import (
    HONEST,
    JOIN,
    JOINED,
    OF_KERNELS,
    a_model,
    a_report,
    arrived,
    messages,
    reported,
    travelled,
)

LONG = field(3000, b"x" * 9000)
"""A field that nobody knows, and that makes any message long enough to be looked through."""

ROOM = 2 * bounds.MOST_PARTS
"""Bytes that cannot hold too many parts."""

SHAPED = ("moments", "columns", "coarse columns", "a schema of one long word")
"""Bombs of few parts: these are read, and cost as much as numbers do."""


def refused(kind: codec.Kind, data: bytes) -> str:
    """Return as what some bytes are refused."""
    with pytest.raises(PeerError) as caught:
        codec.decode(kind, data)
    return caught.value.kind


@pytest.mark.parametrize("name", [name for name in BOMBS if not name.startswith(SHAPED)])
def test_bombs_are_refused_for_their_size(name):
    """For what they would cost, that is, before protobuf or JSON make anything of them."""
    kind, made = BOMBS[name]
    expected = "malformed" if "groups" in name else "oversize"

    assert expected == refused(kind, made(4 << 20))


@pytest.mark.slow
def test_no_bomb_of_the_largest_size_costs_much_more_than_columns_do():
    """Of 4 MiB each: without bounds, two hundred MiB."""
    code = (
        "import sys, submerge; sys.path.insert(0, sys.argv[1])\n"
        "from bombs import forget_peak, peak_mib, BOMBS, codec\n"
        "for kind, made in BOMBS.values():\n"
        "    data = made(4 << 20)\n"
        "    forget_peak(); before = peak_mib()\n"
        "    try: codec.decode(kind, data)\n"
        "    except submerge.PeerError: pass\n"
        "    print(peak_mib() - before)\n"
    )
    benchmarks = Path(__file__).parents[3] / "benchmarks"
    done = subprocess.run(
        [sys.executable, "-c", code, benchmarks], capture_output=True, text=True, check=True
    )
    took = dict(zip(BOMBS, map(float, done.stdout.split()), strict=True))

    assert [] == [name for name, mib in took.items() if mib > 16 and "columns" not in name]
    assert 5 < max(took.values()) < 110


# -- what passes ------------------------------------------------------------------------


@pytest.mark.slow
@given(messages)
def test_nothing_honest_is_out_of_bounds(message):
    """Not one of any kind, looked through to its end."""
    data = codec.encode(message) + LONG

    assert reported(arrived(message)) == reported(codec.decode(codec.kind_of(message), data))


@pytest.mark.slow
def test_the_most_that_docs_allow_is_within_bounds():
    """A new child's 256 past fences, 64 limits of three residuals, 64 bins, 64 lines."""
    fences = tuple(Left(bytes([i]) * 16, 2**62) for i in range(256))
    many = tuple(np.linspace(0.1, 1, 64))
    sketch = QuantileSketch.of(np.geomspace(1e-9, 1e9, 500))
    names = tuple(Channel(f"hall-{i:05d}.temperature", "degC") for i in range(20_000))
    numbers = tuple(np.random.default_rng(0).uniform(0.1, 9, len(names)))
    schema = Schema(names, scaling=Scaling(numbers, numbers))
    for message in (
        JOIN._replace(past_fences=fences, schema=schema.canonical),
        JOINED._replace(lines=("x" * 400,) * 64),
        a_report(census=Census(2**40, (2**40,) * 64), scores=ScoreSketches(sketch, sketch, sketch)),
        OF_KERNELS["model"],
        a_model(limits=Limits(many, many, many, 2**62)),
    ):
        data = codec.encode(message)
        assert reported(arrived(message)) == reported(
            codec.decode(codec.kind_of(message), data + LONG)
        )


def test_the_last_part_that_is_allowed():
    """So many, and not one more; those inside count as well."""
    data = codec.encode(HONEST["hello"]) + LONG
    # LONG, the hello, three in it, five in its header, two in its incarnation, one version.
    spare = bounds.MOST_PARTS - 13
    unknown = field(2000, b"")

    assert HONEST["hello"] == codec.decode("watch", data + unknown * spare)
    assert "oversize" == refused("watch", data + unknown * (spare + 1))


@pytest.mark.parametrize("name", HONEST)
def test_what_is_cut_short_is_malformed(name):
    """Wherever it ends, and whatever it claims."""
    kind = codec.kind_of(HONEST[name])
    data = field(3000, b"x" * ROOM) + codec.encode(HONEST[name])
    for end in range(ROOM + 10, len(data)):
        try:
            codec.decode(kind, data[:end])
        except PeerError as error:
            assert error.kind != "oversize"  # noqa: PT017 - not every end is one


@pytest.mark.slow
@given(st.sampled_from(codec.KINDS), st.binary(max_size=300))
def test_any_bytes_are_walked_to_an_end(kind, data):
    """What the walk lets through, protobuf judges; nothing but our own errors comes of either."""
    for long in (LONG + data, data + LONG, field(1, data + LONG), data * (1 + ROOM // 200)):
        try:
            codec.decode(kind, long)
        except PeerError:
            continue


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\xff" * 11, id="a number without an end"),
        pytest.param(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", id="a length of 2^64"),
        pytest.param(b"\x09\0\0", id="half a float64"),
        pytest.param(b"\x0d\0", id="half a float32"),
        pytest.param(b"\x0e", id="a kind of field that there is not"),
        pytest.param(b"\x0b\x0c", id="a group"),
        pytest.param(b"\x0a\x05\0", id="a part longer than the whole"),
    ],
)
def test_what_no_walk_comes_to_the_end_of_is_malformed(tail):
    """Each way to break off, once."""
    assert "malformed" == refused("report", codec.encode(HONEST["report"]) + LONG + tail)


def test_a_tag_written_long_is_the_same_tag():
    """Protobuf reads it so, and nothing must slip past."""
    fences = b"\x9a\x80\x00\x00" * bounds.MOST_PARTS  # field 3, in three bytes

    assert "oversize" == refused("join", codec.encode(JOIN) + fences + b"\x1a\0")


def test_another_version_may_be_of_more_parts():
    """As long as its header can be found; it is told to update, not that it is too large."""
    header = pb.WatchRequest.FromString(codec.encode(JOIN)).header
    header.version = 2
    data = pb.WatchRequest(header=header).SerializeToString()
    within = field(3, b"\x08\1" * bounds.MOST_PARTS)  # one field to a node of version 2

    assert "version" == refused("join", data + within)


def test_a_schema_of_landmarks_is_no_bomb():
    """Its points are one long word."""
    text = b'{"form":1,"points":"' + b"A" * (3 << 20) + b'"}'

    assert text == travelled(JOIN._replace(schema=text)).schema
