"""Files that people have (docs/people.md): each kind is read right, or refused with its cure.

The plant has two hidden causes and four sensors, a row a minute; on Monday b is 1.5 too high from
05:00 to 06:00.
"""

from __future__ import annotations

import gzip
import re
import shlex
import sys
import warnings
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


@pytest.mark.parametrize("zone", [" CET", "[Europe/Berlin]"])
def test_a_name_of_a_zone_has_its_cure(tmp_path: Path, zone: str) -> None:
    """No pattern that takes it for letters: times would be wrong by its offset."""
    path = table(tmp_path / "a.csv", plant(99), stamps(99, form=f"%Y-%m-%d %H:%M:%S{zone}"))

    message = refused(path)

    assert f"an offset such as +01:00, or UTC, in place of {zone.strip(' []')}" in message
    assert "--time-format" not in message


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
    """Whatever it reads, which is told up to 1e300."""
    day = plant(600, 5)
    day[300:400, 1] = value
    table(tmp_path / "failing.csv", day, stamps(600, MONDAY))
    run("fit history.csv -o x.model")

    found = run("detect failing.csv --model x.model")

    assert (3, "2026-03-08 05:0") == (found.status, found.out[:15])
    assert f"\n    b {min(value, 1e300):.3g}, where" in found.out


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


@pytest.mark.parametrize(
    "name",
    ["label", "is_anomaly", "Fault Flag", "changepoint", "y_truth", "Störung", "en défaut", "故障"],
)
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


def test_scores_and_drills_are_of_the_rows_of_the_fit(
    tmp_path: Path, stopped: Callable[[str], Ran]
) -> None:
    """As alarms are; a file without the column is scored whole, with a note."""
    stopped("fit history.csv -o x.model --when 'State == RUN'")
    table(tmp_path / "bare.csv", monday(), stamps(600, MONDAY))
    scored = stopped("score monday.csv --model x.model -o s.csv")
    bare = stopped("score bare.csv --model x.model -o s.csv")
    drilled = stopped("drill history.csv --model x.model")

    for ran in (scored, drilled):
        assert "rows are judged where State == RUN, as the model was fitted" in ran.err
    assert "rows       600: 480 scored, 120 not (other state)" in scored.err
    assert "all rows are judged by that but for column State" in bare.err
    assert "rows       600: 600 scored" in bare.err


