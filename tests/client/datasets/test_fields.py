"""Fields of text: every spelling is the value that it stands for, or has its cure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from submerge_client.datasets import Flow, text
from submerge_client.datasets.fields import cure
from submerge_client.datasets.source import Source
from submerge_client.datasets.text import form_of


def read(path: Path) -> np.ndarray:
    flow = Flow.of(path)
    return np.concatenate(list(flow.blocks(range(len(flow.names)))))


@pytest.mark.parametrize(
    ("field", "has"),
    [
        ("12,5", "decimal points"),
        (",5", "decimal points"),
        ("1,234", "or digits in groups"),
        ("1,234,567.5", "thousands separators"),
        ("1.234,5", "thousands separators"),
        ("1'234", "thousands separators"),
        ("12 C", "a unit (C)"),
        ("-3.5kPa", "a unit (kPa)"),
        ("pump", ""),
        ("2026-11-23", ""),
        ("10.0.0.1", ""),
    ],
)
def test_nearly_a_number_has_its_cure(field, has) -> None:
    """What people write in place of plain numbers is named."""
    advice = cure(field)
    assert has in advice
    assert bool(has) == bool(advice)


@pytest.mark.parametrize("content", ["a b\tc d\n1\t\n\t4\n", "a b;c d\n1;NULL\n-;4\n"])
def test_headings_between_tabs_have_blanks_and_fields_may_be_empty(tmp_path, content) -> None:
    """A tab separates columns if all first lines have as many."""
    path = tmp_path / "a.tsv"
    path.write_text(content)

    assert ("a b", "c d") == Flow.of(path).names
    np.testing.assert_array_equal([[1, np.nan], [np.nan, 4]], read(path))


@pytest.mark.parametrize("content", ["\t1\t2\n\t3\t4\n", "1\t2\t\n3\t4\t\n", "1 \t2\n3\t\t4\n"])
def test_tabs_that_indent_or_pad_are_blanks(tmp_path, content) -> None:
    """A whitespace matrix may have tabs anywhere."""
    path = tmp_path / "a.dat"
    path.write_text(content)

    np.testing.assert_array_equal([[1, 2], [3, 4]], read(path))


def test_a_first_row_that_begins_with_a_time_is_no_heading(tmp_path) -> None:
    """It was lost as the names of columns."""
    path = tmp_path / "a.csv"
    path.write_text("2026-11-23 10:00,1,2\n2026-11-23 10:01,3,4\n")

    flow = Flow.of(path)

    assert (("x0", "x1", "x2"), False) == (flow.names, flow.named)
    np.testing.assert_array_equal([[1, 2], [3, 4]], next(flow.blocks([1, 2])))


@pytest.mark.parametrize("quote", ["", '"'])
def test_columns_of_text_come_beside_the_numbers(tmp_path, quote) -> None:
    """Blank lines left out."""
    path = tmp_path / "a.csv"
    path.write_text(f"t,a,b\n{quote}x{quote}, 1,2\n\ny ,,4\n")
    source = Source.of(path)

    pieces = list(text.pieces(source, form_of(source), [2, 1], [0]))

    assert [["x", "y"]] == [[field for p in pieces for field in p.texts[0]]]
    assert [2, 4] == [text.line_of(source, form_of(source), row) for row in (1, 2)]
    np.testing.assert_array_equal([[2, 1], [4, np.nan]], np.vstack([p.rows for p in pieces]))


@pytest.mark.parametrize("quote", ["", '"'])
def test_true_and_false_are_numbers(tmp_path, quote) -> None:
    """As in Parquet, with gaps beside them."""
    path = tmp_path / "a.csv"
    path.write_text(f"a,b,c\n{quote}1{quote},True,FALSE\n,false,true\n2,TRUE,False\n")

    (block,) = Flow.of(path).blocks([0, 1, 2])

    np.testing.assert_array_equal([[1, 1, 0], [np.nan, 0, 1], [2, 1, 0]], block)


def test_an_endless_line_is_refused(tmp_path, monkeypatch) -> None:
    """A small gzip file may unpack to a line of any length."""
    monkeypatch.setattr("submerge_client.datasets.source.MOST_CHARACTERS", 1 << 20)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1" * (1 << 21) + ",2\n")

    with pytest.raises(Exception, match="expected lines of less than 1 Mi characters"):
        read(path)
