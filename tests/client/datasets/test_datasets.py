"""The loaders: what they read, what they leave out, and how they refuse."""

from __future__ import annotations

import gzip
import io
import math
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.datasets import Flow, Table, read
from support.data import shared

QUANTITIES = ("temperature", "humidity", "light", "voltage")
LINE = "2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397\n"

finite = st.floats(allow_nan=False, allow_infinity=False)
readings = st.floats(allow_infinity=False)
shapes = st.tuples(st.integers(1, 6), st.integers(2, 5))


def matrices(elements: st.SearchStrategy[float] = readings) -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(np.float64, shapes, elements=elements)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refused(*paths: Path, quantity: str = "temperature") -> str:
    """Return the message of the UsageError that reading these files must raise."""
    with pytest.raises(UsageError) as caught:
        read(paths, quantity=quantity)
    message = str(caught.value)
    assert "\n" not in message, "one line, whatever the file holds"
    return message


def written(X: np.ndarray, separator: str, missing: str = "nan", end: str = "\n") -> bytes:
    fields = [[missing if math.isnan(x) else repr(float(x)) for x in row] for row in X]
    return "".join(separator.join(row) + end for row in fields).encode()


def gzipped(content: bytes) -> bytes:
    # Without the clock: parameters of tests are part of their names.
    return gzip.compress(content, mtime=0)


def npy(X: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


# Round trips


@settings(max_examples=25)
@given(X=matrices(), form=st.sampled_from(["spaces", "tabs", "comma", "semicolon", "npy"]))
@example(X=np.array([[1e308, -0.0], [5e-324, np.nan]]), form="comma")
def test_a_matrix_reads_back_bit_for_bit_plain_and_gzip(
    folder: Path, X: np.ndarray, form: str
) -> None:
    """Whatever the format, and packed or not, the numbers come back as they were written."""
    separators = {"spaces": "  ", "tabs": "\t", "comma": ",", "semicolon": ";"}
    content = npy(X) if form == "npy" else written(X, separators[form])
    plain, packed = folder / "matrix", folder / "packed"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content, 1))

    np.testing.assert_array_equal(X, read([plain]).rows)
    np.testing.assert_array_equal(X, read([packed]).rows)
    assert tuple(f"x{i}" for i in range(X.shape[1])) == read([plain]).names


@settings(max_examples=25)
@given(X=matrices(finite), separator=st.sampled_from([" ", ",", ";"]))
def test_the_careful_pass_reads_what_the_fast_one_does(
    folder: Path, X: np.ndarray, separator: str
) -> None:
    """A last row of NA, which NumPy's parser refuses, changes no number above it."""
    path = folder / "careful"
    path.write_bytes(written(X, separator) + written(X[:1] * np.nan, separator, "NA"))

    table = read([path])

    np.testing.assert_array_equal(X, table.rows[:-1])
    assert np.isnan(table.rows[-1]).all()


@settings(max_examples=25)
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1),
        min_size=2,
        max_size=4,
        unique=True,
    ),
    delimiter=st.sampled_from(",;"),
)
def test_names_in_quotes_come_back(folder: Path, names: list[str], delimiter: str) -> None:
    """A quoted header survives commas, quotes and any alphabet."""
    path = folder / "names.csv"
    # One name that is surely text: `"1";"2"` would be a row of numbers.
    header = ["a reading", *names]
    quoted = delimiter.join('"' + name.replace('"', '""') + '"' for name in header)
    numbers = delimiter.join("1" for _ in header)
    path.write_text(f"{quoted}\n{numbers}\n", encoding="utf-8")

    assert tuple(header) == read([path]).names


@pytest.mark.parametrize("dtype", ["?", "u1", ">i2", "<i8", "f2", ">f4", "f8", "g"])
def test_npy_of_any_real_dtype_becomes_float64(file, dtype) -> None:
    """Integers, bools, either byte order and Fortran order are all the same matrix."""
    X = np.asfortranarray([[1, 0, 1], [0, 1, 1]], dtype=dtype)

    rows = read([file("matrix.npy", npy(X))]).rows

    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(X.astype(float), rows)


