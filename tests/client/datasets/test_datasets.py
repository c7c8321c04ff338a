"""Text and `.npy` on a device: what is read, and how a mistake is refused."""

from __future__ import annotations

import gzip
import io
import math
import os
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.datasets import Flow

finite = st.floats(allow_nan=False, allow_infinity=False)
readings = st.floats(allow_infinity=False)
shapes = st.tuples(st.integers(1, 6), st.integers(2, 5))


def matrices(elements: st.SearchStrategy[float] = readings) -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(np.float64, shapes, elements=elements)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


def read(path: Path) -> np.ndarray:
    flow = Flow.of(path)
    return np.concatenate(list(flow.blocks(range(len(flow.names)))))


def refused(path: Path) -> str:
    """Return the message of the UsageError that reading a file must raise."""
    with pytest.raises(UsageError) as caught:
        read(path)
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

    np.testing.assert_array_equal(X, read(plain))
    np.testing.assert_array_equal(X, read(packed))
    assert tuple(f"x{i}" for i in range(X.shape[1])) == Flow.of(plain).names


@settings(max_examples=25)
@given(X=matrices(finite), separator=st.sampled_from([" ", ",", ";"]))
def test_the_careful_pass_reads_what_the_fast_one_does(
    folder: Path, X: np.ndarray, separator: str
) -> None:
    """A last row of NA, which NumPy's parser refuses, changes no number above it."""
    path = folder / "careful"
    path.write_bytes(written(X, separator) + written(X[:1] * np.nan, separator, "NA"))

    rows = read(path)

    np.testing.assert_array_equal(X, rows[:-1])
    assert np.isnan(rows[-1]).all()


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

    assert tuple(header) == Flow.of(path).names


@pytest.mark.parametrize("dtype", ["?", "u1", ">i2", "<i8", "f2", ">f4", "f8", "g"])
def test_npy_of_any_real_dtype_becomes_float64(file, dtype) -> None:
    """Integers, bools, either byte order and Fortran order are all the same matrix."""
    X = np.asfortranarray([[1, 0, 1], [0, 1, 1]], dtype=dtype)

    rows = read(file("matrix.npy", npy(X)))

    assert rows.dtype == np.float64
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
    np.testing.assert_array_equal(expected, read(file("some.csv", content)))


def test_the_header_gives_the_names(file) -> None:
    """Names come from the header without its blanks; a nameless column is called by number."""
    table = Flow.of(file("some.csv", "temp, humidity ,\n1,2,3\n"))

    assert table.names == ("temp", "humidity", "x2")
    assert table.notes == ("column 3 has no name in line 1 of some.csv: called x2",)


def test_a_first_row_with_numbers_and_text_is_a_header_but_said(file) -> None:
    """It may be a typing error in the data: the note lets the reader see it."""
    table = Flow.of(file("some.csv", "2019,2O20\n1,2\n"))

    assert table.names == ("2019", "2O20")
    assert table.notes == ("line 1 of some.csv read as column names, though it has numbers: 2019",)


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
        ("a.csv", "1;2.5\n1,5;2\n", "a.csv, line 2, column 1: expected a number", "got '1,5'"),
        ("a.csv", "1;2,5\n" * 300 + "1.5;2\n", "line 301, column 1: expected a decimal", "'1.5'"),
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
        ("a.csv", "", "a.csv: expected rows of numbers", "got an empty file"),
        ("a.csv", " \n\n", "a.csv: expected rows of numbers", "got an empty file"),
        ("a.gz", gzipped(b""), "a.gz: expected rows of numbers", "got an empty file"),
        ("a.dat", b"1 2\n\x00 3\n", "a.dat: expected UTF-8 text or .npy", "a zero byte"),
        ("a.dat", b"1 2\n" * 20_000 + b"1 \x002\n", "a.dat, line 20001: ", "got zero bytes"),
        ("a.gz", gzipped(b"a.csv".ljust(257, b"\0") + b"ustar\x0000"), "a tar archive", "unpack"),
        ("a.dat", b"1 2\n3 4\n" + b"\0" * 99, "a.dat: expected text", "leave them out (tr -d"),
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


def test_a_bad_gzip_of_npy_is_called_that(file) -> None:
    """It has a length of its own, which does not hide the damage."""
    content = gzip.compress(npy(np.ones((50, 2))))
    assert "x.gz: expected a whole gzip file" in refused(file("x.gz", content[:-12]))


@pytest.mark.parametrize(
    ("content", "got"),
    [
        pytest.param(npy(np.ones(3)), "two dimensions), got shape (3,)", id="vector"),
        pytest.param(npy(np.ones((2, 2, 2))), "two dimensions), got shape (2, 2, 2)", id="cube"),
        pytest.param(npy(np.array([[1, "a"]], dtype=object)), "NumPy cannot read", id="object"),
        pytest.param(npy(np.ones((2, 2), complex)), "got dtype complex128", id="complex"),
        pytest.param(npy(np.array([["a", "b"]])), "got dtype <U1", id="strings"),
        pytest.param(npy(np.zeros(3, [("a", "f8")])), "got dtype [('a', '<f8')]", id="records"),
        pytest.param(npy(np.ones((9, 9)))[:-9], "NumPy cannot read", id="cut"),
        pytest.param(npy(np.ones((9, 9)))[:40], "NumPy cannot read", id="half a header"),
        pytest.param(
            npy(np.ones((9, 9))).replace(b"'shape': (", b"'shape'  \0"),
            "NumPy cannot read",
            id="damaged header",
        ),
        pytest.param(b"\x93NUMPY\x03\x00....", "NumPy cannot read", id="version 3"),
        pytest.param(b"1 2\n3 4\n", "NumPy cannot read", id="text by that name"),
        pytest.param(npy(np.ones((0, 2))), "a matrix of 2 columns without rows", id="no rows"),
        pytest.param(
            npy(np.array([[1, 2], [3, -np.inf]])), "row 2, column 2: expected a finite", id="inf"
        ),
        pytest.param(
            npy(np.ones((2, 2))).replace(b"(2, 2), }             ", b"(2, 9999999999999), } "),
            "NumPy cannot read",
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
