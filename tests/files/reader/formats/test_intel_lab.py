"""The Intel Lab log: what becomes of its lines, and which are left out."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_files.reader.formats import intel_lab
from submerge_files.reader.formats.intel_lab import MoteLog
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.remote_path import source_of

QUANTITIES = ("temperature", "humidity", "light", "voltage")
LINE = "2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def read(path: Path, quantity: str = "temperature") -> MoteLog:
    return intel_lab.read(source_of(path), quantity)


def line(epoch: object, mote: object, *fields: object) -> str:
    return " ".join(map(str, ("2004-03-31", "03:38:15.757551", epoch, mote, *fields))) + "\n"


def tabulated(log: list[tuple[int, int, list[float]]], quantity: str) -> MoteLog:
    """Slow twin of the log's reader: one dictionary, one reading at a time."""
    wanted = QUANTITIES if quantity == "all" else (quantity,)
    cells: dict[tuple[int, int, str], float] = {}
    for epoch, mote, values in log:
        for name, value in zip(QUANTITIES, values, strict=True):
            if name in wanted and not math.isnan(value):
                cells[epoch, mote, name] = value
    epochs = sorted({epoch for epoch, _, _ in cells})
    columns = [(m, name) for m in sorted({mote for _, mote, _ in cells}) for name in wanted]
    rows = [[cells.get((e, m, name), math.nan) for m, name in columns] for e in epochs]
    names = [f"mote{m}.{name}" if quantity == "all" else f"mote{m}" for m, name in columns]
    return MoteLog(tuple(names), np.array(rows), [], ())


@settings(max_examples=25)
@given(
    log=st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from([1, 2, 30, 54]),
            st.lists(st.just(math.nan) | st.integers(-9, 99).map(float), min_size=4, max_size=4),
        ),
        max_size=25,
    ),
    quantity=st.sampled_from([*QUANTITIES, "all"]),
)
def test_a_log_in_any_order_becomes_its_table(
    folder: Path, log: list[tuple[int, int, list[float]]], quantity: str
) -> None:
    """Unsorted, repeated and incomplete readings agree with a dictionary's answer."""
    log = [*log, (2, 7, [1.0] * 4), (2, 8, [2.0] * 4)]
    lines = []
    for epoch, mote, values in log:
        fields = ["" if math.isnan(value) else value for value in values]
        lines.append(line(epoch, mote, *fields))
    path = folder / "log.txt"
    path.write_text("".join(lines))
    expected = tabulated(log, quantity)

    table = read(path, quantity=quantity)

    assert expected.names == table.names
    np.testing.assert_array_equal(expected.rows, table.rows)


def test_a_log_is_a_row_an_epoch_and_a_column_a_mote(file) -> None:
    """The line in Intel's description lands where it belongs, packed or not."""
    log = LINE + line(7, 54, 20.5, 40, 500, 2.6) + line(2, 54, 19.5, 41, 501, 2.7)
    for content in (log.encode(), gzip.compress(log.replace("\n", "\r\n").encode())):
        table = read(file("log", content))

        assert table.names == ("mote1", "mote54")
        np.testing.assert_array_equal([[122.153, 19.5], [np.nan, 20.5]], table.rows)
        assert ["2004-03-31 03:38:15.757551"] * 2 == table.stamps


def test_all_quantities_stand_side_by_side(file) -> None:
    """With "all", each mote has four columns, in the order of the log."""
    table = read(file("log.txt", LINE + line(2, 3, 1, 2, 3, 4)), quantity="all")

    assert table.names == tuple(f"mote{m}.{name}" for m in (1, 3) for name in QUANTITIES)
    np.testing.assert_array_equal([[122.153, -3.91901, 11.04, 2.03397, 1, 2, 3, 4]], table.rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("d 00:00:00 5 1 10 20 30 40", [10, 20, 30, 40], id="complete"),
        pytest.param("d 00:00:00 5 1 10 20 30", [10, 20, 30, np.nan], id="short"),
        pytest.param("d 00:00:00 5 1 10", [10, np.nan, np.nan, np.nan], id="very short"),
        pytest.param("d 00:00:00 5 1 10 20  40", [10, 20, np.nan, 40], id="light missing inside"),
        pytest.param("d 00:00:00 5 1   30 40", [np.nan, np.nan, 30, 40], id="two missing inside"),
        pytest.param("d 00:00:00 5 1    40", [np.nan] * 3 + [40], id="voltage alone"),
        pytest.param("d 00:00:00 5 1 10 20 ", [10, 20, np.nan, np.nan], id="blank at the end"),
        pytest.param("d  00:00:00   5  1  10 20  30 40", [10, 20, 30, 40], id="padded"),
        pytest.param("d\t00:00:00\t5\t1\t10\t\t30\t40", [10, np.nan, 30, 40], id="tabs"),
        pytest.param("d 00:00:00 5 1 10 nan 30 40", [10, np.nan, 30, 40], id="nan"),
    ],
)
def test_a_missing_field_leaves_the_others_in_their_places(file, text, expected) -> None:
    """A voltage never turns into a light because the light is missing."""
    log = line(5, 2, 1, 2, 3, 4) + text.replace("d", "2004-02-28") + "\n"

    table = read(file("log.txt", log), quantity="all")

    np.testing.assert_array_equal([[*expected, 1, 2, 3, 4]], table.rows)


