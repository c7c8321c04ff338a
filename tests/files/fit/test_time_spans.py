"""Spans of time on a command line and in a file of labels; what they mean is said or refused."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge.history.recording import TimeSpan
from submerge_files.fit.time_spans import Label, excluded, labels_of

DAY = 86400.0
NEW_YEAR = 1767225600.0
"""2026-01-01 in UTC."""


def test_an_end_may_be_open():
    """A date is its midnight; a time without a zone is UTC."""
    texts = ["2026-01-01..", "..2026-01-02", "2026-01-01 12:00 .. 2026-01-02T00:00:00+01:00"]
    spans = [*map(excluded, texts)]

    assert TimeSpan(NEW_YEAR, math.inf) == spans[0]
    assert TimeSpan(-math.inf, NEW_YEAR + DAY) == spans[1]
    assert TimeSpan(NEW_YEAR + DAY / 2, NEW_YEAR + DAY - 3600) == spans[2]
    assert TimeSpan(NEW_YEAR, NEW_YEAR + 12 * DAY) == excluded("01/01/2026..01/13/2026")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-01-01", "--exclude is FROM..TO, such as"),
        ("..", "write two points between both times"),
        ("2026-01-02..2026-01-01", "with FROM before TO, got '2026-01-02..2026-01-01'"),
        ("01/02/2026..", "nothing says whether the day or the month is first"),
        ("..soon", "--exclude: expected a time such as 2026-03-04 10:00"),
    ],
)
def test_what_is_no_span_is_refused(text: str, said: str):
    with pytest.raises(UsageError) as error:
        excluded(text)

    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "start,end,what\n2026-01-02,2026-01-03,valve\n2026-01-01,2026-01-01 12:00,\n",
        "\ufeffBegin;End;Note\n2026-01-02;2026-01-03;valve\n2026-01-01;2026-01-01 12:00;\n",
        "what\tto\tfrom\nvalve\t2026-01-03\t2026-01-02\n\t2026-01-01 12:00\t2026-01-01\n\n",
        "2026-01-01,2026-01-01 12:00\n2026-01-02,2026-01-03,valve\n",
        "01/01/2026,1/1/2026 12:00 PM,\n1/2/2026,1/3/2026,valve\n01/13/2026,01/13/2026,\n",
    ],
)
def test_labels_are_read_with_any_of_their_headings(tmp_path: Path, text: str):
    """And in any order; they come in that of time."""
    path = tmp_path / "faults.csv"
    path.write_text(text)
    first = Label(TimeSpan(NEW_YEAR, NEW_YEAR + DAY / 2))
    second = Label(TimeSpan(NEW_YEAR + DAY, NEW_YEAR + 2 * DAY), "valve")

    assert (first, second) == labels_of(path)[:2]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=20))
def test_faults_that_overlap_are_one(
    tmp_path_factory: pytest.TempPathFactory, spans: list[tuple[int, int]]
):
    """What is left covers the same minutes, and no two of them touch."""
    path = tmp_path_factory.mktemp("labels") / "faults.csv"
    rows = [
        f"2026-01-01 00:{a:02}:00,2026-01-01 {(a + n) // 60:02}:{(a + n) % 60:02}:00"
        for a, n in spans
    ]
    path.write_text("from,to\n" + "\n".join(rows))
    found = [label.span for label in labels_of(path)]

    def covered(first: float, last: float) -> set[int]:
        return {i for i in range(120) if first <= i / 2 <= last}

    minutes = [((s.first - NEW_YEAR) / 60, (s.last - NEW_YEAR) / 60) for s in found]
    assert set().union(*(covered(a, a + n) for a, n in spans)) == set().union(
        *(covered(*each) for each in minutes)
    )
    assert all(one[1] < other[0] for one, other in pairwise(minutes))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected 1 to 10,000 known faults, got 0"),
        ("from,to\n", "got 0; write a line for each: from,to,text"),
        ("a,b\n2026-01-01,2026-01-02\n", "line 1: expected the headings from and to"),
        ("from,to\n2026-01-01,\n", "line 2: expected a time such as"),
        ("from,to\n2026-01-02,2026-01-01\n", "line 2: expected a fault that begins before it"),
        ("from,to\n01/02/2026,01/03/2026\n", "nothing says whether the day or the month"),
        ("\x00\xff", "write it as text in UTF-8"),
    ],
)
def test_a_file_that_is_no_list_of_faults_is_refused(tmp_path: Path, text: str, said: str):
    """One line: the file, the place, and what to do."""
    path = tmp_path / "faults.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as error:
        labels_of(path)

    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path):
    with pytest.raises(UsageError, match="No such file"):
        labels_of(tmp_path / "none.csv")
