"""Times as people export them become the same seconds, or the files are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.datasets.day_order import DAY_FIRST, MONTH_FIRST, orders_of, slashed_seconds
from submerge_fleet.files import ReadingOptions, open_recordings
from submerge_fleet.files.time_form import compact_seconds, parsed_by

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

    assert "column time has dates alone, and rows share them: if another column has" in note


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
