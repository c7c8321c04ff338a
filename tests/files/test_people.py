"""Files that people have (docs/people.md): each kind is read right, or refused with its cure.

The plant has two hidden causes and four sensors, a row a minute; on Monday b is 1.5 too high from
05:00 to 06:00.
"""

from __future__ import annotations

import gzip
import re
import shlex
import sys
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import submerge as library
from submerge import UsageError
from submerge_files.reader import ReadingOptions, open_recordings
from support.commands import Ran, shell

BEGIN, MONDAY = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 8, tzinfo=UTC)
N = 3000
NAMES = ("a", "b", "c", "d")


def plant(n: int = N, seed: int = 0) -> np.ndarray:
    rng, loadings = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(2, 4)) * 2
    return 20 + rng.normal(size=(n, 2)) @ loadings + 0.1 * rng.normal(size=(n, 4))


def monday(n: int = 600) -> np.ndarray:
    rows = plant(n, 5)
    rows[300:360, 1] += 1.5
    return rows


def stamps(n: int, begin: datetime = BEGIN, form: str = "%Y-%m-%d %H:%M:%S") -> list[str]:
    return [(begin + timedelta(minutes=i)).strftime(form) for i in range(n)]


def written(path: Path, *columns: Sequence[object], head: str, mark: str = ",") -> Path:
    lines = (mark.join(map(str, row)) for row in zip(*columns, strict=True))
    path.write_text(head + "\n" + "\n".join(lines) + "\n")
    return path


def table(path: Path, rows: np.ndarray, times: Sequence[str] | None = None) -> Path:
    times = stamps(len(rows)) if times is None else times
    return written(path, times, *np.char.mod("%.7g", rows).T, head="time,a,b,c,d")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Ran]:
    """Return what runs `submerge` with a line of words in a folder with the plant's files."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "history.csv", plant())
    table(tmp_path / "monday.csv", monday(), stamps(600, MONDAY))
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


def opened(*paths: Path, **options: object):  # type: ignore[no-untyped-def]
    recordings = open_recordings(paths, ReadingOptions(**options))  # type: ignore[arg-type]
    blocks = list(recordings.rows())
    return recordings, np.concatenate([block.rows for block in blocks]), blocks


def refused(*paths: Path, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        opened(*paths, **options)
    return str(caught.value)


# -- several columns of times


@pytest.mark.parametrize("order", [("_start", "_stop", "_time"), ("_time", "_stop", "_start")])
def test_the_time_is_what_goes_on(tmp_path: Path, order: tuple[str, ...]) -> None:
    """A pivoted export of InfluxDB; the start and the end of a query stand still."""
    form = "%Y-%m-%dT%H:%M:%SZ"
    times = stamps(N, form=form)
    columns = {"_start": [times[0]] * N, "_stop": [times[-1]] * N, "_time": times}
    path = written(
        tmp_path / "a.csv",
        *(columns[name] for name in order),
        *plant().T,
        head=",".join(order) + ",a,b,c,d",
    )

    recordings, rows, blocks = opened(path)

    assert (NAMES, N) == (recordings.names, len(rows))
    assert [BEGIN.timestamp() + 60 * i for i in range(3)] == blocks[0].times[:3].tolist()


def test_the_time_is_what_goes_on_in_parquet(tmp_path: Path) -> None:
    """By type, whatever stands first."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = [BEGIN + timedelta(minutes=i) for i in range(N)]
    still = pa.array([times[0]] * N, pa.timestamp("us"))
    frame = {"start": still, "time": pa.array(times, pa.timestamp("us"))}
    parquet.write_table(
        pa.table(frame | dict(zip(NAMES, plant().T, strict=True))), tmp_path / "a.parquet"
    )

    _, _, blocks = opened(tmp_path / "a.parquet")

    assert [BEGIN.timestamp(), BEGIN.timestamp() + 60] == blocks[0].times[:2].tolist()


# -- times that lost their digits


