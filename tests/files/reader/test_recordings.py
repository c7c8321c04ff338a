"""Recordings: the same rows from any format, in any number of files, in any order."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_files.reader import (
    ReadingOptions,
    Recordings,
    open_recordings,
    recordings,
)
from submerge_files.reader.column_ranges import FOLDED, ColumnRanges
from submerge_files.reader.formats import tables
from submerge_files.reader.options import ONLY_MACHINE
from submerge_files.reader.plan import FileReading

START = 1_795_428_000.0
NAMES = ("flow", "temp", "load")
SUFFIXES = (".csv", ".parquet", ".csv.gz")

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")


def opened(*paths: Path, **options: object) -> Recordings:
    return open_recordings(paths, ReadingOptions(**options))  # type: ignore[arg-type]


def whole(read: Recordings) -> tuple[np.ndarray, np.ndarray | None]:
    """All rows, and their times."""
    blocks = list(read.rows())
    times = [block.times for block in blocks if block.times is not None]
    return np.concatenate([b.rows for b in blocks]), np.concatenate(times) if times else None


def stamps(times: Sequence[float], form: str = "%Y-%m-%d %H:%M:%S.%f") -> list[str]:
    return [datetime.fromtimestamp(t, UTC).strftime(form) for t in times]


def written(path: Path, times: np.ndarray, rows: np.ndarray) -> Path:
    """Write a table with times in the format that the path's name has."""
    micros = np.rint(times * 1e6).astype(np.int64)
    columns = dict(zip(NAMES, rows.T, strict=False))
    if path.suffix in (".parquet", ".feather", ".arrows"):
        frame = pa.table({"time": micros.astype("datetime64[us]"), **columns})
        if path.suffix == ".parquet":
            parquet.write_table(frame, path, row_group_size=7)
        elif path.suffix == ".feather":
            feather.write_feather(frame, path, chunksize=5)
        else:
            with pa.ipc.new_stream(path, frame.schema) as stream:
                stream.write_table(frame, max_chunksize=5)
        return path
    mark = "\t" if ".tsv" in path.name else ","
    fields = [["" if np.isnan(x) else repr(float(x)) for x in row] for row in rows]
    lines = [mark.join([t, *f]) for t, f in zip(stamps(times), fields, strict=True)]
    content = "\n".join([mark.join(["time", *columns]), *lines, ""]).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def history(n: int, *, seed: int = 0, gaps: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Times a tenth of a second apart, and rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    if gaps:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return np.rint((START + np.arange(n) / 10) * 1e6) / 1e6, rows


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.feather", "a.arrows"]
)
def test_any_format_has_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Times and readings are equal bit by bit, gaps included."""
    times, rows = history(50)

    read = opened(written(tmp_path / name, times, rows))

    assert (NAMES, True, ("machine",)) == (read.names, read.timed, read.machines)
    got, when = whole(read)
    np.testing.assert_array_equal(rows, got)
    np.testing.assert_array_equal(times, when)
    np.testing.assert_array_equal(got, whole(read)[0])  # from the start at each call


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, 59), max_size=6), order=st.randoms(use_true_random=False))
def test_any_cut_into_files_has_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, cuts: set[int], order: random.Random
) -> None:
    """Files are in the order of their times, whatever they are called and named first."""
    folder = tmp_path_factory.mktemp("cut")
    times, rows = history(60)
    pieces = np.split(np.arange(60), sorted(cuts))
    paths = [
        written(folder / f"{order.random()}-{i}{SUFFIXES[i % 3]}", times[piece], rows[piece])
        for i, piece in enumerate(pieces)
    ]
    order.shuffle(paths)

    got, when = whole(opened(*paths))

    np.testing.assert_array_equal(rows, got)
    np.testing.assert_array_equal(times, when)


def test_a_file_given_twice_is_read_once_whatever_its_format(tmp_path: Path) -> None:
    """The same rows in three formats are one history, and a note says so."""
    times, rows = history(20)
    names = ("a.csv", "b.parquet", "c.csv.gz")
    paths = [written(tmp_path / name, times, rows) for name in names]

    read = opened(*paths, tmp_path)

    np.testing.assert_array_equal(rows, whole(read)[0])
    assert [f"{name} has the rows of a.csv: they are read once" for name in names[1:]] == [
        note for note in read.notes if "has the rows" in note
    ]
    assert [f"{path} is named twice, and read once" for path in paths] == [
        note for note in read.notes if "named twice" in note
    ]


def test_columns_go_by_name_in_any_order(tmp_path: Path) -> None:
    """Files whose columns are in another order have the same channels; arguments do not matter."""
    (tmp_path / "a.csv").write_text("time,b,a\n2026-11-23 10:00,1,2\n2026-11-23 10:01,3,4\n")
    (tmp_path / "b.csv").write_text("a,time,b\n6,2026-11-23 10:02,5\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]

    for read in (opened(*paths), opened(*paths[::-1])):
        assert ("a", "b") == read.names
        np.testing.assert_array_equal([[2, 1], [4, 3], [6, 5]], whole(read)[0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"columns": ("temp*",)}, ("temp 1", "temp 2")),
        ({"columns": ("flow..temp 1",)}, ("flow", "load", "temp 1")),
        ({"columns": ("temp 2", "flow")}, ("flow", "temp 2")),
        ({"skip": ("temp*",)}, ("flow", "load")),
        ({"columns": ("*",), "skip": ("load",)}, ("flow", "temp 1", "temp 2")),
    ],
)
def test_columns_by_names_globs_and_ranges(tmp_path: Path, options: dict, expected: tuple) -> None:
    """Chosen columns are in the file's order; the time is never among them."""
    path = tmp_path / "a.tsv"
    row = "2026-11-23 10:00\t1\t2\t3\t4\n"
    path.write_text("date time\tflow\tload\ttemp 1\ttemp 2\n" + row * 8)

    assert expected == opened(path, **options).names


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("2026-11-23 10:00", "2026-11-23 10:01", 60),
        ("2026-11-23T10:00:00Z", "2026-11-23T10:00:01Z", 1),
        ("2026-11-23T11:00:00+01:00", "2026-11-23T10:00:01Z", 1),
        ("2026-11-23 10:00:00.25", "2026-11-23 10:00:00.5", 0.25),
        ("23.11.2026 10:00:00", "24.11.2026 10:00:00", 86400),
        ("2026/11/23 10:00", "2026/11/23 10:01", 60),
        ("2026-11-23 10:00", "2026-11-24 9:00", 82800),
        ("1795428000", "1795428001", 1),
        ("1795428000000", "1795428000001", 0.001),
        ("1795428000000000", "1795428000000001", 1e-6),
        ("1795428000000000000", "1795428000001000000", 0.001),
    ],
)
def test_times_in_text_are_seconds_since_1970(
    tmp_path: Path, first: str, second: str, apart: float
) -> None:
    """Each spelling is the same instant; a time without a zone is UTC."""
    path = tmp_path / "a.csv"
    path.write_text(f"timestamp,a,b\n{first},1,2\n{second},3,4\n")

    _, times = whole(opened(path))

    assert times is not None
    assert int(START) == int(times[0])
    assert apart == pytest.approx(times[1] - times[0], rel=0.2 if apart < 1e-4 else 1e-3)


