"""A chunk's key is of its rows: not of its file, nor of how it was read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submerge.history.fit import CHUNK, ChunkKeys
from submerge.history.recording import Recorded
from submerge.protocol.history import Chunk

RNG = np.random.default_rng(5)
X = RNG.normal(size=(1000, 3))
T = 1.7e9 + np.arange(1000.0)


def keys(*parts: Recorded) -> tuple[Chunk, ...]:
    made = ChunkKeys(["a", "b", "c"])
    for part in parts:
        made.add(part)
    return made.end()


def part(first: int, last: int, machine: str = "m", file: str = "f") -> Recorded:
    return Recorded(machine, X[first:last], T[first:last], file, first + 1)


@given(st.lists(st.integers(1, 999), max_size=5))
def test_it_does_not_depend_on_how_many_rows_are_read_at_once(cuts: list[int]):
    ends = [0, *sorted(set(cuts)), 1000]
    pieces = [part(a, b) for a, b in pairwise(ends)]

    assert keys(part(0, 1000))[0].key == keys(*pieces)[0].key
    assert 1000 == keys(*pieces)[0].rows


def test_it_does_not_depend_on_the_name_of_the_file():
    assert keys(part(0, 100))[0].key == keys(part(0, 100, file="other"))[0].key


def test_times_and_every_reading_count():
    whole = keys(part(0, 100))[0].key
    later = Recorded("m", X[:100], T[:100] + 1, "f")
    timeless = Recorded("m", X[:100], None, "f")
    other = X[:100].copy()
    other[57, 1] += 1e-12

    made = {whole, *(keys(each)[0].key for each in (later, timeless))}
    assert 4 == len({*made, keys(replace(part(0, 100), rows=other))[0].key})


def test_rows_of_two_machines_in_one_file_are_two_chunks():
    both = keys(part(0, 500, "north"), part(500, 1000, "south"))

    assert {"north", "south"} == {chunk.machine for chunk in both}
    assert {each.key for each in both} == {
        keys(part(0, 500))[0].key,
        keys(part(500, 1000))[0].key,
    }


def test_the_same_rows_are_one_chunk():
    assert 1 == len(keys(part(0, 100, file="a"), part(0, 100, file="b")))


def test_long_files_have_several_chunks():
    rows = np.zeros((CHUNK + 10, 3))
    first, second = sorted(keys(Recorded("m", rows, None, "f")), key=lambda chunk: -chunk.rows)

    assert (CHUNK, 10) == (first.rows, second.rows)
