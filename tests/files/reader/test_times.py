"""Times as people export them become the same seconds, or the files are refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.time_form import (
    DAY_FIRST,
    MONTH_FIRST,
    compact_seconds,
    is_time,
    orders_of,
    parsed_by,
    slashed_seconds,
    to_seconds,
)

BEGIN = datetime(2026, 3, 14, 14, 5, tzinfo=UTC).timestamp()


def times(path: Path, *texts: str, name: str = "time", **options: object) -> list[float]:
    """The times of a file with these, a minute apart or not."""
    rows = "".join(f'"{text}",{i},{i * i}\n' for i, text in enumerate(texts))
    path.write_text(f"{name},a,b\n{rows}")
    recordings = open_recordings([path], ReadingOptions(**options))  # type: ignore[arg-type]
    return [time for each in recordings.rows() for time in np.asarray(each.times).tolist()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("03/14/2026 2:05 PM", "03/14/2026 2:06 PM"),
        ("3/14/2026 02:05:00 p.m.", "3/14/2026 02:06:00 p.m."),
        ("03/14/2026 14:05", "03/14/2026 14:06"),
        ("14/03/2026 14:05", "14/03/2026 14:06"),
        ("14-03-2026 14:05", "14-03-2026 14:06"),
        ("14.03.2026 14:05", "14.3.2026 14:06"),
        ("2026-03-14 2:05 PM", "2026-03-14 2:06PM"),
        ("14/03/2026 15:05+01:00", "14/03/2026 15:06+01:00"),
        ("20260314140500", "20260314140600"),
        ("202603141405", "202603141406"),
    ],
)
def test_a_date_that_says_its_order_is_read(tmp_path: Path, first: str, second: str) -> None:
    """A number above 12 is a day; twelve hours and dates without separators are read."""
    assert [BEGIN, BEGIN + 60] == times(tmp_path / "a.csv", first, second)


@pytest.mark.parametrize(
    ("pattern", "first", "second"),
    [
        ("%d/%m/%y %H:%M", "14/03/26 14:05", "14/03/26 14:06"),
        ("%d-%b-%Y %H:%M", "14-Mar-2026 14:05", "14-Mar-2026 14:06"),
        ("%Y%m%d%H%M%S", "20260314140500", "20260314140600"),
        ("excel", str(46095 + 14 / 24 + 5 / 1440), str(46095 + 14 / 24 + 6 / 1440)),
        ("ms", f"{BEGIN * 1e3:.0f}", f"{(BEGIN + 60) * 1e3:.0f}"),
    ],
)
def test_a_format_says_how_times_are_written(
    tmp_path: Path, pattern: str, first: str, second: str
) -> None:
    """The column needs no name then, if it is called time."""
    found = times(tmp_path / "a.csv", first, second, time_format=pattern)

    assert [BEGIN, BEGIN + 60] == pytest.approx(found, abs=1e-3)


def test_a_format_reads_a_date_and_a_clock(tmp_path: Path) -> None:
    """Two columns are one text with a blank between."""
    path = tmp_path / "a.csv"
    path.write_text("day,at,a,b\n03/02/26,14.05,1,2\n03/02/26,14.06,3,4\n")
    options = ReadingOptions(time="day+at", time_format="%m/%d/%y %H.%M")

    (recorded,) = open_recordings([path], options).rows()

    expected = datetime(2026, 3, 2, 14, 5, tzinfo=UTC).timestamp()
    assert [expected, expected + 60] == np.asarray(recorded.times).tolist()


def test_a_late_row_says_the_order_of_all(tmp_path: Path) -> None:
    """The first rows may all be of days up to 12."""
    early = [f"03/02/2026 {i // 60:02}:{i % 60:02}" for i in range(600)]

    found = times(tmp_path / "a.csv", *early, "03/13/2026 00:00")

    assert datetime(2026, 3, 2, tzinfo=UTC).timestamp() == found[0]
    assert datetime(2026, 3, 13, tzinfo=UTC).timestamp() == found[-1]


def test_another_file_says_the_order(tmp_path: Path) -> None:
    """One file of the first days of a month is read as the others are."""
    for name, day in {"a": "02/03/2026", "b": "14/03/2026"}.items():
        (tmp_path / f"{name}.csv").write_text(f"time,a,b\n{day} 10:00,1,2\n{day} 10:01,2,5\n")

    rows = [*open_recordings([tmp_path], ReadingOptions()).rows()]

    assert [2, 14] == [datetime.fromtimestamp(each.times[0], UTC).day for each in rows]  # type: ignore[index]
    assert [3, 3] == [datetime.fromtimestamp(each.times[0], UTC).month for each in rows]  # type: ignore[index]


def test_a_row_against_the_order_is_refused_by_its_line(tmp_path: Path) -> None:
    """The order of the first rows holds; a later date that has none in it is no time."""
    texts = [f"13/02/2026 {i // 60:02}:{i % 60:02}" for i in range(300)]

    with pytest.raises(UsageError, match=r"line 302, column 1 \(time\): .* got '02/14/2026'"):
        times(tmp_path / "a.csv", *texts, "02/14/2026")


def test_seconds_from_a_start_are_no_serial_dates(tmp_path: Path) -> None:
    """Whole numbers in a column called time count seconds, as before."""
    assert [45000.0, 45001.0] == times(tmp_path / "a.csv", "45000", "45001")
    assert [45000.5, 45001.0] == times(tmp_path / "a.csv", "45000.5", "45001", time_format="s")


@pytest.mark.parametrize("day", ["2026-11-23", "20261123"])
def test_dates_alone_of_many_rows_are_noted(tmp_path: Path, day: str) -> None:
    """Nothing says then how long a row is."""
    (tmp_path / "a.csv").write_text("time,a,b\n" + "2026-11-23,1,2\n2026-11-24,3,5\n")
    assert () == open_recordings([tmp_path / "a.csv"], ReadingOptions()).notes
    (tmp_path / "a.csv").write_text(f"time,a,b\n{day},1,2\n{day},3,5\n")

    (note,) = open_recordings([tmp_path / "a.csv"], ReadingOptions()).notes

    assert "the first 2 rows have 1 time, 2 of them one: if times have lost digits" in note
    assert "--time, DATE+CLOCK for two" in note


def test_numbers_called_time_that_are_none_are_named(tmp_path: Path) -> None:
    """A clock such as 140500 beside a date is not silently a channel."""
    path = tmp_path / "a.csv"
    rows = "".join(f"2026031{i},{140500 - i},{i},{i * i}\n" for i in range(5))
    path.write_text(f"date,time,a,b\n{rows}")

    recordings = open_recordings([path], ReadingOptions())

    assert ("time", "a", "b") == recordings.names
    assert "time holds numbers that are no times and is read as a channel" in recordings.notes[0]


days = st.datetimes(datetime(1970, 1, 1), datetime(2099, 12, 31))


@given(st.lists(days, min_size=1), st.booleans())
def test_slashed_dates_come_back(some: list[datetime], order: bool) -> None:
    """Any order reads its own dates, and is among the orders that they permit."""
    some = [each.replace(microsecond=0) for each in some]
    pattern = "%d/%m/%Y %H:%M:%S" if order == DAY_FIRST else "%m/%d/%Y %I:%M:%S %p"
    texts = [each.strftime(pattern) for each in some]

    assert order in orders_of(texts)
    expected = [each.replace(tzinfo=UTC).timestamp() for each in some]
    assert expected == slashed_seconds(texts, order).tolist()
    assert expected == parsed_by(pattern).of_text(texts).tolist()


@given(st.lists(days, min_size=1))
def test_dates_without_separators_come_back(some: list[datetime]) -> None:
    """Numbers of eight to fourteen digits are dates to the day, hour, minute or second."""
    for pattern in ("%Y%m%d", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"):
        texts = [each.strftime(pattern) for each in some]
        expected = [
            datetime.strptime(f"{text:0<14}", "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
            for text in texts
        ]
        assert expected == compact_seconds(np.array([float(text) for text in texts])).tolist()


@pytest.mark.parametrize("number", [20260229.0, 20261301.0, 20260302.5, 20260302246000.0, 5.0])
def test_other_numbers_are_no_dates(number: float) -> None:
    """No month 13, no 29 February of a year that has none, no hour 24."""
    assert np.isnan(compact_seconds(np.array([number]))).all()


def test_no_order_reads_both() -> None:
    """Two numbers above 12 in different places contradict each other."""
    assert frozenset() == orders_of(["13/02/2026", "02/13/2026"])
    assert {MONTH_FIRST} == orders_of(["03/02/2026", "02/13/2026"])


def test_a_column_of_true_and_false_is_a_channel(tmp_path: Path) -> None:
    """As in Parquet, also if it is called time."""
    path = tmp_path / "a.csv"
    path.write_text("on time,a,b\nTrue,1,2\nFalse,2,5\nTRUE,3,4\n")

    recordings = open_recordings([path], ReadingOptions())

    assert ("on time", "a", "b") == recordings.names
    assert [1.0, 0.0, 1.0] == [x for each in recordings.rows() for x in each.rows[:, 0].tolist()]


ONE_EACH = [f"2026-03-14 {i // 60:02}:{i % 60:02}" for i in range(600)]


def notes_of(path: Path, texts: Sequence[str], **options: object) -> str:
    """All notes of a file with these times."""
    lines = [f"{time},{i % 7},{i % 5},m{i % 3}\n" for i, time in enumerate(texts)]
    path.write_text("time,a,b,pump\n" + "".join(lines))
    found = open_recordings([path], ReadingOptions(**options))  # type: ignore[arg-type]
    return "; ".join(found.notes)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["%.5E" % (1772409600000 + 60000 * i) for i in range(600)], "256 rows have 2 times, 166"),
        ([str(float(np.float32(1772409600 + 10 * i))) for i in range(600)], "256 rows have 21 ti"),
        ([f"2026-03-14 10:{i // 60:02}" for i in range(600)], "256 rows have 5 times, 60 of them"),
        (["2026-03-14"] * 600, "256 rows have 1 time, 256 of them one"),
    ],
    ids=["a spreadsheet's digits", "float32", "seconds by the minute", "dates alone"],
)
def test_rows_that_share_times_are_noted(tmp_path: Path, texts: list[str], said: str) -> None:
    """How many rows have how many times: no row then says when it was."""
    assert f"the first {said}" in notes_of(tmp_path / "a.csv", texts)


def test_machines_share_their_times_and_a_doubled_row_is_none(tmp_path: Path) -> None:
    """Rows are compared with those of their own machine, and a few may be twice."""
    three = [time for time in ONE_EACH for _ in range(3)]

    assert "rows have" not in notes_of(tmp_path / "a.csv", ["2026-03-14 00:00", *ONE_EACH])
    assert "rows have" in notes_of(tmp_path / "a.csv", three)
    assert "rows have" not in notes_of(tmp_path / "a.csv", three, node_by="pump")


def test_of_several_columns_of_times_the_one_that_goes_on_is_read(tmp_path: Path) -> None:
    """The start and end of an export stand still, whether they are text or numbers."""
    path = tmp_path / "a.csv"
    for first in ("2026-03-14T00:00:00Z", "1773446400"):
        lines = [f"{first},{time},{i},{i * i}\n" for i, time in enumerate(ONE_EACH)]
        path.write_text("export_time,_time,a,b\n" + "".join(lines))
        found = open_recordings([path], ReadingOptions())

        assert 60.0 == np.diff(np.concatenate([each.times for each in found.rows()])).max()
        assert any("column export_time holds times too" in note for note in found.notes)
        assert not any("first that goes on" in note for note in found.notes)


def test_of_several_that_go_on_the_first_is_read_and_named(tmp_path: Path) -> None:
    """Nobody knows which is meant: when it was measured, or when it came."""
    path = tmp_path / "a.csv"
    lines = [f"{time}:01,{time}:03,{i},{i * i}\n" for i, time in enumerate(ONE_EACH)]
    path.write_text("measured_at,received_at,a,b\n" + "".join(lines))
    found = open_recordings([path], ReadingOptions())

    assert 1.0 == next(iter(found.rows())).times[0] % 60
    assert any("times are of column measured_at, the first that goes on" in n for n in found.notes)


def test_parquet_has_several_columns_of_times(tmp_path: Path) -> None:
    """Columns of a time type are chosen by the same rule, and dates alone are noted."""
    pa = pytest.importorskip("pyarrow")
    at = np.datetime64("2026-03-14", "us") + np.arange(600) * 60_000_000
    numbers = {"a": np.arange(600.0) % 7, "b": np.arange(600.0) % 5}
    start = np.full(600, at[0])
    pa.parquet.write_table(pa.table({"start": start, "at": at, **numbers}), tmp_path / "a.parquet")
    days = {"date": pa.array(at).cast(pa.date32()), **numbers}
    pa.parquet.write_table(pa.table(days), tmp_path / "b.parquet")

    several = open_recordings([tmp_path / "a.parquet"], ReadingOptions())

    assert 60.0 == np.diff(np.concatenate([each.times for each in several.rows()])).max()
    alone = open_recordings([tmp_path / "b.parquet"], ReadingOptions())
    assert "the first 256 rows have 1 time" in "; ".join(alone.notes)


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
    """Libraries would read some of these."""
    assert np.isnan(to_seconds([field])[0])
    assert np.isnan(to_seconds(["2026-11-23", field])[1])
