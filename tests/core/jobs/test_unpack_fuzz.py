"""Whatever a header lists, it is a payload or a peer's mistake: no other error gets out."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from submerge.errors import PeerError
from submerge.jobs.arrays import DTYPES, MAGIC, pack, unpack
from submerge.jobs.envelopes import JobAsk, JobShare

EDGES = [0, 1, 2, 3, 2**16, 2**21, 2**31 - 1, 2**31, 2**32, 2**63, 2**64 + 1, -1, -(2**31), 10**400]
STRANGE: list[Any] = [True, False, None, 0.0, 1.5, 1e308, -0.0, "1", "", {}, {"0": 1}, []]

lengths = st.sampled_from(EDGES) | st.integers(0, 4)
shapes = st.lists(lengths, max_size=5)
odd_shapes = st.recursive(
    st.sampled_from(STRANGE) | lengths, lambda inner: st.lists(inner, max_size=4), max_leaves=8
)
names = st.sampled_from(["counts", "sums", "a", "A", "", "a" * 33, "é", "\ud800", 1, None, ["a"]])
words = st.sampled_from([*DTYPES, "f2", "O", "", 8, None, {}, []])
entries = (
    st.tuples(names, words, shapes).map(list)
    | st.tuples(names, words, odd_shapes).map(list)
    | odd_shapes
)
headers: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "arrays": st.lists(entries, max_size=4) | odd_shapes,
        "header": st.dictionaries(
            st.sampled_from(["place", "left", "job", "turn", "within_s", "phase", "attempt"]),
            odd_shapes,
        )
        | odd_shapes,
    }
)
bodies = st.binary(max_size=48) | st.sampled_from([0, 8, 16, 64, 128]).map(bytes)


def payload(text: bytes, body: bytes) -> bytes:
    return MAGIC + len(text).to_bytes(4, "little") + text + body


def read(data: bytes) -> None:
    """Read it in all ways; what is read is what `pack` would make of it."""
    for of in (unpack, JobShare.unpack, JobAsk.unpack):
        try:
            found: Any = of(data)
        except PeerError:
            continue
        if of is unpack:
            header, arrays = found
            assert all(array.size < 2**24 for array in arrays.values())
            again = unpack(pack(header, arrays))[1]
            assert {n: (a.shape, a.dtype) for n, a in again.items()} == {
                n: (a.shape, a.dtype) for n, a in arrays.items()
            }


def listed(*shape: Any) -> dict[str, Any]:
    return {"arrays": [["counts", "f8", list(shape)]], "header": {}}


@given(headers, bodies)
@example(listed(2**31 - 1, 0, 2**31 - 1), b"")
@example(listed(0, 2**31 - 1, 2**31 - 1), b"")
@example(listed(0, 2**63), b"")
@example(listed(True), bytes(8))
@example(listed(1.0), bytes(8))
@example(listed(-1, -1), bytes(8))
@example(listed([1]), bytes(8))
@example(listed(1, 1, 1, 1), bytes(8))
@example(listed(), bytes(8))
@example({"arrays": [], "header": {"place": None, "left": {"\ud800": "why"}}}, b"")
@example({"arrays": [], "header": {"place": None, "left": {"a": "\ud800"}}}, b"")
def test_headers_of_any_shape_are_read_or_refused(header, body):
    """Huge, empty, negative, no numbers at all, nested, or with products that overflow."""
    read(payload(json.dumps(header).encode(), body))


@given(st.sampled_from(["[", '{"arrays":', "1" * 5000, "NaN", "-Infinity", '"', "\\ud800"]))
@example('{"arrays":[],"header":' + "[" * 100_000)
@example('{"arrays":[["a","f8",[' + "1" * 5000 + ']]],"header":{}}')
@example('{"arrays":[["a","f8",[1e999]]],"header":{}}')
@example('{"arrays":[["a","f8",[0]]],"arrays":[["a","f8",[NaN]]],"header":{}}')
def test_headers_that_are_no_json_are_refused(text):
    read(payload(text.encode(), b""))


@given(shapes.filter(lambda shape: len(shape) <= 3), st.sampled_from(sorted(DTYPES)))
def test_what_has_a_plain_shape_and_its_numbers_is_read(shape, word):
    """The bounds refuse nothing that a kind sends."""
    size = math.prod(shape)
    if not 0 <= size <= 4096 or not all(0 <= n < 2**16 for n in shape):
        return
    header = {"arrays": [["a", word, shape]], "header": {}}
    data = payload(json.dumps(header).encode(), bytes(size * DTYPES[word].itemsize))

    assert tuple(shape) == unpack(data)[1]["a"].shape
    assert not np.any(unpack(data)[1]["a"])