def test_times_that_are_shared_have_a_note_and_alarms_a_length_in_rows(
    tmp_path: Path, run: Callable[[str], Ran]
) -> None:
    """Epoch milliseconds as Excel saves them, 1.77241E+12: 167 rows have one time."""
    for name, rows, begin in (("e", plant(), BEGIN), ("f", monday(), MONDAY)):
        first = begin.timestamp() * 1000
        table(
            tmp_path / f"{name}.csv", rows, [f"{first + 60_000 * i:.5E}" for i in range(len(rows))]
        )

    fitted, found = run("fit e.csv -o x.model"), run("detect f.csv --model x.model")

    assert "note: the first 256 rows have 2 times" in fitted.err
    assert "if times have lost digits or hours" in found.err
    assert 3 == found.status
    assert re.search(r"UTC  \d+ rows of one time, ", found.out)
    assert "0 ms" not in found.out


# -- offsets


@pytest.mark.parametrize(
    ("end", "pattern", "hours"),
    [
        ("+0100", "%z", -1),
        ("+01:00", "%z", -1),
        ("Z", "%z", 0),
        (" UTC", " %Z", 0),
        (" GMT", " %Z", 0),
    ],
)
def test_slashed_dates_with_offsets_are_read_as_the_message_says(
    tmp_path: Path, end: str, pattern: str, hours: int
) -> None:
    """All early in a month: the message names the pattern, and the pattern is read."""
    path = table(tmp_path / "a.csv", plant(1000), stamps(1000, form=f"%d/%m/%Y %H:%M:%S{end}"))
    expected = f"%d/%m/%Y %H:%M:%S{pattern}"

    if end != " GMT":
        assert f"--time-format '{expected}'" in refused(path)
    _, _, blocks = opened(path, time_format=expected)

    assert BEGIN.timestamp() + 3600 * hours == blocks[0].times[0]


def test_a_name_of_a_zone_but_utc_is_refused(tmp_path: Path) -> None:
    """Python would take that of the machine it runs on, and forget it."""
    path = table(tmp_path / "a.csv", plant(99), stamps(99, form="%d/%m/%Y %H:%M:%S CET"))

    assert "expected times" in refused(path, time_format="%d/%m/%Y %H:%M:%S %Z")


# -- lines above the headings

BODY = [[f"{value:.4f}" for value in row] for row in plant(300)]
TIMES = stamps(300)


def lines(mark: str, *first: Callable[[int], str], end: str = "") -> str:
    fields = ([*(each(i) for each in first), *row] for i, row in enumerate(BODY))
    return "".join(mark.join(row) + end + "\n" for row in fields)