@pytest.mark.parametrize("kind", ["files", "pandas", "polars"])
def test_python_takes_states_too(stopped: Callable[[str], Ran], kind: str) -> None:
    """Rows have their own numbers and times; the model remembers the state, or says that not."""
    read: Callable[[str], object] = str
    if kind != "files":
        read = pytest.importorskip(kind).read_csv
    stopped("fit history.csv -o x.model --when 'State == RUN'")
    model = library.Model.fit(read("history.csv"), when="State == RUN")

    (alarm,) = model.detect(read("monday.csv"))
    (other,) = library.Model.load("x.model").detect(read("monday.csv"))

    assert other == alarm
    assert "2026-03-08 05:0" in str(alarm.began)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.detect(read("monday.csv"), when="State != RUN")
        model.detect(np.full((9, 4), 20.0))
    assert any("all rows are judged by that but for column State" in str(x.message) for x in said)
    with pytest.raises(UsageError, match=r"rows where State == GO, got none.*\(when\)"):
        model.detect(read("monday.csv"), when="State == GO")
    if kind != "files":
        stopped("score monday.csv --model x.model -o s.csv")
        text = np.genfromtxt("s.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
        scores = np.asarray(model.score(read("monday.csv"))["distance"])
        np.testing.assert_allclose(scores, text["distance"], rtol=1e-6)
        assert 120 == np.isnan(scores).sum()


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


def workbook(path: Path, rows: Sequence[Sequence[object]], sheets: Sequence[str] = "a") -> Path:
    """Write a workbook, its sheets alike: text, numbers, and times in numbers with their style."""

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
    named = (f'<sheet name="{n}" sheetId="{i}" r:id="r1"/>' for i, n in enumerate(sheets, 1))
    relations = (
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{office}/styles" Target="styles.xml"/>'
    )
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    root = f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">{root}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        f"{''.join(named)}</sheets></workbook>",
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
    assert "--na Bad makes gaps of it" in refused(path, columns=("a", "b"))
    rows[:300:2, 1] = "Off line"
    two = written(tmp_path / "two.csv", stamps(N), *rows.T, head="time,a,b,c,d")
    assert "--na 'Off line,Bad' makes gaps of them" in refused(two)
    assert 300 == np.isnan(opened(two, missing=("Bad", "Off line"))[1]).sum()
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


def test_of_several_sheets_the_first_is_read_and_all_are_named(tmp_path: Path) -> None:
    """In a note, and where the first has no table."""
    pytest.importorskip("python_calamine")
    rows = [["a", "b"], *plant(20)[:, :2].tolist()]
    recordings, _, _ = opened(workbook(tmp_path / "h.xlsx", rows, ("Data", "Notes")))

    note = "of the sheets Data, Notes the first is read: save another one as CSV"
    assert any(note in each for each in recordings.notes)
    for sheet in ([["Plant"], ["made by me"]], [], rows):
        about = workbook(tmp_path / "n.xlsx", sheet, ("About", "Data"))
        assert "of the sheets About, Data the first" in refused(about, columns=("c", "d"))


def test_a_sheet_of_notes_is_named_by_each_command(
    tmp_path: Path, run: Callable[[str], Ran]
) -> None:
    """Its cells are no channels of the model."""
    pytest.importorskip("python_calamine")
    run("fit history.csv -o x.model")
    notes = [["day", "who"], *([float(i), i + 0.5] for i in range(30))]
    workbook(tmp_path / "n.xlsx", notes, ("About", "Data"))

    for words in ("detect", "score -o s.csv", "drill"):
        ran = run(f"{words} n.xlsx --model x.model")
        assert (2, 1) == (ran.status, ran.err.count("\n")), words
        assert "of the sheets About, Data the first is read" in ran.err


# -- times that do not count from 1970

EPOCHS = {
    "a FILETIME of Windows": lambda at: f"{int((at + 11644473600) * 1e7)}",
    "ticks of .NET": lambda at: f"{int((at + 62135596800) * 1e7)}",
    "microseconds since 1601": lambda at: f"{int((at + 11644473600) * 1e6)}",
    "seconds since 1904": lambda at: f"{at + 2082844800:.0f}",
    "one that begins in 1904": lambda at: f"{at / 86400 + 24107:.6f}",
    "a datenum of MATLAB": lambda at: f"{at / 86400 + 719529:.6f}",
    "a Julian day": lambda at: f"{at / 86400 + 2440587.5:.6f}",
    "a modified Julian day": lambda at: f"{at / 86400 + 40587:.6f}",
    "a decimal year": lambda at: f"{1970 + at / 86400 / 365.2425:.8f}",
}


@pytest.mark.parametrize("kind", EPOCHS)
@pytest.mark.parametrize("name", ["time", "Date", "utc"])
def test_numbers_that_count_from_elsewhere_are_no_times_since_1970(
    tmp_path: Path, kind: str, name: str
) -> None:
    """They are refused with what they look like, in files and in frames."""
    pandas = pytest.importorskip("pandas")
    times = [EPOCHS[kind](BEGIN.timestamp() + 60 * i) for i in range(300)]
    rows = plant(300).round(4)
    path = written(tmp_path / "a.csv", times, *rows.T, head=f"{name},a,b,c,d")
    frame = pandas.read_csv(path)

    for read in (lambda: opened(path), lambda: library.Model.fit(frame)):
        with pytest.raises(UsageError, match=rf"{re.escape(kind)} \(2026-03-0[12] ") as caught:
            read()
        assert "convert it, or give" in str(caught.value)
    assert 300 == len(opened(path, time="none", skip=(name,))[1])


@pytest.mark.parametrize("first", [0.0, 1990.0, 45_000.0, 2_082_844_800.0])
def test_seconds_from_a_start_are_taken_for_no_dates(tmp_path: Path, first: float) -> None:
    """Nor is a time since 1970 taken for one since 1904."""
    table(tmp_path / "a.csv", plant(99), [f"{first + 2 * i}" for i in range(99)])

    assert first + 2 == opened(tmp_path / "a.csv")[2][0].times[1]


def test_a_column_of_decimal_years_is_no_meter(run: Callable[[str], Ran], tmp_path: Path) -> None:
    """Whatever command reads it."""
    run("fit history.csv -o x.model")
    years = [EPOCHS["a decimal year"](MONDAY.timestamp() + 60 * i) for i in range(600)]
    written(tmp_path / "m.csv", years, *monday().round(4).T, head="decyear,a,b,c,d")

    for words in ("detect m.csv --model x.model", "score m.csv --model x.model -o s.csv"):
        assert "looks like a decimal year (2026-03-0" in run(words).err


@pytest.mark.parametrize(
    ("form", "patterns"),
    [
        ("%m/%d/%y %H:%M:%S", ["%d/%m/%y %H:%M:%S", "%m/%d/%y %H:%M:%S", "%y/%m/%d %H:%M:%S"]),
        ("%d-%b-%Y %H:%M:%S", ["%d-%b-%Y %H:%M:%S"]),
        ("%d %B %Y %I:%M %p", ["%d %B %Y %I:%M %p"]),
        ("%Y%m%dT%H%M", ["%Y%m%dT%H%M"]),
        ("%Y%m%d_%H%M%S", ["%Y%m%d_%H%M%S"]),
        ("%Y.%m.%d %H:%M", ["%Y.%m.%d %H:%M"]),
        ("%Y-%j %H:%M", ["%Y-%j %H:%M"]),
        ("%d.%m.%Y %H.%M.%S", ["%d.%m.%Y %H.%M.%S"]),
        ("%a %b %d %H:%M:%S %Y", ["%a %b %d %H:%M:%S %Y"]),
        ("%Y年%m月%d日 %H:%M", ["%Y年%m月%d日 %H:%M"]),
        ("%H:%M:%S %d/%m/%Y", ["%H:%M:%S %d/%m/%Y", "%H:%M:%S %m/%d/%Y"]),
        ("%Y-%m-%dT%H:%M:%S+00:00[Europe/London]", ["%Y-%m-%dT%H:%M:%S%z[Europe/London]"]),
        ("%Y%m%dT%H%M%SZ", ["%Y%m%dT%H%M%S%z"]),
        ("%d%b%Y:%H:%M:%S", ["%d%b%Y:%H:%M:%S"]),
        ("%Y-%m-%d-%H.%M.%S.000000", ["%Y-%m-%d-%H.%M.%S.%f"]),
        ("%Y-%m-%d %Hh%M", ["%Y-%m-%d %Hh%M"]),
        ("%G-W%V-%u %H:%M", ["%G-W%V-%u %H:%M"]),
    ],
)
def test_the_pattern_that_is_named_reads_the_dates(
    tmp_path: Path, form: str, patterns: list[str]
) -> None:
    """All orders that read them are named."""
    path = table(tmp_path / "a.csv", plant(300), stamps(300, form=form))

    assert f"as in --time-format {' or '.join(map(repr, patterns))}, " in refused(path)
    assert BEGIN.timestamp() + 60 == opened(path, time_format=form)[2][0].times[1]


@pytest.mark.parametrize("form", ["%d/%m/%Y %I:%M a. m.", "2. März %Y %H:%M", "%H:%M"])
def test_no_pattern_is_named_that_does_not_read_the_times(tmp_path: Path, form: str) -> None:
    """`strptime` has no word for these months and halves of a day, and no date for a clock."""
    path = table(tmp_path / "a.csv", plant(300), stamps(300, form=form))

    message = refused(path)

    assert "--time-format" not in message
    assert ("--time DATE+CLOCK" in message) == (form == "%H:%M")


@pytest.mark.parametrize(
    "form", ["%y%m%d%H%M", "%y%m%d%H%M%S", "%d%m%Y%H%M", "%m%d%Y%H%M%S", "%Y%m%d%H%M%S000"]
)
def test_dates_in_digits_are_no_times_since_1970(tmp_path: Path, form: str) -> None:
    """2603020000 would be a second of 2052: the patterns that read it are named."""
    path = table(tmp_path / "a.csv", plant(300), stamps(300, form=form))
    pattern = form.replace("000", "%f")

    assert pattern in re.findall("'(%[^']*)'", refused(path))
    assert BEGIN.timestamp() + 60 == opened(path, time_format=pattern)[2][0].times[1]


@pytest.mark.parametrize("step", [0.5, 1, 10, 60, 3600, 86400])
@pytest.mark.parametrize("first", [1.2032600e9, 1.6121310e9, 1.7724096e9])
def test_times_since_1970_are_no_dates_in_digits(tmp_path: Path, first: float, step: float) -> None:
    """Some of them would be dates, such as 1612131000."""
    for n in 9, 300:
        times = [f"{first + step * i:.1f}".removesuffix(".0") for i in range(n)]
        path = table(tmp_path / "a.csv", plant(n), times)

        assert first + 2 * step == opened(path)[2][0].times[2]


# -- groups of digits


def test_points_that_group_digits_are_no_decimal_points(tmp_path: Path) -> None:
    """1.025 is a thousand if 980 stands there too, or a decimal comma, or 1.025.300."""

    def grouped(value: float) -> str:
        return f"{value:,.0f}".replace(",", ".")

    rows, times = plant(300) * 50, stamps(300)
    a = [grouped(value) for value in rows[:, 0]]
    large = [grouped(value) for value in rows[:, 1] * 2]
    others = {
        "mixed": [a, large],
        "commas": [large, [f"{value:.2f}".replace(".", ",") for value in rows[:, 2]]],
        "groups": [large, [grouped(value * 1000) for value in rows[:, 2]]],
    }
    assert "." not in min(a, key=len)
    for name, columns in others.items():
        path = written(tmp_path / f"{name}.csv", times, *columns, head="time;a;b", mark=";")
        assert "whose point groups its digits, as other fields show" in refused(path)
    late = [grouped(500 + 2 * i) for i in range(len(times))]
    path = written(tmp_path / "late.csv", times, late, late, head="time;a;b", mark=";")
    assert "." not in late[199]
    assert "whose point groups its digits" in refused(path)
    decimals = np.char.mod("%.3f", plant(300)).T
    path = written(tmp_path / "d.csv", times, *decimals, head="time;a;b;c;d", mark=";")
    np.testing.assert_allclose(plant(300), opened(path)[1], atol=1e-3)


@pytest.mark.parametrize(("mark", "noted"), [(";", 1), ("\t", 1), (",", 0), (" ", 0)])
def test_points_that_may_group_digits_have_a_note(tmp_path: Path, mark: str, noted: int) -> None:
    """If each number has one and three digits behind it, where commas may be decimal marks."""
    thousands = (1000 * plant(300)).round()
    texts = ([f"{value:,.0f}".replace(",", ".") for value in column] for column in thousands.T)
    path = written(tmp_path / "g.csv", *texts, head=mark.join(NAMES), mark=mark)

    said = [note for note in opened(path)[0].notes if "if these group digits" in note]

    assert noted == len(said)


# -- rows that are none, and marks, in each command


@pytest.mark.parametrize("footer", ["Total,20,20,20,20", "--- end ---", "time,a,b,c,d"])
def test_what_is_no_row_is_refused_by_each_command(
    tmp_path: Path, run: Callable[[str], Ran], footer: str
) -> None:
    """With its line, also if its cells are numbers."""
    run("fit history.csv -o x.model")
    with table(tmp_path / "m.csv", monday(), stamps(600, MONDAY)).open("a") as file:
        file.write(footer + "\n")

    for words in (
        "fit m.csv -o y.model",
        "detect m.csv --model x.model",
        "score m.csv --model x.model -o s.csv",
        "replay m.csv --rank 2",
    ):
        ran = run(words)
        assert (2, 1) == (ran.status, ran.err.count("\n")), words
        assert "m.csv, line 602" in ran.err
        assert ("the headings again" in ran.err) == (footer[:4] == "time")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_footer_without_a_time_is_no_row(
    tmp_path: Path, run: Callable[[str], Ran], kind: str
) -> None:
    """Its sums would be scored."""
    run("fit history.csv -o x.model")
    times: list[datetime | None] = [MONDAY + timedelta(minutes=i) for i in range(600)]
    times[-1] = None
    path = table(
        tmp_path / "f.csv", monday(), ["" if at is None else f"{at:%F %T}" for at in times]
    )
    if kind == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"time": pa.array(times, pa.timestamp("us"))}
        path = tmp_path / "f.parquet"
        parquet.write_table(pa.table(columns | dict(zip(NAMES, monday().T, strict=True))), path)

    for words in ("detect", "score -o s.csv", "drill"):
        ran = run(f"{words} {path.name} --model x.model")
        assert (2, 1, 1) == (ran.status, ran.err.count("\n"), ran.err.count(path.name)), words
        assert f"{'line 601' if kind == 'csv' else 'row 600'}, column 1 (time)" in ran.err
        assert "expected a time in each row, got none" in ran.err