@pytest.mark.parametrize(
    "content",
    [
        "Date,Time,a,b\n2026-11-23,10:00:00,1,2\n2026-11-23,10:00:05,3,4\n",
        "2026-11-23 10:00:00 1 2\n2026-11-23 10:00:05 3 4\n",
        "2026-11-23 10:00:00,1,2\n2026-11-23 10:00:05,3,4\n",
        '"when","a","b"\n"2026-11-23 10:00:00","1","2"\n"2026-11-23 10:00:05","3","4"\n',
    ],
    ids=["two columns", "whitespace", "no heading", "quotes"],
)
def test_times_are_found_in_any_layout(tmp_path: Path, content: str) -> None:
    """Date and clock may be two columns; a row that begins with a time is no heading."""
    path = tmp_path / "a.csv"
    path.write_text(content)

    rows, times = whole(opened(path))

    np.testing.assert_array_equal([[1, 2], [3, 4]], rows)
    np.testing.assert_array_equal([START, START + 5], times)


def test_files_without_times_are_independent_of_their_order(tmp_path: Path) -> None:
    """They come in the order of what is in them, each once, and their rows count from 1."""
    for i, name in enumerate("abcab"):
        rows = np.full((3, 2), float(ord(name)))
        np.save(tmp_path / f"{i}.npy", rows)
    paths = sorted(tmp_path.iterdir())

    forth, back = ([*opened(*some).rows()] for some in (paths, paths[::-1]))

    assert [b.rows[0, 0] for b in forth] == [b.rows[0, 0] for b in back]
    assert {97.0, 98.0, 99.0} == {b.rows[0, 0] for b in forth}
    assert [(1, None)] * 3 == [(b.first, b.times) for b in forth]