ABOVE = {
    "toa5": (
        (
            '"TOA5","L1","L1","77","L1.Std.05","CPU:x","4711","Min"\n'
            '"TIMESTAMP","RECORD","a","b","c","d"\n"TS","RN","degC","bar","A","l"\n'
            '"","","Avg","Avg","Avg","Smp"\n'
        ),
        lines(",", lambda i: f'"{TIMES[i]}"', str),
        ["line 1 of", "lines 3 to 4 of"],
    ),
    "toa5 as wide as its table": (
        (
            '"TOA5","L1","L1","77","L1.Std","Min"\n"TIMESTAMP","RECORD","a","b","c","d"\n'
            '"TS","RN","degC","bar","A","l"\n"","","Avg","Avg","Avg","Smp"\n'
        ),
        lines(",", lambda i: f'"{TIMES[i]}"', str),
        ["line 1 of", "lines 3 to 4 of"],
    ),
    "influx": (
        (
            "#group,false,true,false,false,false,false\n"
            "#datatype,string,long,dateTime:RFC3339,double,double,double,double\n"
            "#default,_result,,,,,,\n,result,table,_time,a,b,c,d\n"
        ),
        lines(",", lambda _: "", lambda _: "", lambda _: "0", lambda i: TIMES[i]),
        ["lines 1 to 3 of"],
    ),
    "sep": ("sep=;\ntime;a;b;c;d\n", lines(";", lambda i: TIMES[i]), ["line 1 of"]),
    "labview": (
        (
            "LabVIEW Measurement\t\nSeparator\tTab\n***End_of_Header***\t\n\t\nChannels\t4\n"
            "X_Value\ta\tb\tc\td\n"
        ),
        lines("\t", lambda i: f"{i}.0"),
        ["lines 1 to 5 of"],
    ),
    "title": ("Plant 7\ntime,a,b,c,d\n", lines(",", lambda i: TIMES[i]), ["line 1 of"]),
    "titles and a blank line": (
        "Plant 7, hall 2\nmade by me\n\ntime,a,b,c,d\n",
        lines(",", lambda i: TIMES[i]),
        ["lines 1 to 3 of"],
    ),
    "key and value": (
        "Site:;Berlin\nSerial:;4711\nUnit:;bar\ntime;a;b;c;d\n",
        lines(";", lambda i: TIMES[i]),
        ["lines 1 to 3 of"],
    ),
    "comments": (
        "# plant 7\n# made today by me\ntime,a,b,c,d\n",
        lines(",", lambda i: TIMES[i]),
        ["lines 1 to 2"],
    ),
    "a heading in a comment": ("# x a b c d\n", lines(" ", lambda i: f"{i * i}"), []),
    "a title in a wide row": (
        "Plant 7,,,,\n,,,,\ntime,a,b,c,d\n",
        lines(",", lambda i: TIMES[i]),
        ["lines 1 to 2 of"],
    ),
    "units": ("time,a,b,c,d\n,bar,degC,A,l\n", lines(",", lambda i: TIMES[i]), ["line 2 of"]),
    "units and commas": (
        "Plant 7\n\ntime;a;b;c;d\n;bar;°C;A;l\n",
        lines(";", lambda i: TIMES[i]).replace(".", ","),
        ["lines 1 to 2 of", "line 4 of"],
    ),
}


@pytest.mark.parametrize("kind", ABOVE)
def test_lines_above_and_below_the_headings_are_passed_over(tmp_path: Path, kind: str) -> None:
    """A note says which; the rows are those of the plain table."""
    above, body, said = ABOVE[kind]
    path = tmp_path / "a.csv"
    path.write_text(above + body)

    recordings, rows, _ = opened(path, columns=NAMES)

    np.testing.assert_array_equal(np.array(BODY, float), rows)
    assert [] == [part for part in said if not any(part in note for note in recordings.notes)]