def test_scores_of_rows_out_of_order_have_a_note(tmp_path: Path, run: Callable[[str], Ran]) -> None:
    """One, with the first place: the rows stay in their order."""
    run("fit history.csv -o x.model")
    times = stamps(600, MONDAY)
    table(tmp_path / "m.csv", monday(), [*times[400:], *times[:200], *times[200:400][::-1]])

    ran = run("score m.csv --model x.model -o s.csv")

    assert (0, 1) == (ran.status, ran.err.count("times go back"))
    assert (
        "note: times go back in line 202 of m.csv: rows are scored as they stand there" in ran.err
    )
    assert "times go back" not in run("score monday.csv --model x.model -o s.csv").err


@pytest.mark.parametrize("mark", [-9999, 1e15])
def test_marks_have_a_note_in_each_command(
    tmp_path: Path, run: Callable[[str], Ran], mark: float
) -> None:
    """`score` and `replay` name them as `fit` does."""
    run("fit history.csv -o x.model")
    rows = monday()
    rows[50:60, 1] = mark
    table(tmp_path / "m.csv", rows, stamps(600, MONDAY))

    for words in ("detect m.csv --model x.model", "score m.csv --model x.model -o s.csv"):
        said = run(words).err
        assert re.search(r"note: channel b (is -9999 in 10 rows|goes from .* to 1e\+15)", said)
    assert "channel b " in run("replay m.csv --rank 2").out