def test_a_machine_for_each_value_of_a_column(tmp_path: Path) -> None:
    """Machines come one after another, each in order of time across files."""
    for hour in (11, 10):
        lines = [f"2026-11-23 {hour}:00:{i:02},{m},{i},{hour}\n" for i in range(9) for m in "qp"]
        (tmp_path / f"{hour}.csv").write_text("time,unit,a,b\n" + "".join(lines))

    read = opened(tmp_path, node_by="unit")

    assert (("a", "b"), ("p", "q")) == (read.names, read.machines)
    blocks = list(read.rows())
    assert ["p", "p", "q", "q"] == [block.machine for block in blocks]
    assert [10, 11, 10, 11] == [block.rows[0, 1] for block in blocks]
    assert all((np.diff(block.times) > 0).all() for block in blocks)


@pytest.mark.parametrize(("held", "passes"), [(1 << 22, 1), (150, 3), (30, 7)])
def test_a_file_of_many_machines_is_read_once_for_all_that_can_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, passes: int
) -> None:
    """Seven machines of ten rows, two channels and times; with room for none each is read alone."""
    lines = [f"2026-11-23 10:00:{i:02},m{m},{m},{i}\n" for i in range(10) for m in range(7)]
    (tmp_path / "a.csv").write_text("time,unit,a,b\n" + "".join(lines))
    read = opened(tmp_path / "a.csv", node_by="unit")
    monkeypatch.setattr(recordings, "MOST_HELD", held)
    seen = []
    spans = FileReading.spans
    monkeypatch.setattr(FileReading, "spans", lambda self: seen.append(1) or spans(self))

    blocks = list(read.rows())

    assert passes == len(seen)
    assert [f"m{m}" for m in range(7)] == [block.machine for block in blocks]
    for m, block in enumerate(blocks):
        np.testing.assert_array_equal([[m, i] for i in range(10)], block.rows)
        assert (np.diff(block.times) > 0).all()
    assert [block.rows.shape for block in read.looks()] == [(10, 0)] * 7


def test_a_machine_for_each_file(tmp_path: Path) -> None:
    """Files are called after their names, and may be of the same time."""
    times, rows = history(10)
    written(tmp_path / "pump.csv", times, rows)
    written(tmp_path / "fan.csv", times, -rows)

    read = opened(tmp_path, node_by="file")

    assert ("fan", "pump") == read.machines
    np.testing.assert_array_equal(np.vstack([-rows, rows]), whole(read)[0])


