"""Files below one another, as `replay` and benchmarks read them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge_lab.replay.stacked import stacked
from support.data import shared


def refused(*paths: Path) -> str:
    with pytest.raises(UsageError) as caught:
        stacked(paths)
    return str(caught.value)


def test_rows_keep_the_order_of_the_files(file) -> None:
    """Nothing is sorted, gaps are counted, and notes of all files are kept."""
    paths = [file("one.csv", "a,b\n1,2\n"), file("two.csv.gz", gzip.compress(b"a;b\n3;\n4;5\n"))]

    for order in (paths, paths[::-1]):
        table = stacked(order)
        rows = {paths[0]: [[1, 2]], paths[1]: [[3, np.nan], [4, 5]]}
        np.testing.assert_array_equal(np.vstack([rows[path] for path in order]), table.rows)
        assert ("a", "b") == table.names
        assert "1 of 4 values missing in two.csv.gz" in table.notes


def test_times_and_texts_are_no_channels(file) -> None:
    """As for `fit`; columns to skip are left out too."""
    rows = "".join(f"2026-11-{i + 1:02},{i * i},{i % 3},x\n" for i in range(9))

    table = stacked([file("a.csv", "time,a,b,state\n" + rows)])

    assert ("a", "b") == table.names
    assert any("column state is text" in note for note in table.notes)


@pytest.mark.parametrize("other", ["a,c\n1,2\n", "b,a\n1,2\n", "a,b,c\n1,2,3\n"])
def test_files_of_other_columns_are_refused(file, other) -> None:
    """Names, number and order must be those of the first file."""
    message = refused(file("one.csv", "a,b\n1,2\n"), file("two.csv", other))

    assert "two.csv: expected the columns of " in message
    assert message.endswith("one.csv: read them one by one")


def test_no_file_at_all_is_refused() -> None:
    """An empty list is the caller's mistake, not an empty table."""
    assert refused() == "expected at least one file to read, got none; name one"


@pytest.mark.slow
def test_light_is_read_as_the_papers_do() -> None:
    """The SPIRIT set has the shape, range and share of zeros that its README states."""
    table = stacked([shared("motes/light.dat.gz")])

    assert table.rows.shape == (7712, 48)
    assert table.names[:2] == ("x0", "x1")
    assert table.rows[0, 0] == 45.08000183
    assert round(float(np.mean(table.rows == 0)), 3) == 0.081
    assert 1847 <= table.rows.max() < 1848


def test_wine_has_its_header() -> None:
    """A CSV from UCI, header and all."""
    table = stacked([shared("wine.csv")])

    assert table.rows.shape == (1599, 11)
    assert table.names[0] == "fixed acidity"


def test_insurance_is_read() -> None:
    """Tabs and Windows line ends, 85 columns."""
    assert stacked([shared("insurance_eval.txt.gz")]).rows.shape == (4000, 85)