# -- letters, separators, pages


def test_another_encoding_is_called_that(tmp_path: Path) -> None:
    """It is text, as a spreadsheet saves it."""
    path = table(tmp_path / "a.csv", plant(99))
    path.write_bytes(path.read_text().replace("d\n", "d °C\n", 1).encode("cp1252"))

    assert "line 1: expected UTF-8, got text in other letters (byte 0xb0" in refused(path)


@pytest.mark.parametrize("mark", ["|", " | "])
def test_bars_separate_columns(tmp_path: Path, mark: str) -> None:
    """With blanks beside them, too."""
    columns = stamps(99), *np.char.mod("%.7g", plant(99)).T
    path = written(tmp_path / "a.csv", *columns, head=mark.join(("time", *NAMES)), mark=mark)

    np.testing.assert_allclose(plant(99), opened(path)[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<!DOCTYPE html>\n<html>", "HTML"),
        ("\n<HTML>\n", "HTML"),
        ("<!-- saved from a browser -->\n<html>", "HTML"),
        ('<?xml version="1.0"?>\n<a/>', "XML"),
    ],
)
def test_a_page_is_no_table(tmp_path: Path, text: str, kind: str) -> None:
    """A server that wants a password sends one."""
    (tmp_path / "a.csv").write_text(text + "a, b\n1, 2\n" * 9)

    assert f"expected a table, got {kind}; " in refused(tmp_path / "a.csv")