def test_a_first_row_that_is_short_is_no_title(tmp_path: Path) -> None:
    """R leaves out the heading of its rows' names: nothing says which column it lacks."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2,3\n4,5,6\n7,8,9\n")

    assert "line 2: expected 2 fields as in line 1, got 3" in refused(path)


def test_two_columns_of_one_name_are_refused_above_units(tmp_path: Path) -> None:
    """Also below a title: a row of units is no heading."""
    path = tmp_path / "a.csv"
    for above in ("", "Plant 7\n"):
        path.write_text(above + "time,a,a,b,c\n,bar,degC,A,l\n" + lines(",", lambda i: TIMES[i]))

        assert "expected different names for all columns, got 'a' for columns 2 and 3" in refused(
            path
        )


# -- marks of missing values


@pytest.mark.parametrize("marks", [(-9999, -7999), (-9999, 32767)])
def test_marks_that_hide_each_other_are_named_with_their_cure(
    tmp_path: Path, run: Callable[[str], Ran], marks: tuple[int, int]
) -> None:
    """With the option that the note names, the fault is found."""
    rows, rng = plant(), np.random.default_rng(3)
    for mark in marks:
        rows[rng.random(N) < 0.01, 1] = mark
    table(tmp_path / "marked.csv", rows)
    cure = f"--na '{marks[0]},{marks[1]}'"

    noted = run("fit marked.csv -o x.model").err
    fitted = run(f"fit marked.csv -o x.model {cure}")
    found = run("detect monday.csv --model x.model")

    assert cure in noted
    assert "in all others" not in fitted.err
    assert (3, "2026-03-08 05:0") == (found.status, found.out[:15])


@pytest.mark.parametrize("kind", ["csv", "commas", "parquet", "npy"])
def test_gaps_by_na_are_gaps_in_every_format(tmp_path: Path, kind: str) -> None:
    """As numbers, however they are written; words in text."""
    rows = plant(200)
    gaps = rows.copy()
    rows[3:9, 1], gaps[3:9, 1] = -9999, np.nan
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, rows)
    elif kind == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), path)
    else:
        rows[20:200:2, 2] = gaps[20:200:2, 2] = np.nan
        words = (["Bad" if x != x else repr(x) for x in row] for row in rows.tolist())
        mark, point = (",", ".") if kind == "csv" else (";", ",")
        text = "\n".join(mark.join(row).replace(".", point) for row in words)
        path.write_text(mark.join(NAMES) + f"\n{text}\n")

    _, read, _ = opened(path, missing=("-9999", "Bad"))

    np.testing.assert_array_equal(gaps, read)


# -- values beyond all reason


@pytest.mark.parametrize("value", [1e11, 1e15, 1e308])
def test_a_failing_sensor_raises_an_alarm(
    tmp_path: Path, run: Callable[[str], Ran], value: float
) -> None:
    """Whatever it reads."""
    day = plant(600, 5)
    day[300:400, 1] = value
    table(tmp_path / "failing.csv", day, stamps(600, MONDAY))
    run("fit history.csv -o x.model")

    found = run("detect failing.csv --model x.model")

    assert (3, "2026-03-08 05:0") == (found.status, found.out[:15])
    assert "\n    b " in found.out


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_infinity_is_refused_in_every_format(tmp_path: Path, kind: str) -> None:
    """With its row and its cure."""
    rows = plant(100)
    rows[40, 1] = np.inf
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, rows)
    elif kind == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), path)
    else:
        table(path, rows)

    message = refused(path)

    assert f"{'line 42' if kind == 'csv' else 'row 41'}, column " in message
    assert "expected a finite number, got " in message


# -- meters, labels, masks


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_meter_has_a_note(tmp_path: Path, kind: str) -> None:
    """It is higher on each later day."""
    energy = 1234 + np.cumsum(np.abs(np.random.default_rng(2).normal(0.05, 0.02, N)))
    columns = dict(zip(NAMES, plant().T, strict=True)) | {"energy": energy}
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        written(path, *columns.values(), head=",".join(columns))
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table(columns), path)

    recordings, _, _ = opened(path)

    (note,) = recordings.notes
    assert f"channel energy rises in {N - 1:,} rows and never falls: a meter or a counter" in note


@pytest.mark.parametrize("name", ["label", "is_anomaly", "Fault Flag", "changepoint", "y_truth"])
@pytest.mark.parametrize("ones", [0, 40])
def test_labels_have_a_note(tmp_path: Path, name: str, ones: int) -> None:
    """Also if the history has no fault, and all are 0."""
    labels = np.r_[np.ones(ones, int), np.zeros(N - ones, int)]
    path = written(tmp_path / "a.csv", *plant().T, labels, head=f"a,b,c,d,{name}")

    recordings, _, _ = opened(path)

    assert any(
        f"column {name} is learnt as a channel: if it says" in note for note in recordings.notes
    )


@pytest.mark.parametrize("name", ["fault current", "target speed"])
def test_readings_that_are_called_alike_have_none(tmp_path: Path, name: str) -> None:
    """Labels are few whole numbers."""
    path = written(tmp_path / "a.csv", *plant().T, plant(N, 9)[:, 0], head=f"a,b,c,d,{name}")

    assert () == opened(path)[0].notes


def test_what_a_mask_hides_is_a_gap_or_refused() -> None:
    """netCDF4 returns -9999 under a mask; a model must not learn it."""
    rows, mask = plant(), np.zeros((N, 4), bool)
    mask[::20, 1] = True
    masked = np.ma.masked_array(np.where(mask, -9999.0, rows), mask)
    model = library.Model.fit(np.where(mask, np.nan, rows))

    for one, other in zip(
        model.score(masked).values(),
        model.score(np.where(mask, np.nan, rows)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(UsageError, match="got nan in row 0, column 1"):
        library.SAPCA(rank=2).partial_fit(masked)


# -- headings that are numbers


@pytest.mark.parametrize("head", ["101,102,103,104", "1,2,3,4"])
def test_headings_that_are_numbers_are_no_row(tmp_path: Path, head: str) -> None:
    """Quoted they are names; plain, above decimals, they are refused with that cure."""
    quoted = ",".join(f'"{name}"' for name in head.split(","))
    body = np.round(plant(), 4).T

    recordings, rows, _ = opened(written(tmp_path / "a.csv", *body, head=quoted))

    assert (tuple(head.split(",")), N) == (recordings.names, len(rows))
    assert "if they are names, quote them" in refused(written(tmp_path / "b.csv", *body, head=head))


# -- folders


def test_folders_of_spark_and_hive(tmp_path: Path) -> None:
    """Marks beside the tables are passed over, and the pattern that a refusal names is read."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = pa.array([BEGIN + timedelta(minutes=i) for i in range(2880)], pa.timestamp("us"))
    frame = pa.table({"time": times, **dict(zip(NAMES, plant(2880).T, strict=True))})
    for i, name in enumerate(("2026-03-02", "2026-03-03")):
        for folder, file in (
            (f"hive/y=2026/day={name}", "p.parquet"),
            ("spark", f"{i}.snappy.parquet"),
        ):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            parquet.write_table(frame.slice(1440 * i, 1440), tmp_path / folder / file)
    (tmp_path / "spark/_SUCCESS").touch()
    (tmp_path / "spark/.0.crc").write_bytes(b"crc")

    message = refused(tmp_path / "hive")
    pattern = re.search("name their files: '(.*)'", message)

    assert pattern is not None, message
    assert f"{tmp_path}/hive/*/*/*.parquet" == pattern[1]
    for path in (Path(pattern[1]), tmp_path / "spark", tmp_path / "spark/*"):
        assert 2880 == len(opened(path)[1])