def test_bad_lines_are_left_out_and_counted(file) -> None:
    """Nothing of a bad line enters the table; each kind is counted in the notes."""
    good = [line(1, 1, 10, 20, 30, 40), line(1, 2, 11, 21, 31, 41), "\n"]
    truncated = ["2004-03-31 03:38:15.75 55048\n", "2004-03-31 03:38:15 9 \n", "2004-03-31\n"]
    broken = [
        line("x", 1, 1, 2, 3, 4),
        line(1.5, 1, 1, 2, 3, 4),
        line(-1, 1, 1, 2, 3, 4),
        line(10**30, 1, 1, 2, 3, 4),
        line(1, "1_0", 1, 2, 3, 4),
        line(1, 1, 1, 2, 3, "4.0.0"),
        line(1, 1, 1, 2, 3, 4, 5),
        line(1, 1, "inf", 2, 3, 4),
        line(1, 1, 1, 2, 3, "-1e400"),
        line(1, 1, "\udcff", 2, 3, 4),
        line(1, 1, "1\0", 2, 3, 4),
        "2004-03-31 03:38:1" + LINE,
    ]
    unknown = [line(1, 0, 1, 2, 3, 4), line(1, 55, 1, 2, 3, 4), line(1, 65407, 1), line(1, -3, 1)]
    silent = [line(1, 1), line(2, 5)]
    bad = truncated + broken + unknown + silent
    # Good lines stand between bad ones: none spoils its neighbours.
    log = "".join([*bad[:9], good[0], *bad[9:], *good[1:]]).encode(errors="surrogateescape")

    table = read(file("lab.txt", log))

    assert table.names == ("mote1", "mote2")
    np.testing.assert_array_equal([[10, 11]], table.rows)
    assert table.notes == (
        "3 truncated rows left out of lab.txt",
        "12 broken rows left out of lab.txt",
        "4 rows of unknown motes left out of lab.txt",
        "2 rows of lab.txt without temperature left out",
    )


def test_the_last_reading_of_a_mote_in_an_epoch_counts(file) -> None:
    """Repeated readings are counted; one without the quantity does not take its place."""
    log = line(1, 1, 10) + line(1, 2, 20) + line(1, 1, 11) + line(1, 1) + line(2, 1, 12)

    table = read(file("lab.txt", log))

    np.testing.assert_array_equal([[11, 20], [12, np.nan]], table.rows)
    assert "1 repeated reading in lab.txt: the last one counts" in table.notes


def test_a_log_may_begin_with_a_bad_line(file) -> None:
    """One broken line at the top does not make it another format."""
    table = read(file("lab.txt", "03:38:15.75 2 1\n" + LINE + line(2, 2, 1)))

    np.testing.assert_array_equal([[122.153, 1]], table.rows)


def test_a_log_without_the_quantity_is_refused(file) -> None:
    """The message says what was left out, so that the reader sees why nothing is left."""
    path = file("lab.txt", line(1, 1, 10) + line(1, 99, 1, 2, 3))

    with pytest.raises(UsageError) as caught:
        read(path, quantity="light")

    message = str(caught.value)
    assert "lab.txt: expected readings of light, got none: 1 row of an unknown mote left" in message
    assert "1 row of lab.txt without light left out" in message


def test_a_bad_gzip_is_called_that(file) -> None:
    """Logs forgive bad lines, which does not hide the damage."""
    log = gzip.compress((LINE + LINE.replace(" 1 ", " 2 ")).encode() * 50)

    with pytest.raises(UsageError, match=r"x.gz: expected a whole gzip file"):
        read(file("x.gz", log[:-12]))


@pytest.mark.parametrize(("quantity", "end"), [("temprature", "'temperature'?"), ("42", "'42'")])
def test_an_unknown_quantity_is_refused_with_the_nearest(file, quantity, end) -> None:
    """A typing error is found whatever the files are."""
    with pytest.raises(UsageError) as caught:
        open_file(file("a.csv", "1,2\n"), quantity=quantity)

    assert "temperature, humidity, light, voltage, all, got" in str(caught.value)
    assert str(caught.value).endswith(end)


def test_dates_alone_do_not_make_a_log(file) -> None:
    """Another table may begin with them."""
    names = [c.name for c in open_file(file("a", "2004-03-31 03:38:15 20.5 40.1\n" * 3)).columns]

    assert ["x0", "x1", "x2", "x3"] == names