@pytest.mark.parametrize("word", ["Bad", "#N/A", "I/O Timeout"])
def test_the_cure_for_a_word_among_numbers_is_read(tmp_path: Path, word: str) -> None:
    """As the message has it."""
    cells = np.char.mod("%.7g", plant(300)).astype(object)
    cells[250:260, 1] = word
    path = written(tmp_path / "a.csv", stamps(300), *cells.T, head="time,a,b,c,d")
    cure = re.search(r"make gaps of it \(--na (.*), of fit", refused(path))

    assert cure is not None
    assert 10 == np.isnan(opened(path, missing=tuple(shlex.split(cure[1])))[1]).sum()


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("time^a\n" + "1772409600^2\n" * 9, "if another mark is between its columns, write commas"),
        ("a::b\n1::2\n3::4\n5::6\n" * 9, "if another mark is between its columns, write commas"),
        ("a,b\n1,2,\n3,4,\n5,6,\n" * 9, "if each row ends in that mark, end the headings in it"),
        ("a,b\n1,2\n3,4\n\0\0\0\0\n", "got zero bytes, as after a loss of power; leave them out"),
    ],
)
def test_what_breaks_a_line_is_called_by_its_name(tmp_path: Path, text: str, cure: str) -> None:
    """Another mark, a mark at the end, and what a disk has where nothing was written."""
    (tmp_path / "a.csv").write_text(text)

    assert cure in refused(tmp_path / "a.csv")