# Text in all its spellings


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]], id="header"),
        pytest.param("1,2\n3,4", [[1, 2], [3, 4]], id="no newline at the end"),
        pytest.param("a,b\r\n1,2\r\n\r\n3,4\r\n", [[1, 2], [3, 4]], id="Windows, blank line"),
        pytest.param("a,b\r1,2\r3,4\r", [[1, 2], [3, 4]], id="old Macintosh"),
        pytest.param("\ufeffa,b\n1,2\n3,4\n", [[1, 2], [3, 4]], id="byte order mark"),
        pytest.param('a,b\n"1","2"\n"3", "4"\n', [[1, 2], [3, 4]], id="quoted numbers"),
        pytest.param('"a, c","b"\n1,2\n3,4\n', [[1, 2], [3, 4]], id="separator in quotes"),
        pytest.param('"a\nc",b\n\n1,2\n3,4\n', [[1, 2], [3, 4]], id="newline in quotes"),
        pytest.param("a;b\n1;2\n3;4\n", [[1, 2], [3, 4]], id="semicolons"),
        pytest.param("a b\n1 2\n3 4\n", [[1, 2], [3, 4]], id="whitespace with a header"),
        pytest.param(" 1\t 2 \n\n+3e0\t.4E1\n", [[1, 2], [3, 4]], id="ragged whitespace"),
        pytest.param("1,2\n,4\n", [[1, 2], [np.nan, 4]], id="empty field"),
        pytest.param("1,2\n NA ,4\n", [[1, 2], [np.nan, 4]], id="NA with blanks"),
        pytest.param("NA,2\n3,?\n", [[np.nan, 2], [3, np.nan]], id="missing in the first row"),
        pytest.param("nan,2\nNaN,-nan\n", [[np.nan, 2], [np.nan, np.nan]], id="nan"),
        pytest.param("1e-400,2\n", [[0, 2]], id="underflow"),
    ],
)
def test_text_is_read_however_it_is_spelt(file, content, expected) -> None:
    """Line ends, quotes, blanks and ways to say "missing" make no difference."""
    np.testing.assert_array_equal(expected, read([file("some.csv", content)]).rows)


def test_the_header_gives_the_names(file) -> None:
    """Names come from the header without its blanks; a nameless column is called by number."""
    table = read([file("some.csv", "temp, humidity ,\n1,2,3\n")])

    assert table.names == ("temp", "humidity", "x2")
    assert table.notes == ("column 3 has no name in line 1 of some.csv: called x2",)


def test_a_first_row_with_numbers_and_text_is_a_header_but_said(file) -> None:
    """It may be a typing error in the data: the note lets the reader see it."""
    table = read([file("some.csv", "2019,2O20\n1,2\n")])

    assert table.names == ("2019", "2O20")
    assert table.notes == ("line 1 of some.csv read as column names, though it has numbers: 2019",)


def test_missing_values_are_counted(file) -> None:
    """The notes say how many values are missing, and which columns have none at all."""
    table = read([file("some.csv", "a,b\n1,\n,\n")])

    assert table.notes == (
        "3 of 4 values are missing in some.csv",
        "no value at all in some.csv for b",
    )


# Several files


def test_files_of_the_same_columns_are_stacked(file) -> None:
    """Rows keep the order of the files, and notes of all files are kept."""
    paths = [file("one.csv", "a,b\n1,2\n"), file("two.csv.gz", gzip.compress(b"a;b\n3;\n4;5\n"))]

    table = read(paths)

    np.testing.assert_array_equal([[1, 2], [3, np.nan], [4, 5]], table.rows)
    assert table.names == ("a", "b")
    assert table.notes == ("1 of 4 values is missing in two.csv.gz",)


def test_files_of_different_widths_are_refused(file) -> None:
    """The message names both files and both widths."""
    message = refused(file("one.csv", "1,2\n"), file("two.csv", "1,2,3\n"))

    assert "two.csv: expected 2 columns as in " in message
    assert "one.csv, got 3" in message


def test_files_of_different_names_are_refused(file) -> None:
    """The message names both files and the first column that differs."""
    message = refused(file("one.csv", "a,b\n1,2\n"), file("two.csv", "a,c\n1,2\n"))

    assert "two.csv, column 2: expected the name 'b' as in " in message
    assert "one.csv, got 'c'" in message


def test_no_file_at_all_is_refused() -> None:
    """An empty list is the caller's mistake, not an empty table."""
    assert refused() == "expected at least one file to read, got none; name one"


# What is no table