def test_a_delta_table_is_refused(tmp_path: Path) -> None:
    """Its folder has rows of all versions, also what was deleted."""
    (tmp_path / "_delta_log").mkdir()
    table(tmp_path / "a.csv", plant(99))

    assert "got a Delta table; write the rows of one version as Parquet" in refused(tmp_path)


# -- states


def states(n: int) -> list[str]:
    return ["RUN" if i % 50 < 40 else "STOP" for i in range(n)]


@pytest.fixture
def stopped(tmp_path: Path, run: Callable[[str], Ran]) -> Callable[[str], Ran]:
    """The plant's files with a column of states; the plant stops for ten rows of fifty."""
    for name, rows, begin in (("history", plant(), BEGIN), ("monday", monday(), MONDAY)):
        words = states(len(rows))
        rows[np.array(words) == "STOP"] = 0
        columns = stamps(len(rows), begin), words, *np.round(rows, 4).T
        written(tmp_path / f"{name}.csv", *columns, head="time,State,a,b,c,d")
    return run


def test_a_column_of_text_is_a_condition(stopped: Callable[[str], Ran]) -> None:
    """The model remembers it, and `detect` applies it."""
    fitted = stopped("fit history.csv -o x.model --when 'State == RUN'")
    found = stopped("detect monday.csv --model x.model")

    assert 0 == fitted.status
    assert "State" not in fitted.err
    assert "learnt     2,400 rows" in fitted.out + fitted.err
    assert "rows are judged where State == RUN, as the model was fitted" in found.err
    assert "rows       480 judged" in found.err
    assert (3, "2026-03-08 05:0") == (found.status, found.out[:15])