def test_a_readme_in_a_folder_is_no_table(tmp_path: Path) -> None:
    """It is passed over with a note, and read if it is named."""
    folder = tmp_path / "days"
    folder.mkdir()
    table(folder / "a.csv", plant(99))
    (folder / "README.txt").write_text("time is that of the pump, in UTC\nmade by me\n" * 9)

    recordings, rows, _ = opened(folder)

    assert 99 == len(rows)
    assert any("README.txt in" in note and "passed over" in note for note in recordings.notes)
    table(folder / "README.txt", plant(99))
    assert 99 == len(opened(folder / "README.txt")[1])


@pytest.mark.parametrize(
    ("form", "cure"),
    [
        (lambda x: f"{x:.3f}".replace("-", "\u2212"), "it has another minus sign than -"),
        (lambda x: f"({-x:.3f})" if x < 0 else f"{x:.3f}", "it has brackets of a negative number"),
        (lambda x: f"{x:.4E}".replace("E", "D"), "it has D before its exponent"),
    ],
)
def test_numbers_of_other_spellings_are_no_gaps(
    tmp_path: Path, form: Callable[[float], str], cure: str
) -> None:
    """A message that named `--na` would have all negative numbers lost."""
    rows = plant(99) - 20
    path = written(
        tmp_path / "a.csv", *([form(x) for x in each] for each in rows.T), head="a,b,c,d"
    )

    message = refused(path)

    assert cure in message
    assert "--na" not in message


@pytest.mark.parametrize("first", [0, 1])
def test_a_column_that_is_half_of_words_names_the_option(tmp_path: Path, first: int) -> None:
    """Whether a number comes first or not; a column of words alone has none to keep."""
    cells = np.char.mod("%.7g", plant(300)).astype(object)
    cells[first::2, 1], cells[:, 3] = "Bad", "RUN"
    path = written(tmp_path / "a.csv", stamps(300), *cells.T, head="time,a,b,c,d")

    recordings, _, _ = opened(path)

    assert ("a", "c") == recordings.names
    half, words = (note for note in recordings.notes if "is text" in note)
    assert re.search(r"column b .* make gaps of 'Bad' \(--na, in text files\)", half)
    assert re.search(r"column d is text \('RUN' alone\) and is left out(?!:)", words)
    assert "make gaps of 'Bad' (--na, in text files)" in refused(path, columns=("a", "b"))
    assert 150 == np.isnan(opened(path, missing=("Bad",))[1]).sum()