def test_a_long_table_is_a_row_a_time(tmp_path: Path) -> None:
    """Values of a time that are in two blocks are one row; a channel without one is a gap."""
    n = 3000
    times, rows = history(n, gaps=False)
    rows[5, 1] = np.nan
    lines = [
        f"{t},{name},{x!r}\n"
        for t, row in zip(stamps(times), rows.tolist(), strict=True)
        for name, x in zip(NAMES, row, strict=True)
        if x == x
    ]
    (tmp_path / "a.csv").write_text("time,tag,value\n" + "".join(lines))

    read = opened(tmp_path / "a.csv", long=("tag", "value"))
    part = opened(tmp_path / "a.csv", long=("tag", "value"), skip=("te*",))

    assert ("flow", "load", "temp") == read.names
    np.testing.assert_array_equal(rows[:, [0, 2, 1]], whole(read)[0])
    assert ("flow", "load") == part.names
    np.testing.assert_array_equal(rows[:, [0, 2]], whole(part)[0])


def test_sorting_merges_files_and_leaves_out_what_is_there_twice(tmp_path: Path) -> None:
    """Overlapping files in any order become the history; a melted table, too."""
    times, rows = history(40)
    backwards = np.arange(40)[::-1]
    written(tmp_path / "a.csv", times[:25], rows[:25])
    written(tmp_path / "b.parquet", times[backwards][:25], rows[backwards][:25])
    melted = "".join(f"{t},{k},{i}\n" for k in "ab" for i, t in enumerate(stamps(times)))
    (tmp_path / "long").write_text("time,tag,value\n" + melted)

    read = opened(tmp_path, sort=True)
    long = opened(tmp_path / "long", long=("tag", "value"), sort=True)

    got, when = whole(read)
    np.testing.assert_array_equal(rows, got)
    np.testing.assert_array_equal(times, when)
    assert "10 rows found in two files, and read once" in read.notes
    np.testing.assert_array_equal(np.tile(np.arange(40.0), (2, 1)).T, whole(long)[0])


