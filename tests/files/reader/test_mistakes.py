"""Each mistake is one line that names its cure; none is silent, and none is a traceback."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge_files.reader import ReadingOptions, open_recordings

HEAD = "time,flow,temp\n"
ROWS = "".join(f"2026-11-23 10:00:{i:02},{i},{i * 2 % 7}\n" for i in range(30))
TIMES = [f"2026-11-23 10:00:{i:02}" for i in range(30)]
LONG = "time,tag,v\n" + "".join(f"{t},{k},1.5\n" for k in "ab" for t in TIMES)


def table(heading: str, row: str, n: int = 30) -> str:
    """A heading, and rows with their number for {i} and their time for {t}."""
    return heading + "\n" + "".join(row.format(i=i, t=TIMES[i]) + "\n" for i in range(n))


def zipped(*names: str) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return stored.getvalue()


def npz() -> bytes:
    stored = io.BytesIO()
    np.savez(stored, a=np.eye(3))
    return stored.getvalue()


def objects() -> bytes:
    stored = io.BytesIO()
    np.save(stored, np.array([[{}, {}]], dtype=object), allow_pickle=True)
    return stored.getvalue()


SIDEWAYS = (
    "sensor," + ",".join(TIMES) + "\n" + "".join(f"s{k}" + ",1" * 30 + "\n" for k in range(3))
)
WIDE = ",".join(f"c{i}" for i in range(9)) + "\n" + ",".join("123456789") + "\n" * 2
WIDE += ",".join("234567891") + "\n"

MISTAKES = {
    # name: (file's name, content, options, what the message has)
    "columns": ("a.csv", HEAD + ROWS, {"columns": ("flov",)}, "'flov' (--columns)", "'flow'?"),
    "case": ("a.csv", HEAD + ROWS, {"columns": ("FLOW",)}, "'FLOW' (--columns)", "mean 'flow'?"),
    "glob": ("a.csv", HEAD + ROWS, {"columns": ("z*",)}, "match 'z*'", "it has time, flow, temp"),
    "range": ("a.csv", HEAD + ROWS, {"columns": ("temp..flow",)}, "a range", "write flow..temp"),
    "edge": ("a.csv", HEAD + ROWS, {"columns": ("flow..tmp",)}, "a column 'tmp'", "mean 'temp'?"),
    "one": ("a.csv", HEAD + ROWS, {"columns": ("flow",)}, "two channels", "name more (--columns)"),
    "skip": ("a.csv", HEAD + ROWS, {"skip": ("flaw",)}, "'flaw' (--skip)", "did you mean 'flow'?"),
    "time": ("a.csv", HEAD + ROWS, {"time": "tme"}, "'tme' (--time)", "did you mean 'time'?"),
    "node": ("a.csv", HEAD + ROWS, {"node_by": "tank"}, "'tank' (--node-by)", "it has time, flow"),
    "not times": ("a.csv", table("flow,tag,temp", "{i},a,{i}"), {"time": "tag"}, "got 'a'", "none"),
    "sideways": ("a.csv", SIDEWAYS, {}, "a row for each ('s0', ...)", "on its side: transpose it"),
    "wide": ("a.csv", WIDE, {}, "more rows than columns, got 2 rows of 9", "transpose it"),
    "two decimal marks": (
        "a.csv",
        "a;b\n" + "1,5;2\n" * 300 + "1.5;2\n",
        {},
        "line 302, column 1 (a): expected a decimal comma",
        "with one mark",
    ),
    "commas twice": ("a.csv", "a,b\n1,5,2,5\n", {}, "2 fields", "decimal marks, write points"),
    "thousands": (
        "a.csv",
        "a;b\n1,234.5;2\n3;4\n",
        {},
        "'1,234.5'",
        "without thousands separators",
    ),
    "either": (
        "a.csv",
        "a;b\n1,234;2\n3;4\n",
        {},
        "'1,234'",
        "a decimal comma, or digits in groups",
    ),
    "units": ("a.csv", table("time,a,b", "{t},{i} C,1"), {}, "'0 C'", "it has a unit (C): write"),
    "percent": ("a.csv", table("time,a,b", "{t},{i}%,1"), {}, "'0%'", "it has a unit (%): write"),
    "backwards": (
        "a.csv",
        HEAD + ROWS + "2026-11-23 10:00:07,1,1\n",
        {},
        "line 32: expected no time before 2026-11-23T10:00:29Z (line 31), got 2026-11-23T10:00:07",
        "ask for it (--sort)",
    ),
    "melted": ("a.csv", LONG, {"long": ("tag", "v")}, "no time before", "ask for it (--sort)"),
    "long names": ("a.csv", LONG, {"long": ("tog", "v")}, "'tog' (--long)", "did you mean 'tag'?"),
    "long twice": (
        "a.csv",
        "time,tag,v\n" + "2026-11-23,a,1\n2026-11-23,b,1\n2026-11-23,a,2\n",
        {"long": ("tag", "v")},
        "line 4: expected one value of a channel at a time, got 'a' again",
        "leave one out",
    ),
    "long untimed": (
        "a.csv",
        "tag,v\na,1\nb,2\n",
        {"long": ("tag", "v")},
        "a column of times",
        "(--time)",
    ),
    "text named": (
        "a.csv",
        table("time,a,s,b", "{t},{i},on,1"),
        {"columns": ("a", "s")},
        "column 3 (s): expected a column of numbers, got text such as 'on'",
        "leave it out (--skip)",
    ),
    "text inside": ("a.csv", HEAD + ROWS + "2026-11-24,x,1\n", {}, "line 32, column 2", "(--skip)"),
    "gaps named": (
        "a.csv",
        table("a,b,c", "{i},,1"),
        {"columns": ("a", "b")},
        "column 2 (b): expected a column of numbers, got no value in any row",
        "leave it out (--skip)",
    ),
    "names alone": ("a.csv", "a,b\nx,y\nz,w\n", {}, "got none", "column a is text ('x', ...)"),
    "one column": ("a.csv", table("time,a", "{t},{i}"), {}, "two columns of numbers", "got a"),
    "excel": ("a.xlsx", zipped("[Content_Types].xml"), {}, "an Excel workbook", "CSV in UTF-8"),
    "old excel": ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", {}, "an Excel workbook", "CSV"),
    "zip": ("a.zip", zipped("a.csv"), {}, "a zip archive", "unpack it first"),
    "npz": ("a.npz", npz(), {}, "NumPy's .npz", "save each matrix as .npy"),
    "pickle": ("a.pkl", pickle.dumps({"a": 1}), {}, "a pickle, which may run code", "as CSV"),
    "objects": ("a.npy", objects(), {}, "one that NumPy cannot read", "astype(float)"),
    "matlab": ("a.mat", b"MATLAB 5.0 MAT-file", {}, "a MATLAB file", "as CSV or .npy"),
    "json lines": ("a.jsonl", '{"a": 1}\n{"a": 2}\n', {}, "got JSON", "a column for each key"),
    "json": ("a.json", "[[1, 2], [3, 4]]", {}, "got JSON", "a column for each key"),
    "utf-16": ("a.csv", "a,b\n1,2\n".encode("utf-16"), {}, "UTF-16 text", "save it as UTF-8"),
    "empty": ("a.csv", "", {}, "an empty file", "check how it was written"),
    "header only": ("a.csv", HEAD, {}, "only a header", "check how it was written"),
    "twice": ("a.csv", "time,a,a\n" + ROWS, {}, "'a' for columns 2 and 3", "rename one"),
    "one row": ("a.csv", "a,b\n1,2\n", {}, "rows over time, got one row", "name longer files"),
    "no time": (
        "a.csv",
        HEAD + ROWS + ",1,1\n",
        {},
        "line 32, column 1 (time)",
        "leave the row out",
    ),
    "bad time": ("a.csv", HEAD + ROWS + "later,1,1\n", {}, "got 'later'", "leave the row out"),
    "bad first": (
        "a.csv",
        HEAD + "later,1,1\n" + ROWS,
        {},
        "line 2, column 1 (time)",
        "got 'later'",
    ),
    "slashes": (
        "a.csv",
        "date,a,b\n11/10/2026 2:05 PM,1,2\n11/10/2026 2:06 PM,1,2\n",
        {},
        "got only such as '11/10/2026 2:05 PM' (11 October or 10 November); say which is first",
        "--time-format '%d/%m/%Y %I:%M %p' or '%m/%d/%Y %I:%M %p'",
    ),
    "both orders": (
        "a.csv",
        "date,a,b\n13/02/2026,1,2\n02/13/2026,1,2\n",
        {},
        "column 1 (date): expected dates in one order",
        "write all of them as 2026-11-23",
    ),
    "slashes beside a clock": (
        "a.csv",
        "date,at,a,b\n11/10/2026,14:05,1,2\n11/10/2026,14:06,1,3\n",
        {},
        "'%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M' (with --time date+at)",
    ),
    "long not asked for": (
        "a.csv",
        LONG,
        {},
        "column tag is text ('a', ...) and is left out; if a row is one value of one channel",
        "--long tag,v",
    ),
    "comments above": (
        "a.csv",
        "plant 7\nmade today\n1,2\n3,4\n5,6\n7,8\n",
        {},
        "line 3: expected 1 field as",
        "if lines stand above its headings, remove them",
    ),
    "clocks set back": (
        "a.csv",
        "time,a,b\n2026-10-25 02:59,1,2\n2026-10-25 02:00,2,3\n",
        {},
        "no time before 2026-10-25T02:59:00Z (line 2)",
        "(--sort); if clocks were set back then, write times in UTC or with their zone",
    ),
    "blanks between": (
        "a.csv",
        HEAD + ROWS,
        {"columns": ("flow temp",)},
        "got 'flow temp'; write commas between names: flow,temp",
    ),
    "no headings": (
        "a.csv",
        "1,2\n3,5\n",
        {"columns": ("flow", "temp"), "columns_are": "a channel of the model"},
        "expected headings with flow, temp (a channel of the model), got none, and columns x0, x1",
        "write the channels' names above the first row",
    ),
    "machines by a reading": (
        "a.csv",
        "time,a,b,c\n" + "".join(f"{i},{i / 7},{i * i % 11},1\n" for i in range(200)),
        {"node_by": "a"},
        "expected a column that names machines ('a'), got 200 names in 200 rows",
    ),
    "a model": ("a.model", "submerge model 3 {}\n\0", {}, "got a model; name it as --model"),
    "two digits": (
        "a.csv",
        table("time,a,b", "23/11/26 10:{i:02},{i},1"),
        {},
        "got '23/11/26 10:00'",
        "--time-format '%d/%m/%y %H:%M'",
    ),
    "half days": ("a.csv", table("time,a,b", "{t}0 PMX,{i},1"), {}, "0 PMX'", "(--time none)"),
    "serial dates": (
        "a.csv",
        "date,a,b\n45000.5,1,2\n45001,3,4\n",
        {},
        "column 1 (date): expected times such as",
        "got 45000.5, which looks like a serial date of Excel (2023-03-15 12:00)",
        "give --time-format excel",
    ),
    "serial times": (
        "a.csv",
        "time,a,b\n45000.5,1,2\n45000.50069444,3,4\n",
        {},
        "a serial date of Excel (2023-03-15 12:00)",
    ),
    "far future": (
        "a.csv",
        "time,a,b\n20260302140500123,1,2\n20260302140600123,3,4\n",
        {},
        "got 20260302140500123; convert it, or give --time-format",
        "'%Y%m%d%H%M%S%f'",
    ),
    "other format": (
        "a.csv",
        HEAD + ROWS,
        {"time_format": "%d/%m/%Y"},
        "(time): expected times (%d/%m/%Y), got '2026-11-23 10:00:00'; correct --time-format",
    ),
    "no format": ("a.csv", HEAD + ROWS, {"time_format": "iso"}, "got 'iso'", "us, ns, or excel"),
    "bad format": ("a.csv", HEAD + ROWS, {"time_format": "%Q"}, "got '%Q'", "as of strptime"),
    "half format": ("a.csv", HEAD + ROWS, {"time_format": "%H:%M"}, "with a year", "DATE+CLOCK"),
    "no date": ("a.csv", table("time,a,b", "10:00:00,{i},1"), {}, "got '10:00:00'", "--time none"),
    "inf": ("a.csv", table("time,a,b", "{t},inf,1"), {}, "got 'inf'", "write NA for a missing"),
    "open quote": ("a.csv", 'a,b\n1,"2\n3,4\n' * 2, {}, "a.csv", ""),
    "short row": ("a.csv", "a,b\n1,2\n3\n", {}, "line 3: expected 2 fields", "complete the row"),
    "ids": (
        "a.csv",
        table("time,a,id,b", "{t},{i},17640000001{i:02},1\n{t},{i},17640000000{i:02},1"),
        {},
        "column 3 (id): expected readings below 1e+12, got 1764000000100, ..., as ids",
        "leave it out (--skip id), or say that it is the time (--time)",
    ),
    "ids named": (
        "a.csv",
        table("time,a,part id,b", "{t},{i},17640000000{i:02},1"),
        {"columns": ("a", "part id", "b")},
        "column 3 (part id)",
        "(--skip 'part id')",
    ),
    "no such file": ("b.csv", "a,b\n1,2\n", {}, "nothing of that name", "check the path"),
    "sort what": (
        "a.csv",
        HEAD + ROWS,
        {"sort": True, "time": "none"},
        "times to sort by",
        "leave",
    ),
    "long once": ("a.csv", HEAD + ROWS, {"long": ("v", "v")}, "'v' twice", "the channel's column"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_with_its_cure(tmp_path: Path, mistake: str) -> None:
    """The message says what was expected, what came and what to do."""
    name, content, options, *parts = MISTAKES[mistake]
    path = tmp_path / name.replace("b.csv", "a.csv")
    path.write_bytes(content.encode() if isinstance(content, str) else content)

    with pytest.raises(UsageError) as caught:
        list(open_recordings([tmp_path / name], ReadingOptions(**options)).rows())

    message = str(caught.value)
    assert [] == [part for part in parts if part not in message], message
    assert "\n" not in message


def refused(*paths: Path, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        list(open_recordings(paths, ReadingOptions(**options)).rows())  # type: ignore[arg-type]
    return str(caught.value)


def test_a_pattern_or_folder_without_tables_is_refused(tmp_path: Path) -> None:
    """Nothing to read is said at once."""
    (tmp_path / "notes.md").write_text("no table")

    assert refused(tmp_path / "*.csv").endswith("got none; check the pattern and its folder")
    assert "expected a folder of tables" in refused(tmp_path)
    assert refused() == "expected at least one file to read, got none; name one"


def test_a_folder_of_folders_is_refused_with_a_pattern(tmp_path: Path) -> None:
    """So is a pattern that matches folders alone; an empty folder is said to be empty."""
    for day in ("monday", "tuesday"):
        (tmp_path / "days" / day).mkdir(parents=True)
        (tmp_path / "days" / day / "a.csv").write_text(HEAD + ROWS)
    (tmp_path / "none").mkdir()
    days = tmp_path / "days"

    assert refused(days).endswith(
        f"got 2 folders (monday, ...); name their files: '{days}/*/*.csv'"
    )
    assert refused(days / "*").endswith(f"got 2 folders; name their files: '{days}/*/*.csv'")
    assert refused(tmp_path / "none").endswith("got an empty one; check its name")


def test_folders_beside_tables_are_noted(tmp_path: Path) -> None:
    """Half of a history could be missing without a word."""
    (tmp_path / "old").mkdir()
    for name in ("a.csv", "old/b.csv"):
        (tmp_path / name).write_text(HEAD + ROWS)
    (tmp_path / "pictures").mkdir()

    note = open_recordings([tmp_path], ReadingOptions()).notes[0]

    assert f"1 folder in {tmp_path} passed over: '{tmp_path}/*/*.csv' means their files" == note


def test_commas_between_files_are_refused(tmp_path: Path) -> None:
    """As --columns has them."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(HEAD + ROWS)

    message = refused(Path(f"{tmp_path / 'a.csv'},{tmp_path / 'b.csv'}"))

    assert message.endswith("expected a file, got several; write blanks between them")