@pytest.mark.parametrize("first", ["a", "state", "no", "time"])
@pytest.mark.parametrize("word", ["Total", "Grand total:", "Mittelwert", "Min"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_total_below_rows_without_times_is_no_row(
    tmp_path: Path, first: str, word: str, packed: bool
) -> None:
    """Also in a column that is left out: its other cells would be learnt."""
    columns = {"a": plant(300)[:, 3], "state": ["RUN"] * 300, "no": range(300)}
    columns["time"] = stamps(300)
    path = written(tmp_path / "a.csv", columns[first], *plant(300).T[:3], head=f"{first},b,c,d")
    path.write_text(f"{path.read_text()}{word},6000,6000,6000\nMax,25,25,25\n\n")
    if packed:
        text = path.read_bytes()
        path = tmp_path / "a.csv.gz"
        path.write_bytes(gzip.compress(text))

    message = refused(path, time="none")
    assert f"line 302, column 1 ({first}): expected a row as those above, got '{word}'" in message
    assert "leave the line out" in message


def test_a_state_that_is_called_as_a_total_is_one(tmp_path: Path) -> None:
    """It is not below the table alone."""
    for states in (["RUN"] * 300 + ["average"] * 30, ["RUN"] * 327 + ["max"] * 3):
        path = written(tmp_path / "a.csv", states, *plant(330).T, head="state,a,b,c,d")

        assert 330 == len(opened(path)[1])


def test_a_total_below_a_sheet_is_no_row(tmp_path: Path) -> None:
    """Spreadsheets have most of them."""
    pytest.importorskip("python_calamine")
    rows = [["state", *NAMES], *(["RUN", *row] for row in plant(30).round(3).tolist())]

    path = workbook(tmp_path / "a.xlsx", [*rows, ["Sum", 1, 2, 3, 4]])
    assert "line 32, column 1 (state): expected a row as those above, got 'Sum'" in refused(path)


def test_names_with_commas_are_quoted(tmp_path: Path, run: Callable[[str], Ran]) -> None:
    """In `--columns`, as in the file."""
    body = plant().round(4).T
    written(tmp_path / "q.csv", stamps(N), *body, head='time,"a, left",b,c,d')

    assert "did you mean '\"a, left\"'?" in run("fit q.csv -o q.model --columns 'a, left,b'").err
    assert 0 == run("""fit q.csv -o q.model --columns '"a, left",b,c'""").status


# -- other formats


def test_arrow_of_polars_is_read_or_refused_with_its_cure(tmp_path: Path) -> None:
    """Its files begin in a way of their own, and its streams have views of strings."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"time": stamps(99), **dict(zip(NAMES, plant(99).T, strict=True))})
    frame.write_ipc(tmp_path / "file.arrow")
    frame.write_ipc_stream(tmp_path / "stream.arrow")

    assert "with polars, write_parquet or write_ipc_stream" in refused(tmp_path / "file.arrow")
    _, rows, (block,) = opened(tmp_path / "stream.arrow")
    np.testing.assert_array_equal(plant(99), rows)
    assert BEGIN.timestamp() == block.times[0]


def test_milliseconds_in_text_are_times(tmp_path: Path) -> None:
    """As exports of databases have them; other text of numbers is left out with a note."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = [str(int(BEGIN.timestamp() + 60 * i) * 1000) for i in range(99)]
    columns = {"time": times, **dict(zip(NAMES, plant(99).T, strict=True)), "code": times}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")

    recordings, _, (block,) = opened(tmp_path / "a.parquet")

    assert (NAMES, BEGIN.timestamp() + 60) == (recordings.names, block.times[1])
    assert any("cast it, if it holds numbers" in note for note in recordings.notes)


def test_files_of_one_name_are_machines_of_their_folders(
    tmp_path: Path, run: Callable[[str], Ran]
) -> None:
    """By names that `detect` takes, as of `machine=1` and of `Pump 1.csv`."""
    run("fit history.csv -o x.model")
    for number in 1, 2:
        (tmp_path / f"h/machine={number}").mkdir(parents=True)
        table(tmp_path / f"h/machine={number}/part-0.csv", plant(600, number))
        table(tmp_path / f"Pump {number}.csv", plant(600, number))
    hive, pumps = "'h/*/*.csv'", "'Pump 1.csv' 'Pump 2.csv'"

    for files in (hive, pumps):
        assert run(f"detect {files} --model x.model --node-by file").status in (0, 3)
    assert ("machine-1", "machine-2") == opened(Path("h/*/*.csv"), node_by="file")[0].machines


# -- messages


def test_rows_of_two_machines_name_the_option(tmp_path: Path) -> None:
    """Below one another they are refused, and by turns they share their times."""
    times, rows = stamps(300), plant(600).round(4)
    below = [*times, *times], ["p1"] * 300 + ["p2"] * 300
    turns = [time for time in times for _ in range(2)], ["p1", "p2"] * 300
    head = "time,machine,a,b,c,d"

    path = written(tmp_path / "a.csv", *below, *rows.T, head=head)
    assert "if rows are of several machines, name the column that says so" in refused(path)
    path = written(tmp_path / "b.csv", *turns, *rows.T, head=head)
    assert any("(--node-by)" in note for note in opened(path)[0].notes)
    assert ("p1", "p2") == opened(path, node_by="machine")[0].machines


@pytest.mark.parametrize(
    "other", ["flow (m3/h)", "flow, m3/h", "flow in m3/h", "flow{m3/h}", "flow <m3/h>"]
)
def test_a_unit_in_other_brackets_is_told(tmp_path: Path, other: str) -> None:
    """It is the same channel, and not the one that is spelt nearly so."""
    for name, heading in (("a", "flow [m3/h]"), ("b", other)):
        written(tmp_path / f"{name}.csv", *plant(99).T, head=f'"{heading}","flow2 [m3/h]",c,d')

    message = refused(tmp_path / "a.csv", tmp_path / "b.csv")
    assert f"is it {other!r}? then give its heading its unit in square brackets" in message


# -- frames


@pytest.fixture(params=["pandas", "polars"])
def framed(request: pytest.FixtureRequest) -> Callable[..., object]:
    """Return what makes a frame of the plant with other columns before it."""
    package = pytest.importorskip(request.param)
    return lambda **more: package.DataFrame(more | dict(zip(NAMES, plant().T, strict=True)))


def noted(frame: object, **options: object) -> tuple[library.Model, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = library.Model.fit(frame, **options)  # type: ignore[arg-type]
    return model, "\n".join(str(each.message) for each in caught)


@pytest.mark.parametrize("scale", [1, 1000])
def test_a_frames_numbers_called_time_are_times(framed: Callable[..., object], scale: int) -> None:
    """As those of a file, and text that reads as times is, too."""
    numbers = (np.arange(N, dtype=np.int64) * 60 + int(BEGIN.timestamp())) * scale

    for times in (numbers, stamps(N)):
        model = library.Model.fit(framed(time=times))
        assert (NAMES, 60.0) == (model.channels, model.period_s)
    kept, _ = noted(framed(time=numbers / scale), columns=["time", *NAMES[:3]])
    assert "time" in kept.channels


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("id", np.arange(N), "column id counts the rows and is left out"),
        ("label", np.zeros(N, int), r"is learnt as a channel: .* leave it out \(columns\)"),
        ("state", ["1.5", "2.5"] * (N // 2), "is text .*: cast it, if it holds numbers"),
        ("empty", [None] * N, "column empty has no value and is left out"),
        ("copy", plant()[:, 0], "columns copy and a have the same values"),
    ],
)
def test_columns_of_a_frame_have_the_notes_of_a_file(
    framed: Callable[..., object], name: str, values: Sequence[object], said: str
) -> None:
    """One sentence for one column, whatever it is read from."""
    assert re.search(said, noted(framed(**{name: values}))[1])


def test_parts_of_a_date_are_no_channels_without_a_word(framed: Callable[..., object]) -> None:
    """A later month would be an alarm."""
    parts = {"year": [2026] * N, "month": [3] * N, "hour": [i // 60 % 24 for i in range(N)]}

    assert "columns year, month, hour are learnt as channels" in noted(framed(**parts))[1]
    for one in {"hour": parts["hour"]}, {"YYYY": parts["year"], "DOY": parts["month"]}:
        assert f"{', '.join(one)} {'is' if len(one) == 1 else 'are'}" in noted(framed(**one))[1]
    assert not noted(framed(mm=plant()[:, 0] + 1))[1]


@pytest.mark.parametrize("step", [60, 0.5])
def test_an_index_of_numbers_that_does_not_count_rows_is_noted(step: float) -> None:
    """That of a frame whose rows were filtered is not."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(plant(), columns=[*NAMES])
    index = BEGIN.timestamp() + step * np.arange(N)

    said = noted(frame.set_axis(index.astype(int) if step == 60 else index))[1]
    assert re.fullmatch("the index is .*: rows are learnt without times.*", said)
    assert not noted(frame.query("a > 18"))[1]
    assert "the index is" in noted(frame.rename_axis("seconds"))[1]
    assert not noted(frame.rename_axis("id"))[1]
