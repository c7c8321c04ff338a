"""Columns that are hardly readings have a note, or are left out; real ones have none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.column_ranges import ColumnRanges

N = 40
RNG = np.random.default_rng(0)
READINGS = {name: 20 + RNG.normal(size=N) for name in ("flow", "temp")}


def opened(path: Path, **more: object):  # type: ignore[no-untyped-def]
    """Recordings of a file with times, two readings, and further columns."""
    times = [f"2026-11-23 10:{i:02}" for i in range(N)]
    columns = {"time": times, **READINGS, **more}
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(",".join(map(str, row)) for row in (columns.keys(), *rows)))
    return open_recordings([path], ReadingOptions())


def test_readings_have_no_note(tmp_path: Path) -> None:
    """Nor has a switch, or a channel that stands at its lowest value for a while."""
    switch = [i % 7 < 3 for i in range(N)]
    recordings = opened(tmp_path / "a.csv", on=switch, level=[max(i, 9) % 30 for i in range(N)])

    list(recordings.rows())

    assert ((), 4) == (recordings.notes, len(recordings.names))


@pytest.mark.parametrize("name", ["id", "Unnamed: 0", "index", "ROW"])
def test_an_index_is_left_out(tmp_path: Path, name: str) -> None:
    """A history that counts on would be at another level on every later day."""
    recordings = opened(tmp_path / "a.csv", **{name: range(7, 7 + N)})

    assert ("flow", "temp") == recordings.names
    assert f"column {name} counts the rows and is left out (a.csv)" in recordings.notes


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("piece", range(N), "column piece counts the rows: if it is no reading, leave it out"),
        ("made", range(1764000000, 1764000000 + 60 * N, 60), "looks like times: name it as such"),
        ("anomaly", [0, 1] * (N // 2), "if it says which rows are faults, leave it out (--skip"),
        ("copy", READINGS["flow"], "columns flow and copy have the same values in the first rows"),
    ],
)
def test_a_doubtful_column_has_a_note(tmp_path: Path, name: str, values, said: str) -> None:
    """It stays a channel, since only a person knows."""
    recordings = opened(tmp_path / "a.csv", **{name: values})

    assert ("flow", "temp", name) == recordings.names
    assert [said] == [said for note in recordings.notes if said in note]


@pytest.mark.parametrize("mark", [-9999.0, 9999.0])
def test_a_value_far_from_all_others_has_a_note(tmp_path: Path, mark: float) -> None:
    """It marks what is missing, or a standstill; one wild value is a fault."""
    marked = READINGS["flow"].copy()
    marked[::9] = mark
    wild = READINGS["flow"].copy()
    wild[5] = mark
    recordings = opened(tmp_path / "a.csv", marked=marked, wild=wild)

    list(recordings.rows())
    list(recordings.rows())

    (note,) = recordings.notes
    assert f"channel marked is {mark:g} in 5 rows, and from" in note
    assert "leave these rows out (--when of fit, detect and score)" in note


@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 900.0, float("nan")]), min_size=1, max_size=40),
    st.integers(1, 7),
)
def test_blocks_do_not_matter(values: list[float], block: int) -> None:
    """The same rows have the same notes, however they are cut."""
    rows, whole, parts = np.array(values)[:, None], ColumnRanges("a"), ColumnRanges("a")
    whole.add(rows)
    for begin in range(0, len(rows), block):
        parts.add(rows[begin : begin + block])

    assert [*whole.notes()] == [*parts.notes()]
    known = rows[~np.isnan(rows)]
    far = (known == 900.0).sum()
    others = {*known.tolist()} - {900.0}
    assert (far >= 3 and len(others) > 1) == any("in all others" in note for note in whole.notes())