def test_states_and_numbers_are_joined(stopped: Callable[[str], Ran]) -> None:
    """In one condition, which another replaces."""
    stopped("fit history.csv -o x.model --when 'State != STOP and a > 15'")

    assert "where State != STOP and a > 15" in stopped("detect monday.csv --model x.model").err
    other = stopped("detect monday.csv --model x.model --when 'State == RUN'")
    assert "as the model was fitted" not in other.err
    assert "rows       480 judged" in other.err


def test_files_without_the_column_are_judged_with_a_note(
    tmp_path: Path, stopped: Callable[[str], Ran]
) -> None:
    """It says why not all of the condition is applied."""
    stopped("fit history.csv -o x.model --when 'State == RUN'")
    table(tmp_path / "bare.csv", monday(), stamps(600, MONDAY))

    found = stopped("detect bare.csv --model x.model")

    assert (
        "the model was fitted where State == RUN: all rows are judged by that but for" in found.err
    )
    assert "rows       600 judged" in found.err


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("State == Run", "expected rows where State == Run, got none"),
        (
            "Stat == RUN",
            "expected a column 'Stat' (--when), got no such column; did you mean 'State'?",
        ),
        ("a == RUN", "expected a column of text, to compare it with 'RUN' (--when), got numbers"),
        ("State > RUN", "a column of text is compared as in 'State == RUN'"),
    ],
)
def test_a_state_that_is_none_is_refused(
    stopped: Callable[[str], Ran], when: str, said: str
) -> None:
    """With what is there."""
    done = stopped(f"fit history.csv -o x.model --when '{when}'")

    assert (2, 1) == (done.status, done.err.count("\n"))
    assert said in done.err


# -- workbooks