@pytest.mark.parametrize(
    ("name", "content", "place", "got"),
    [
        ("a.csv", "1,2\n3,4\n5\n", "a.csv, line 3: expected 2 fields as in line 1", "got 1"),
        ("a.csv", "\na,b\n1,2,3\n", "a.csv, line 3: expected 2 fields as in line 2", "got 3"),
        ("a.dat", "1 2\n\n3 4 5\n", "a.dat, line 3: expected 2 fields as in line 1", "got 3"),
        ("a.csv", "a,b\n1,2\n3,x\n", "a.csv, line 3, column 2 (b): expected a number", "got 'x'"),
        ("a.csv", "1,2\n3_0,4\n", "a.csv, line 2, column 1: expected a number", "got '3_0'"),
        ("a.csv", "1,2\n٣,4\n", "a.csv, line 2, column 1: expected a number", "got '٣'"),
        ("a.csv", "1;2\n1,5;2\n", "a.csv, line 2, column 1: expected a number", "got '1,5'"),
        ("a.csv", "1,2\n0x1,2\n", "a.csv, line 2, column 1: expected a number", "got '0x1'"),
        ("a.csv", '"a\nb",c\n\n1,2\n3,x\n', "a.csv, line 5, column 2 (c)", "got 'x'"),
        ("a.csv", '"a\nb",c\nx,1\n', "a.csv, line 3, column 1 (a b)", "got 'x'"),
        ("a.csv", '1,2\n3,"4\n5,6\n', "a.csv, line 2, column 2", "got '4\\n5,6"),
        ("a.csv", '1,2\n3,"' + "4\n" * 70_000, "a.csv, line 2: expected a row", "never closed"),
        ("a.csv", "1,2\n3," + "z" * 999 + "\n", "a.csv, line 2, column 2", "got '" + "z" * 39),
        ("a.dat", "1 b\n2 3\n", "a.dat, line 1, column 2: expected a number", "got 'b'"),
        ("a.csv", "1,2\n3,inf\n", "a.csv, line 2, column 2: expected a finite", "got 'inf'"),
        ("a.csv", "a,b\n\n-Infinity,1\n", "a.csv, line 3, column 1 (a)", "got '-Infinity'"),
        ("a.csv", "a,b\n1,2\n,1e400\n", "a.csv, line 3, column 2 (b)", "got '1e400'"),
        ("a.dat", "1 2\n-1e400 NA\n", "a.dat, line 2, column 1: expected a finite", "got '-1e400'"),
        ("a.csv", "inf,2\n3,4\n", "a.csv, line 1, column 1: expected a finite", "got 'inf'"),
        ("a.csv", "a,b\n", "a.csv: expected rows of numbers below line 1", "a header ('a', 'b')"),
        ("a.csv", "a,b,a\n1,2,3\n", "a.csv: expected different names", "'a' for columns 1 and 3"),
        ("a.csv", "a\n1\n2\n", "a.csv: expected at least two columns", "a matrix of one column"),
        ("a.dat", "1\n2\n", "a.dat: expected at least two columns", "a matrix of one column"),
        ("a.csv", "", "a.csv: expected rows of numbers", "got an empty file"),
        ("a.csv", " \n\n", "a.csv: expected rows of numbers", "got an empty file"),
        ("a.gz", gzipped(b""), "a.gz: expected rows of numbers", "got an empty file"),
        ("a.dat", b"1 2\n\x00 3\n", "a.dat: expected UTF-8 text or .npy", "a zero byte"),
        ("a.dat", b"1 2\n" * 20_000 + b"1 \x002\n", "a.dat, line 20001: ", "a zero byte"),
        ("a.csv", "°C,b\n1,2\n".encode("latin-1"), "a.csv, line 1: ", "byte 0xb0 is not UTF-8"),
        ("a.csv", b"a,b\n1,\xff\n", "a.csv, line 2: ", "byte 0xff is not UTF-8"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "a.csv: expected a table", "UTF-16 text; save it"),
        ("Motes.zip", b"PK\x03\x04\0", "Motes.zip: ", "got a zip archive; unpack it first"),
        ("a.gz", gzipped(gzipped(b"1 2\n")), "a.gz: ", "got gzip inside gzip"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(file, name, content, place, got) -> None:
    """The message says which file, where in it as an editor counts, and what stood there."""
    message = refused(file(name, content))

    assert place in message
    assert got in message


def _damaged(packed: bytes) -> bytes:
    # In the last block, so that wrong rows come first and the checksum only then.
    middle = len(packed) * 3 // 4
    return packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :]


NUMBERS = gzipped(b"".join(b"%d %d\n" % (i * 7919 % 10007, i) for i in range(5000)))


@pytest.mark.parametrize(
    ("content", "got"),
    [
        pytest.param(NUMBERS[:2], "one that breaks off", id="nothing but the mark"),
        pytest.param(NUMBERS[: len(NUMBERS) // 2], "one that breaks off", id="half"),
        pytest.param(NUMBERS[:-3], "one that breaks off", id="all but the checksum"),
        pytest.param(_damaged(NUMBERS), "a damaged one", id="one byte wrong"),
        pytest.param(NUMBERS[:-8] + b"\0\0\0\0" + NUMBERS[-4:], "a damaged one", id="checksum"),
        pytest.param(NUMBERS[:9] + b"\7" * 99, "a damaged one", id="no deflate stream"),
        pytest.param(NUMBERS + b"more", "a damaged one", id="something behind it"),
    ],
)
def test_a_bad_gzip_is_called_that(file, content, got) -> None:
    """Never are its wrong rows blamed, and never are the good ones taken for all."""
    message = refused(file("numbers.gz", content))

    assert f"numbers.gz: expected a whole gzip file, got {got}" in message
    assert message.endswith("; copy it again")


def test_a_bad_gzip_of_a_log_or_npy_is_called_that(file) -> None:
    """Logs forgive bad lines, and .npy has a length of its own; neither hides the damage."""
    log = gzip.compress((LINE + LINE.replace(" 1 ", " 2 ")).encode() * 50)
    for content in (log, gzip.compress(npy(np.ones((50, 2))))):
        assert "x.gz: expected a whole gzip file" in refused(file("x.gz", content[:-12]))


@pytest.mark.parametrize(
    ("content", "got"),
    [
        pytest.param(npy(np.ones(3)), "two dimensions), got shape (3,)", id="vector"),
        pytest.param(npy(np.ones((2, 2, 2))), "two dimensions), got shape (2, 2, 2)", id="cube"),
        pytest.param(npy(np.array([[1, "a"]], dtype=object)), "got dtype object", id="object"),
        pytest.param(npy(np.ones((2, 2), complex)), "got dtype complex128", id="complex"),
        pytest.param(npy(np.array([["a", "b"]])), "got dtype <U1", id="strings"),
        pytest.param(npy(np.zeros(3, [("a", "f8")])), "got dtype [('a', '<f8')]", id="records"),
        pytest.param(npy(np.ones((9, 9)))[:-9], "shape (9, 9), got a file that breaks", id="cut"),
        pytest.param(npy(np.ones((9, 9)))[:40], "a header that cannot be read", id="half a header"),
        pytest.param(
            npy(np.ones((9, 9))).replace(b"'shape': (", b"'shape'  \0"),
            "a header that cannot be read",
            id="damaged header",
        ),
        pytest.param(b"\x93NUMPY\x03\x00....", "a header that cannot be read", id="version 3"),
        pytest.param(b"1 2\n3 4\n", "a header that cannot be read", id="text by that name"),
        pytest.param(npy(np.ones((0, 2))), "a matrix of 2 columns without rows", id="no rows"),
        pytest.param(npy(np.ones((2, 1))), "got a matrix of one column", id="one column"),
        pytest.param(npy(np.ones((2, 0))), "got a matrix without columns", id="no columns"),
        pytest.param(
            npy(np.array([[1, 2], [3, -np.inf]])), "row 2, column 2: expected a finite", id="inf"
        ),
        pytest.param(
            npy(np.ones((2, 2))).replace(b"(2, 2), }             ", b"(2, 9999999999999), } "),
            "that fits into memory, got shape (2, 9999999999999)",
            id="146 TiB",
        ),
    ],
)
def test_an_npy_that_is_no_real_matrix_is_refused(file, content, got) -> None:
    """Shape, dtype and length are checked, plain and gzip, and nothing is unpickled."""
    for name, stored in (("a.npy", content), ("a.npy.gz", gzip.compress(content))):
        message = refused(file(name, stored))

        assert name in message
        assert got in message


def test_a_longdouble_beyond_float64_is_an_infinity(file) -> None:
    """It overflows without a warning, and is refused as it was written."""
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long double is double here")
    X = np.array([[1, 2], [3, np.longdouble("1e400")]], dtype=np.longdouble)

    message = refused(file("a.npy", npy(X)))

    assert "a.npy, row 2, column 2: expected a finite number, got 1e+400" in message


def test_what_is_no_file_is_refused(tmp_path) -> None:
    """Missing files, directories, pipes and unreadable files each get their own words."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("1 2\n")
    os.mkfifo(tmp_path / "pipe")
    for name, got in {
        "nope.csv": "expected a file, got nothing of that name; check the path",
        "file/nope.csv": "expected a file, got nothing of that name; check the path",
        ".": "expected a file, got a directory; name its files",
        "pipe": "expected a file, got a pipe or device; save what it yields and name that",
        "loop": "expected a readable file, got the system's answer: Too many levels",
        "n" * 300: "expected a readable file, got the system's answer: File name too long",
    }.items():
        assert f"{tmp_path / name}: {got}" in refused(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(file) -> None:
    """The message has the system's reason."""
    path = file("secret.csv", "1,2\n")
    path.chmod(0)

    assert "secret.csv: expected a readable file" in refused(path)
    assert "Permission denied" in refused(path)


def test_an_unknown_quantity_is_refused_with_the_nearest(file) -> None:
    """A typing error is found whatever the files are."""
    path = file("a.csv", "1,2\n")

    assert refused(path, quantity="temprature") == (
        "quantity must be one of temperature, humidity, light, voltage, all, got 'temprature';"
        " did you mean 'temperature'?"
    )
    assert refused(path, quantity="42").endswith("got '42'")


# The Intel Lab log


def line(epoch: object, mote: object, *fields: object) -> str:
    return " ".join(map(str, ("2004-03-31", "03:38:15.757551", epoch, mote, *fields))) + "\n"


def tabulated(log: list[tuple[int, int, list[float]]], quantity: str) -> Table:
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
    return Table(tuple(names), np.array(rows), ())


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

    table = read([path], quantity=quantity)

    assert expected.names == table.names
    np.testing.assert_array_equal(expected.rows, table.rows)


def test_a_log_is_a_row_an_epoch_and_a_column_a_mote(file) -> None:
    """The line in Intel's description lands where it belongs, packed or not."""
    log = LINE + line(7, 54, 20.5, 40, 500, 2.6) + line(2, 54, 19.5, 41, 501, 2.7)
    for content in (log.encode(), gzip.compress(log.replace("\n", "\r\n").encode())):
        table = read([file("log", content)])

        assert table.names == ("mote1", "mote54")
        np.testing.assert_array_equal([[122.153, 19.5], [np.nan, 20.5]], table.rows)
        assert table.notes == ("1 of 4 values is missing in log",)


def test_all_quantities_stand_side_by_side(file) -> None:
    """With "all", each mote has four columns, in the order of the log."""
    table = read([file("log.txt", LINE + line(2, 3, 1, 2, 3, 4))], quantity="all")

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

    table = read([file("log.txt", log)], quantity="all")

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

    table = read([file("lab.txt", log)])

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

    table = read([file("lab.txt", log)])

    np.testing.assert_array_equal([[11, 20], [12, np.nan]], table.rows)
    assert "1 repeated reading in lab.txt: the last one counts" in table.notes


def test_a_log_may_begin_with_a_bad_line(file) -> None:
    """One broken line at the top does not make it another format."""
    table = read([file("lab.txt", "03:38:15.75 2 1\n" + LINE + line(2, 2, 1))])

    np.testing.assert_array_equal([[122.153, 1]], table.rows)


def test_a_log_without_the_quantity_is_refused(file) -> None:
    """The message says what was left out, so that the reader sees why nothing is left."""
    message = refused(file("lab.txt", line(1, 1, 10) + line(1, 99, 1, 2, 3)), quantity="light")

    assert "lab.txt: expected readings of light, got none: 1 row of an unknown mote left" in message
    assert "1 row of lab.txt without light left out" in message


def test_a_log_of_one_mote_is_refused(file) -> None:
    """One mote is a matrix of one column."""
    assert "lab.txt: expected at least two columns" in refused(file("lab.txt", LINE))


def test_dates_alone_do_not_make_a_log(file) -> None:
    """Another format with dates is refused at the date, not as a log of broken lines."""
    message = refused(file("a.dat", "2004-03-31 03:38:15 20.5 40.1\n" * 3))

    assert "a.dat, line 1, column 1: expected a number, got '2004-03-31'" in message


# The shared data sets


@pytest.mark.slow
def test_light_is_read_as_the_papers_do() -> None:
    """The SPIRIT set has the shape, range and share of zeros that its README states."""
    table = read([shared("motes/light.dat.gz")])

    assert table.rows.shape == (7712, 48)
    assert table.names[:2] == ("x0", "x1")
    assert table.notes == ()
    assert table.rows[0, 0] == 45.08000183
    assert round(float(np.mean(table.rows == 0)), 3) == 0.081
    assert 1847 <= table.rows.max() < 1848


def test_wine_has_its_header() -> None:
    """A CSV from UCI, header and all."""
    table = read([shared("wine.csv")])

    assert table.rows.shape == (1599, 11)
    assert table.names[0] == "fixed acidity"


def test_a_class_label_is_refused_at_its_column() -> None:
    """UCI's segmentation set ends in a column of text."""
    message = refused(shared("segment.csv"))

    assert "segment.csv, line 2, column 20 (class): expected a number, got 'path'" in message


def test_insurance_is_read() -> None:
    """Tabs and Windows line ends, 85 columns."""
    assert read([shared("insurance_eval.txt.gz")]).rows.shape == (4000, 85)


def decimals(n: int = 30, first: str = "", mark: str = ",") -> str:
    """Lines of four decimals, behind an index or times if there is a heading for them."""
    rows = np.random.default_rng(3).normal(20, 3, (n, 4))
    before = {"index": "{0}" + mark, "time": "2026-03-{1:02}" + mark, "": ""}[first]
    fields = (mark.join(f"{value:.4f}" for value in row) for row in rows)
    return "".join(f"{before.format(i, i + 1)}{line}\n" for i, line in enumerate(fields))


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("heading", "first"),
    [
        ('"101","102","103","104"', ""),
        ('"0.5","1.0","1.5","2.0"', ""),
        (",101,102,103,104", "index"),
        (",2019,2020,2021,2022", "index"),
        (",101,102,103,104", "time"),
        (",0.5,1.0,1.5,2.0", "time"),
    ],
)
def test_numbers_that_are_set_off_are_headings(
    tmp_path: Path, mark: str, heading: str, first: str
) -> None:
    """Sensors are called by numbers: quoted alone, or behind an empty field."""
    path = tmp_path / "a.csv"
    path.write_text(heading.replace(",", mark) + "\n" + decimals(first=first, mark=mark))

    found = Flow.of(path)

    names = [name.strip('"') for name in heading.split(",")]
    assert tuple(names if names[0] else ["x0", *names[1:]]) == found.names
    assert any("read as column names, though it has numbers" in note for note in found.notes)
    assert 30 == sum(map(len, found.blocks([1, 2])))


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
@pytest.mark.parametrize("heading", ["101,102,103,104", "2019,2020,2021,2022", "7,3,12,5"])
def test_whole_numbers_above_decimals_are_refused(tmp_path: Path, mark: str, heading: str) -> None:
    """They may be names, or a row: nothing says which, and both are one word away."""
    path = tmp_path / "a.csv"
    path.write_text("\n" + heading.replace(",", mark) + "\n" + decimals(mark=mark))

    with pytest.raises(UsageError, match=r"line 2: .* above decimals, as headings are; if"):
        Flow.of(path)


@pytest.mark.parametrize(
    "first",
    [
        "20.0,21.0,5.0,7.0\n",  # written as the others
        "0,0,0,0\n",  # a start: names are different
        "20,21.5,5,7\n",
        "NA,21,5,7\n",
        "2026-03-01,21,5,7\n",
        '"20.1","21","5","7"\n' + '"20.2","21.5","5","7"\n' * 30,  # all are quoted
        "20,21,5,7\n20.5,21.25,5,7.5\n",  # whole numbers come again
        ",21.1,5.1,7.1\n",  # a gap
    ],
)
def test_a_row_of_numbers_is_a_row(tmp_path: Path, first: str) -> None:
    """What looks like the rows below is one of them."""
    path = tmp_path / "a.csv"
    path.write_text(first + decimals())

    found = Flow.of(path)

    assert not found.named
    assert 30 + first.count("\n") == sum(map(len, found.blocks([1, 2])))
