"""TextFile: pyarrow and the careful reading agree to the bit, and mistakes keep their places."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.datasets import Flow
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.formats import readers
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import TableFile, words

FIELDS = (
    st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(
        ["", "NA", "-nan", "True", "false", "+1", ".5", "5.", "1e-400", ' "2"', " 3 "]
    )
    | st.integers(-(10**18), 10**18).map(str)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


def rows_of(file: TableFile, begin: int = 0) -> np.ndarray:
    width = len(file.columns)
    parts = [raw.numbers for raw in file.blocks(range(width), [], begin)]
    return np.concatenate([np.empty((0, width)), *parts])


@settings(max_examples=60)
@given(
    st.lists(st.lists(FIELDS, min_size=3, max_size=3) | st.just([""]), min_size=1, max_size=30),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.integers(0, 30),
)
def test_both_ways_are_one(
    folder: Path, rows: list[list[str]], mark: str, end: str, at: int
) -> None:
    """Whatever pyarrow reads, and from where on the other goes on."""
    lines = [["a", "b", "c"], ["1", "2.5", "3"], *rows]
    path = folder / "a.csv"
    path.write_text(end.join(mark.join(line) for line in lines) + end)

    flow, file = Flow.of(path), open_file(path)

    careful = np.concatenate(list(flow.blocks([0, 1, 2])))
    np.testing.assert_array_equal(careful, rows_of(file))
    np.testing.assert_array_equal(careful[at:], rows_of(file, at))


@pytest.mark.parametrize("packed", [False, True])
def test_pyarrow_reads_plain_tables(tmp_path: Path, monkeypatch, packed: bool) -> None:
    """Gaps, quotes, words for yes and no, and times: row by row they would take far longer."""
    monkeypatch.setattr(readers.text, "pieces", None)
    text = "time,a,b,c\n" + '2026-11-23 10:00,1,True,"x, y"\n\n2026-11-23 10:01,NA,,z\n' * 3000
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())

    raws = list(open_file(path).blocks([1, 2], [0, 3]))

    rows = np.concatenate([raw.numbers for raw in raws])
    np.testing.assert_array_equal([[1, 1], [np.nan, np.nan]] * 3000, rows)
    assert ["x, y", "z"] == [word for raw in raws for word in words(raw.texts[1])][:2]


@pytest.mark.parametrize("blank", ["", "\n"])
@pytest.mark.parametrize("wrong", ["7,x", "7,inf", "7,8,9", '7,"8'])
def test_a_mistake_has_its_line_wherever_it_is(tmp_path: Path, blank: str, wrong: str) -> None:
    """Rows that pyarrow has read are counted, blank lines and the heading with them."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + blank + "1,2\n" * 70_000 + wrong + "\n1,2\n")

    with pytest.raises(UsageError, match=f"line {70_002 + len(blank)}"):
        list(open_recordings([path], ReadingOptions()).rows())


def test_without_pyarrow_text_is_read_all_the_same(tmp_path: Path, monkeypatch) -> None:
    """A plain install reads CSV with its times."""
    path = tmp_path / "a.csv"
    path.write_text(
        "time;a;b\n" + "".join(f"2026-11-23 10:{i:02};{i},5;{i * i}\n" for i in range(60))
    )
    expected = list(open_recordings([path], ReadingOptions()).rows())
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    found = list(open_recordings([path], ReadingOptions()).rows())

    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.times, other.times)


def test_decimal_commas_are_points(tmp_path: Path) -> None:
    """Between semicolons, tabs or blanks, where no number says otherwise; a note says it."""
    rows = [(f"{i},25", f"-{i}", ",5", f"{i}e-2") for i in range(40)]
    for mark in ";", "\t", " ":
        path = tmp_path / "a.csv"
        path.write_text(mark.join("abcd") + "\n" + "".join(mark.join(row) + "\n" for row in rows))
        file = open_file(path)

        expected = [[float(field.replace(",", ".")) for field in row] for row in rows]
        np.testing.assert_array_equal(expected, rows_of(file))
        assert ("commas in numbers of a.csv are read as decimal points",) == file.notes


def test_three_decimals_throughout_are_no_groups(tmp_path: Path) -> None:
    """A number below a thousand would have no comma."""
    path = tmp_path / "a.csv"
    path.write_text("a;b\n" + "".join(f"{i + 1},125;{i}\n" for i in range(40)))

    np.testing.assert_array_equal([i + 1.125 for i in range(40)], rows_of(open_file(path))[:, 0])


@pytest.mark.parametrize("doubtful", ["1,234", "1.234,5", "1,234.5"])
def test_digits_in_groups_are_refused(tmp_path: Path, doubtful: str) -> None:
    """1,234 is one thing in Boston, and another in Berlin."""
    path = tmp_path / "a.csv"
    path.write_text("a;b\n" + f"{doubtful};2\n" * 9)

    with pytest.raises(UsageError, match=r"line 2, column 1 \(a\): expected a number"):
        list(open_recordings([path], ReadingOptions()).rows())