def workbook(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Write a workbook of one sheet: text and numbers; times are serial, with a style of dates."""

    def cell(value: object) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        if isinstance(value, datetime):
            days = (value.timestamp() - datetime(1899, 12, 30, tzinfo=UTC).timestamp()) / 86400
            return f'<c s="1"><v>{days!r}</v></c>'
        return f"<c><v>{value!r}</v></c>"

    data = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    sheets = '<sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets>'
    relations = (
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{office}/styles" Target="styles.xml"/>'
    )
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    root = f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">{root}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{relations}'
        "</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{main}">{styles}</styleSheet>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{data}</sheetData>'
        "</worksheet>",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_the_first_sheet_of_a_workbook_is_read(tmp_path: Path) -> None:
    """With its times, a title above its headings, and mistakes at their rows."""
    pytest.importorskip("python_calamine")
    rows, times = plant(99), [BEGIN + timedelta(minutes=i) for i in range(99)]
    body = [[time, *row] for time, row in zip(times, rows.tolist(), strict=True)]
    sheet = [["Plant 7"], ["time", *NAMES], *body]

    _, read, blocks = opened(workbook(tmp_path / "a.xlsx", sheet))

    np.testing.assert_array_equal(rows, read)
    np.testing.assert_allclose([time.timestamp() for time in times], blocks[0].times, atol=1e-3)
    sheet[50][2] = "broken"
    assert "line 51, column 3 (b): expected a number" in refused(
        workbook(tmp_path / "b.xlsx", sheet)
    )


def test_a_workbook_without_its_reader_names_the_extra(tmp_path: Path, monkeypatch) -> None:
    """Or how to do without."""
    monkeypatch.setitem(sys.modules, "python_calamine", None)

    message = refused(workbook(tmp_path / "a.xlsx", [["a", "b"], [1, 2], [3, 4]]))

    assert "pip install 'submerge[excel]', or save its sheet as CSV in UTF-8" in message


# -- Python


def test_errors_of_python_name_arguments(tmp_path: Path) -> None:
    """Options are of commands; where there is no argument, the command is named."""
    path = table(tmp_path / "a.csv", plant(99), [f"03/02/2026 10:{i % 60:02}" for i in range(99)])
    back = table(tmp_path / "b.csv", plant(99), stamps(99)[::-1])

    with pytest.raises(UsageError, match="submerge fit --time-format '%d/%m/%Y"):
        library.Model.fit(str(path))
    with pytest.raises(UsageError, match=r"sort the rows, or ask for it \(sort\)"):
        library.Model.fit(str(back))
    with pytest.raises(UsageError, match=r"a column 'z' \(columns\)"):
        library.Model.fit(str(back), columns=["a", "z"])


def test_python_applies_the_condition_of_a_model() -> None:
    """As `detect` does."""
    rows = plant()
    rows[::50] = 0
    model = library.Model.fit(rows, when="x0 > 1")

    day = monday()
    day[::50] = 0

    (alarm,) = model.detect(day)
    assert 300 <= alarm.began <= 310


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_a_damaged_gzip_is_called_that(tmp_path: Path, kind: str) -> None:
    """And not the wrong number that comes of it."""
    plain = table(tmp_path / "a.csv", plant(20_000))
    if kind == "npy":
        plain = tmp_path / "a.npy"
        np.save(plain, plant(20_000))
    packed = gzip.compress(plain.read_bytes())
    middle = len(packed) * 3 // 4
    for content in (
        packed[:middle],
        packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :],
    ):
        path = tmp_path / f"b.{kind}.gz"
        path.write_bytes(content)

        assert f"b.{kind}.gz: expected a whole gzip file" in refused(path)


def test_numbers_after_rows_of_a_word_are_no_column_of_text(tmp_path: Path) -> None:
    """A sensor that was bad on the first day is a sensor; that of a name of the site is not."""
    rows = np.char.mod("%.7g", plant())
    rows[:300, 1] = "Bad"
    path = written(tmp_path / "h.csv", stamps(N), *rows.T, head="time,a,b,c,d")
    said = refused(path)

    assert "column 3 (b): expected numbers, or text alone" in said
    assert "--na Bad" in said
    assert 300 == np.isnan(opened(path, missing=("Bad",))[1]).sum()
    named = written(
        tmp_path / "n.csv", stamps(N), *plant().round(4).T, ["north"] * N, head="time,a,b,c,d,site"
    )
    assert NAMES == opened(named)[0].names


def test_an_index_of_a_frame_is_no_channel_though_rows_are_gone(tmp_path: Path) -> None:
    """pandas writes the numbers of the rows that a filter has left."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(plant(), columns=[*NAMES]).query("a > 18")
    frame.to_parquet(tmp_path / "h.parquet")
    recordings, _, _ = opened(tmp_path / "h.parquet")

    assert NAMES == recordings.names


def test_typed_dates_and_clocks_are_not_put_together(tmp_path: Path) -> None:
    """In one line, where there was a traceback."""
    pa = pytest.importorskip("pyarrow")
    when = pa.array([BEGIN + timedelta(minutes=i) for i in range(N)], pa.timestamp("us"))
    columns = dict(zip(NAMES, plant().T, strict=True))
    both = {"date": when.cast(pa.date32()), "clock": when.cast(pa.time64("us"))}
    pytest.importorskip("pyarrow.parquet").write_table(
        pa.table(both | columns), tmp_path / "h.parquet"
    )

    assert "write one column of timestamps" in refused(tmp_path / "h.parquet", time="date+clock")


def test_whole_numbers_of_a_workbook_are_written_as_such(tmp_path: Path) -> None:
    """What is said of headings 101 and 102 is what is said of the same table as CSV."""
    pytest.importorskip("python_calamine")
    rows = [[101, 102], *plant(20)[:, :2].tolist()]

    assert "got whole numbers (101, 102)" in refused(workbook(tmp_path / "h.xlsx", rows))
