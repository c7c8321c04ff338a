"""Fields and times in text: every spelling is the value that it stands for, or has its cure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge_client.datasets import Flow, read, text
from submerge_client.datasets.instants import is_time, to_seconds
from submerge_client.datasets.source import Source
from submerge_client.datasets.text import cure, form_of

instants = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1))
zones = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@settings(max_examples=40)
@given(st.lists(st.tuples(instants, zones), min_size=1, max_size=5), st.sampled_from(["T", " "]))
def test_times_with_any_zone_are_instants(some, mark) -> None:
    """Mixed zones in one column, to a microsecond."""
    whens = [when.replace(tzinfo=zone) for when, zone in some]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [(when - epoch) // timedelta(microseconds=1) / 1e6 for when in whens]

    texts = [when.isoformat(mark, "microseconds") for when in whens]

    assert all(map(is_time, texts))
    np.testing.assert_array_equal(expected, to_seconds(texts))


@given(st.lists(instants, min_size=1, max_size=5), st.sampled_from(["", "Z"]))
def test_the_fast_path_reads_what_the_careful_one_does(whens, zone) -> None:
    """A row of another width, which goes one by one, changes no other time."""
    texts = [when.isoformat(" ", "milliseconds") + zone for when in whens]

    np.testing.assert_array_equal(to_seconds(texts), to_seconds([*texts, "2026-11-23"])[:-1])


@pytest.mark.parametrize(
    "field", ["", "now", "NaT", "2026", "2026-13-01", "2026-02-30", "11/12/2026", "10:00", "12.5"]
)
def test_what_is_no_time_is_nan(field) -> None:
    """NumPy would read some of these."""
    assert np.isnan(to_seconds([field])[0])
    assert np.isnan(to_seconds(["2026-11-23", field])[1])


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

    table = read([path])

    assert ("a b", "c d") == table.names
    np.testing.assert_array_equal([[1, np.nan], [np.nan, 4]], table.rows)


@pytest.mark.parametrize("content", ["\t1\t2\n\t3\t4\n", "1\t2\t\n3\t4\t\n", "1 \t2\n3\t\t4\n"])
def test_tabs_that_indent_or_pad_are_blanks(tmp_path, content) -> None:
    """A whitespace matrix may have tabs anywhere."""
    path = tmp_path / "a.dat"
    path.write_text(content)

    np.testing.assert_array_equal([[1, 2], [3, 4]], read([path]).rows)


def test_a_first_row_that_begins_with_a_time_is_no_heading(tmp_path) -> None:
    """It was lost as the names of columns."""
    path = tmp_path / "a.csv"
    path.write_text("2026-11-23 10:00,1,2\n2026-11-23 10:01,3,4\n")

    flow = Flow.of(path)

    assert (("x0", "x1", "x2"), False) == (flow.names, flow.named)
    np.testing.assert_array_equal([[1, 2], [3, 4]], next(flow.blocks([1, 2])))


@pytest.mark.parametrize("quote", ["", '"'])
def test_columns_of_text_come_beside_the_numbers(tmp_path, quote) -> None:
    """With their lines, blank ones left out, on the fast path and the careful one."""
    path = tmp_path / "a.csv"
    path.write_text(f"t,a,b\n{quote}x{quote}, 1,2\n\ny ,,4\n")
    source = Source.of(path)

    pieces = list(text.pieces(source, form_of(source), [2, 1], [0]))

    assert [["x", "y"]] == [[field for p in pieces for field in p.texts[0]]]
    assert [2, 4] == [line for p in pieces for line in p.lines]
    np.testing.assert_array_equal([[2, 1], [4, np.nan]], np.vstack([p.rows for p in pieces]))


@pytest.mark.parametrize("quote", ["", '"'])
def test_true_and_false_are_numbers(tmp_path, quote) -> None:
    """As in Parquet: on the fast path and the careful one, with gaps beside them."""
    path = tmp_path / "a.csv"
    path.write_text(f"a,b,c\n{quote}1{quote},True,FALSE\n,false,true\n2,TRUE,False\n")

    (block,) = Flow.of(path).blocks([0, 1, 2])

    np.testing.assert_array_equal([[1, 1, 0], [np.nan, 0, 1], [2, 1, 0]], block)


def test_true_and_false_take_the_fast_path(tmp_path, monkeypatch) -> None:
    """Row by row such files would take ten times as long."""
    monkeypatch.delattr(text, "_row_by_row")
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + "1,True,\n" * 600)

    assert 600 == sum(len(block) for block in Flow.of(path).blocks([1, 2]))


def test_an_endless_line_is_refused(tmp_path, monkeypatch) -> None:
    """A small gzip file may unpack to a line of any length."""
    monkeypatch.setattr("submerge_client.datasets.source.MOST_CHARACTERS", 1 << 20)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1" * (1 << 21) + ",2\n")

    with pytest.raises(Exception, match="expected lines of less than 1 Mi characters"):
        read([path])