def test_sorting_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than the stated memory are refused."""
    monkeypatch.setattr(recordings, "SORT_BYTES", 1000)
    path = written(tmp_path / "a.csv", *history(100))

    with pytest.raises(UsageError, match="rows to sort, got more; sort the files before"):
        whole(opened(path, sort=True))


def test_equal_times_of_a_coarse_clock_are_accepted(tmp_path: Path) -> None:
    """Rows faster than the clock, the same values and all, split anywhere."""
    row = "2026-11-23 10:00,1,2\n"
    (tmp_path / "a.csv").write_text("time,a,b\n" + row * 3)
    (tmp_path / "b.csv").write_text("time,a,b\n" + row * 2)

    assert 5 == len(whole(opened(tmp_path))[0])


def test_notes_say_what_was_left_out_or_says_nothing(tmp_path: Path) -> None:
    """Text, a second time, an index, a gap in all rows and a constant each have a sentence."""
    path = tmp_path / "a.csv"
    heading, row = ",time,end,site,state,a,b,none,c\n", "{i},{t},{t},north,{s},{i}5,1,,2.5\n"
    lines = [
        row.format(i=i, t=f"2026-11-23 10:00:{i:02}", s=("on", "off")[i % 2]) for i in range(20)
    ]
    path.write_text(heading + "".join(lines))
    read = opened(path)
    before = read.notes

    whole(read)

    assert ("a", "b", "c") == read.names
    assert [
        "column 1 has no name in line 1 of a.csv: called x0 (a.csv)",
        "times are of column time, the first that goes on: --time names another (a.csv)",
        "column x0 counts the rows and is left out (a.csv)",
        "column end holds times too and is left out (a.csv)",
        "column site is text ('north' alone) and is left out (a.csv)",
        "column state is text ('on', ...) and is left out (a.csv)",
        "column none has no value and is left out (a.csv)",
    ] == list(before)
    assert ("channel b is 1 in all rows", "channel c is 2.5 in all rows") == read.notes[7:]


@pytest.mark.parametrize("n", [1, FOLDED, FOLDED + 1, 3 * FOLDED])
@pytest.mark.parametrize("other", [4.0, 6.0])
def test_a_channel_with_one_other_value_is_not_constant(n: int, other: float) -> None:
    """Wherever it is; a gap is no value."""
    for row in range(n):
        rows = np.full((n, 3), 5.0)
        rows[row] = 5.0, other, np.nan
        found = ColumnRanges(NAMES)
        found.add(np.full((1, 3), 5.0))
        found.add(rows)

        assert ["channel flow is 5 in all rows", "channel load is 5 in all rows"] == list(
            found.notes()
        )


@pytest.mark.parametrize("gap", ["", "NA", "NULL", "null", "-", "N/A", "nan", "?"])
def test_missing_values_have_many_names(tmp_path: Path, gap: str) -> None:
    """Whatever a gap is called, it is one."""
    path = tmp_path / "a.csv"
    path.write_text(f"time,a,b\n2026-11-23 10:00,{gap},2\n2026-11-23 10:01,3,{gap}\n")

    np.testing.assert_array_equal([[np.nan, 2], [3, np.nan]], whole(opened(path))[0])


def test_zero_may_be_a_gap(tmp_path: Path) -> None:
    """On request alone."""
    np.save(tmp_path / "a.npy", np.array([[0, 1], [2, -0.0]]))

    np.testing.assert_array_equal([[0, 1], [2, 0]], whole(opened(tmp_path))[0])
    kept = whole(opened(tmp_path, zero_is_missing=True))[0]
    np.testing.assert_array_equal([[np.nan, 1], [2, np.nan]], kept)


def test_a_mote_log_has_the_times_of_its_epochs(tmp_path: Path) -> None:
    """A row an epoch, at the earliest time of its lines; a column a mote."""
    line = "2004-03-31 03:38:{s:02}.5 {epoch} {mote} {t} 38.4 45.1 2.69\n"
    said = [(2, 1, 1, 20.5), (33, 2, 1, 21.5), (1, 1, 2, 19.5), (34, 2, 2, 18.5)]
    content = "".join(line.format(s=s, epoch=e, mote=m, t=t) for s, e, m, t in said)
    (tmp_path / "log.txt").write_text(content)

    read = opened(tmp_path / "log.txt")

    rows, times = whole(read)
    assert ("mote1", "mote2") == read.names
    np.testing.assert_array_equal([[20.5, 19.5], [21.5, 18.5]], rows)
    np.testing.assert_array_equal([1_080_704_281.5, 1_080_704_313.5], times)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather"])
def test_blocks_are_bounded_and_numbered(tmp_path: Path, name: str) -> None:
    """No block has more than a few thousand rows; each has the number of its first row."""
    times, rows = history(20_000)
    path = written(tmp_path / name, times, rows)

    blocks = list(opened(path).rows())

    sizes = [len(block.rows) for block in blocks]
    assert ONLY_MACHINE == blocks[0].machine
    assert max(sizes) <= 4096
    assert [*np.cumsum([1, *sizes[:-1]])] == [block.first for block in blocks]


def test_wide_tables_come_in_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is bounded by its numbers, not by its rows alone."""
    monkeypatch.setattr(tables, "MOST_NUMBERS", 12)
    times, rows = history(20)
    for name in ("a.csv", "a.parquet"):
        blocks = list(opened(written(tmp_path / name, times, rows)).rows())
        np.testing.assert_array_equal(rows, np.concatenate([block.rows for block in blocks]))
        assert 12 >= max(block.rows.size for block in blocks)


def test_a_file_whose_columns_have_values_in_another_alone_is_read_as_that(tmp_path: Path) -> None:
    """One row with two gaps is no file of one column."""
    times, rows = history(5)
    rows[4, :2] = np.nan
    paths = [
        written(tmp_path / "a.csv", times[:4], rows[:4]),
        written(tmp_path / "b.csv", times[4:], rows[4:]),
    ]

    for order in (paths, paths[::-1]):
        np.testing.assert_array_equal(rows, whole(opened(*order))[0])