def test_a_file_for_each_sensor_is_refused_with_two_ways_out(tmp_path: Path) -> None:
    """One column says nothing of others; one such file among others is its own mistake."""
    (tmp_path / "flow.csv").write_text(table("time,value", "{t},{i}"))
    (tmp_path / "temp.csv").write_text(table("time,value", "{t},{i}"))

    message = refused(tmp_path)
    (tmp_path / "temp.csv").write_text(HEAD + ROWS)

    assert "2 files: expected a column for each sensor in each file" in message
    assert "got a file for each sensor (flow.csv has time, value)" in message
    assert "join them by their times into one table" in message
    assert "(--long sensor,value --sort)" in message
    assert "flow.csv: expected at least two columns of numbers, got value" in refused(tmp_path)


def test_files_of_other_columns_are_refused_with_the_nearest_name(tmp_path: Path) -> None:
    """A column that one file lacks is an error and no gap."""
    for name, heading in {"a.csv": "time,flow,temp", "b.csv": "time,flow,tempp"}.items():
        (tmp_path / name).write_text(f"{heading}\n{ROWS}")

    message = refused(tmp_path)

    assert f"b.csv: expected a column 'temp' (as in {tmp_path / 'a.csv'})" in message
    assert message.endswith("did you mean 'tempp'?")


def test_a_file_without_times_beside_others_is_refused(tmp_path: Path) -> None:
    """Its rows have no place among the others."""
    (tmp_path / "a.csv").write_text(HEAD + ROWS)
    (tmp_path / "b.csv").write_text("flow,temp\n1,2\n3,4\n")

    assert "b.csv: expected a column of times as in" in refused(tmp_path)


@pytest.mark.parametrize(
    ("first", "got", "cure"),
    [
        (20, "no time before 2026-11-23T10:00:29Z (line 31 of ", "merge them (--sort)"),
        (29, "got that of 2026-11-23T10:00:29Z again (line 31 of ", "let --sort do it"),
    ],
    ids=["overlap", "same row"],
)
def test_files_that_overlap_are_refused(tmp_path: Path, first: int, got: str, cure: str) -> None:
    """The message has both files, both lines and both times."""
    (tmp_path / "z.csv").write_text(HEAD + ROWS)
    later = "".join(f"2026-11-23 10:00:{i:02},{i},{i * 2 % 7}\n" for i in range(first, 59))
    (tmp_path / "b.csv").write_text(HEAD + later)

    message = refused(tmp_path)

    assert "b.csv, line 2: " in message
    assert got + str(tmp_path / "z.csv") in message
    assert cure in message
