"""Parquet and Arrow: every plain type is read, and nothing else is trusted."""

from __future__ import annotations

import datetime
import decimal
import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.formats import arrow_file

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

START = 1_795_428_000
HUGE = {"a.parquet": {"use_dictionary": False}, "a.feather": {"chunksize": 99_000}}


def written(path: Path, columns: dict[str, object], **options: object) -> Path:
    frame = columns if isinstance(columns, pa.Table) else pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(frame, path, **options)
    else:
        feather.write_feather(frame, path, **options)
    return path


def read(path: Path, **options: object) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
    recordings = open_recordings([path], ReadingOptions(**options))  # type: ignore[arg-type]
    blocks = list(recordings.rows())
    times = [block.times for block in blocks if block.times is not None]
    rows = np.concatenate([block.rows for block in blocks])
    return recordings.names, rows, np.concatenate(times) if times else None


def refused(path: Path, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_every_plain_type_becomes_numbers(tmp_path: Path, name: str) -> None:
    """Integers, floats, bools, decimals and dictionaries, null for a gap."""
    columns = {
        "i": pa.array([1, None, 3], pa.int16()),
        "u": pa.array([1, 2, 2**63], pa.uint64()),
        "h": pa.array([0.5, 1.5, None], pa.float32()),
        "b": pa.array([True, False, None]),
        "d": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("3.50")]),
        "c": pa.array([7.0, 8.0, 7.0]).dictionary_encode(),
    }
    if name == "a.feather":
        del columns["d"]
    many = {key: pa.chunked_array([column] * 3) for key, column in columns.items()}

    names, rows, _ = read(written(tmp_path / name, many))

    nan = np.nan
    expected = [[1, 1, 0.5, 1, 1.25, 7], [nan, 2, 1.5, 0, nan, 8], [3, 2**63, nan, nan, 3.5, 7]]
    used = ["iuhbdc".index(key) for key in columns]
    assert tuple(columns) == names
    np.testing.assert_array_equal(np.array(expected)[:, used], rows[:3])


@pytest.mark.parametrize(
    "type_",
    [
        pa.timestamp("s"),
        pa.timestamp("ms", tz="UTC"),
        pa.timestamp("us", tz="Europe/Berlin"),
        pa.timestamp("ns"),
        pa.date32(),
        pa.string(),
    ],
    ids=str,
)
def test_every_type_of_time_is_seconds(tmp_path: Path, type_: object) -> None:
    """Times with a zone are instants; others are taken as UTC, as in text."""
    days = [datetime.datetime(2026, 11, day, tzinfo=datetime.UTC) for day in (23, 24)]
    if type_ == pa.string():
        when = pa.array([day.isoformat() for day in days])
    else:
        when = pa.array(days, pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us")).cast(type_)
        if getattr(type_, "tz", None):
            when = pa.array(days, type_)
    path = written(tmp_path / "a.parquet", {"a": [1.0, 2.0], "when": when, "b": [1.0, 0.0]})

    names, _, times = read(path)

    assert ("a", "b") == names
    np.testing.assert_array_equal([START - 36000, START - 36000 + 86400], times)


def test_types_without_numbers_are_left_out_with_a_note(tmp_path: Path) -> None:
    """Lists, binary and text are no channels; naming one is an error."""
    columns = {
        "a": [1.0, 2.0],
        "l": [[1], [2]],
        "raw": [b"x", b"y"],
        "b": [2, 3],
        "s": ["x", "y"],
        "none": pa.nulls(2),
    }
    path = written(tmp_path / "a.parquet", columns)

    recordings = open_recordings([path], ReadingOptions())

    assert ("a", "b") == recordings.names
    assert ["l", "raw", "s", "none"] == [note.split()[1] for note in recordings.notes]
    assert "column 2 (l): expected a column of numbers" in refused(path, columns=("a", "l"))


def test_a_row_without_a_time_is_refused(tmp_path: Path) -> None:
    """Null is no time; the message has the row."""
    when = pa.array([START, None, START], pa.timestamp("s"))
    path = written(tmp_path / "a.parquet", {"t": when, "a": [1.0] * 3, "b": [1.0] * 3})

    assert "row 2, column 1 (t): expected a time in each row, got none" in refused(path)


def test_infinity_is_refused_with_its_place(tmp_path: Path) -> None:
    """As in text."""
    path = written(tmp_path / "a.parquet", {"a": [1.0, np.inf], "b": [1.0, 2.0]})

    assert "a.parquet, row 2, column a: expected a finite number, got inf" in refused(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_extension_types_are_refused(tmp_path: Path, name: str) -> None:
    """What they mean is code elsewhere: neither known nor unknown ones are read."""
    schema = pa.schema(
        [
            pa.field("a", pa.float64()),
            pa.field("b", pa.float64(), metadata={"ARROW:extension:name": "evil"}),
        ]
    )
    unknown = pa.table([[1.0, 2.0], [1.0, 2.0]], schema=schema)
    matrix = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 2)))
    known = pa.table({"a": [1.0, 2.0], "m": matrix})

    for frame, column in ((unknown, "b"), (known, "m")):
        message = refused(written(tmp_path / name, frame))
        assert f"{name}, column {column}: expected a plain Arrow type" in message


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Though it takes a thousandth of it packed; nothing is unpacked before."""
    monkeypatch.setattr(arrow_file, "MOST_BYTES", 1 << 20)
    columns = {name: np.zeros(99_000) for name in "abc"}
    path = written(tmp_path / name, columns, compression="zstd", **HUGE[name])
    assert 50_000 > path.stat().st_size

    message = refused(path)

    assert "expected at most 1 MiB at once, unpacked, got 2 MiB" in message
    assert message.endswith("(row_group_size, chunksize)")


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_a_damaged_file_is_one_line(tmp_path: Path, name: str) -> None:
    """Cut short, packed again, or without rows."""
    path = written(tmp_path / name, {"a": np.arange(999.0), "b": np.arange(999.0)})
    content = path.read_bytes()

    path.write_bytes(content[: len(content) // 2])
    assert "expected a whole Parquet or Arrow file, got one that pyarrow" in refused(path)
    path.write_bytes(gzip.compress(content))
    assert "got gzip; unpack it first" in refused(path)
    written(path, {"a": np.empty(0), "b": np.empty(0)})
    assert "expected rows, got none" in refused(path)


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what to install; other formats need nothing."""
    path = written(tmp_path / "a.parquet", {"a": [1.0, 2.0], "b": [1.0, 2.0]})
    np.save(tmp_path / "a.npy", np.eye(3))
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert refused(path).endswith("not installed: pip install 'submerge[files]'")
    assert ("x0", "x1", "x2") == read(tmp_path / "a.npy")[0]


@pytest.mark.slow
def test_importing_the_readers_imports_no_pyarrow() -> None:
    """It is loaded when a file needs it; clients' readers are among these."""
    code = "import sys, submerge_files.reader; print('pyarrow' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == ran.stdout.strip()
