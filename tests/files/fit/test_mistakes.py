"""Mistakes on the command line of `fit`, `detect` and `score`: one line, with what to do."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from submerge_files.python import HistoryModel
from support.commands import Ran, shell
from support.pump_files import bad_day, readings, write

Run = Callable[[str], Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words."""
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a history, its model and a day with a fault."""
    path = tmp_path_factory.mktemp("plant")
    write(path / "monday.csv", bad_day(), first=20_160)
    HistoryModel.fit(write(path / "history.csv", readings(3000))).save(path / "pump.model")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Path) -> Path:
    """Return a copy of it, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(plant, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command",
    [
        "fit history.csv -o new.model",
        "detect monday.csv --model pump.model",
        "score monday.csv --model pump.model",
        "drill monday.csv --model pump.model",
    ],
)
@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("pessure > 1", "got \"pessure\"; did you mean 'pressure'?"),
        ("rpm > 1", 'got "rpm"; channels are flow, pressure, current, temperature'),
        ("flow", "expected one of < <= > >= == != after flow, got nothing"),
    ],
)
def test_a_condition_that_is_none_is_one_line(run: Run, command: str, when: str, said: str) -> None:
    """An unknown channel has the nearest name."""
    done = run(f"{command} --when '{when}'")

    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert f"condition {when!r}: expected" in done.err
    assert said in done.err


@pytest.mark.usefixtures("folder")
def test_a_condition_on_a_column_that_is_no_channel_says_so(run: Run) -> None:
    """The column is in the file, and --columns left it out."""
    done = run("fit history.csv -o new.model --columns flow,pressure --when 'current > 1'")

    assert 2 == done.status
    assert "only channels are compared with numbers: learn it with the others" in done.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit history.csv -o new.model", "learnt, got none of 3,000 (3,000 other state)"),
        ("detect monday.csv --model pump.model", "judged, got none of 1,440 (1,440 other state)"),
        ("score monday.csv --model pump.model", "scored, got none of 1,440 (1,440 other state)"),
    ],
)
def test_a_condition_that_no_row_meets_is_the_reason(run: Run, command: str, said: str) -> None:
    done = run(f"{command} --when 'flow > 5000'")

    assert 2 == done.status
    assert f"{said}: they are not in the state flow > 5000: correct it" in done.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["detect", "score"])
def test_a_table_in_place_of_a_model_names_fit(run: Run, command: str) -> None:
    done = run(f"{command} monday.csv --model history.csv")

    assert (2, 1) == (done.status, done.err.count("\n"))
    assert "history.csv is not a model file: expected what `submerge fit` or" in done.err


@pytest.mark.usefixtures("folder")
def test_a_table_without_headings_is_refused(run: Run, folder: Path) -> None:
    """Nothing was said of --columns, so the message says nothing of it."""
    lines = (folder / "monday.csv").read_text().splitlines()
    (folder / "bare.csv").write_text("\n".join(lines[1:]))

    done = run("detect bare.csv --model pump.model")

    assert (2, 1) == (done.status, done.err.count("\n"))
    assert "expected headings with flow, pressure, current, temperature" in done.err
    assert "--columns" not in done.err


def test_rows_in_another_unit_are_noted(run: Run, folder: Path) -> None:
    """An alarm that never ends says less; a day like the history has no such note."""
    rows = bad_day()
    rows[:, 0] *= 1000
    write(folder / "changed.csv", rows, first=20_160)

    changed = run("detect changed.csv --model pump.model")

    said = "note: these rows are at another level than those that were learnt: flow is"
    assert (3, True) == (changed.status, said in changed.err)
    assert "another level" not in run("detect monday.csv --model pump.model").err


@pytest.mark.usefixtures("folder")
def test_scores_are_not_written_as_an_excel_workbook(run: Run) -> None:
    """It would be CSV under a name that no spreadsheet opens."""
    done = run("score monday.csv --model pump.model -o scores.xlsx")

    assert (2, 1) == (done.status, done.err.count("\n"))
    assert "got scores.xlsx: name it .csv, .jsonl or .parquet" in done.err


@pytest.mark.usefixtures("folder")
def test_scores_as_csv_are_not_named_json(run: Run) -> None:
    """A program that reads the file by its name would fail."""
    done = run("score monday.csv --model pump.model -o scores.json")

    assert (2, 1) == (done.status, done.err.count("\n"))
    assert "scores.json would hold CSV: give --json, or name it .csv" in done.err


def test_a_model_of_few_rows_says_so(run: Run, folder: Path) -> None:
    """It is a model of `submerge fit`, and has no limits."""
    write(folder / "few.csv", readings(40))
    assert "none: too few rows" in run("fit few.csv -o few.model --no-drill").out

    done = run("detect monday.csv --model few.model")

    assert (2, 1) == (done.status, done.err.count("\n"))
    assert "no alarm limits, since its history is of 40 rows: fit more of them" in done.err


@pytest.mark.slow
def test_a_machine_that_was_not_learnt_is_noted(run: Run, folder: Path) -> None:
    """A model of several machines does not know which one a file is of."""
    for i in range(2):
        write(folder / f"pump-{i}.csv", readings(3000, i, level=i))
    run("fit pump-0.csv pump-1.csv -o two.model --node-by file --no-drill")

    alone = run("detect pump-0.csv --model two.model").err
    named = run("detect pump-0.csv --model two.model --node-by file").err

    (folder / "other.csv").write_text((folder / "pump-0.csv").read_text())
    other = run("detect other.csv --model two.model --node-by file").err

    assert "note: the model is of several machines (pump-0, pump-1), and nothing says" in alone
    assert "note: other is no machine that was learnt (pump-0, pump-1), and is" in other
    assert "machine" not in named


@pytest.mark.usefixtures("folder")
def test_score_takes_columns_and_formats_of_times(run: Run, folder: Path) -> None:
    """As `fit` does; a column that is left out is missing."""
    lines = (folder / "monday.csv").read_text().splitlines()[:9]
    lines[1:] = [f"16/03/26 00:0{i}" + line[line.index(",") :] for i, line in enumerate(lines[1:])]
    (folder / "short.csv").write_text("\n".join(lines))
    asked = "score short.csv --model pump.model -o scores.csv --time-format '%d/%m/%y %H:%M'"

    lacking = run(f"{asked} --columns flow,pressure")
    part = run(f"{asked} --columns flow,pressure --allow-missing")

    assert (2, True) == (lacking.status, "a column 'current' (a channel" in lacking.err)
    assert (0, True) == (part.status, "no column for 2 channels" in part.err)
    assert "short.csv,1,16/03/26 00:00," in (folder / "scores.csv").read_text()


def test_score_writes_times_of_a_format_to_parquet(run: Run, folder: Path) -> None:
    """As timestamps: a serial date of Excel is one, too."""
    parquet = pytest.importorskip("pyarrow.parquet")
    lines = (folder / "monday.csv").read_text().splitlines()[:9]
    lines[1:] = [f"{46097 + i / 1440}{line[line.index(',') :]}" for i, line in enumerate(lines[1:])]
    (folder / "short.csv").write_text("\n".join(lines))

    asked = "score short.csv --model pump.model -o scores.parquet --time-format excel"
    assert 0 == run(asked).status

    times = parquet.read_table(folder / "scores.parquet")["time"].to_pylist()
    expected = [datetime(2026, 3, 16, 0, i, tzinfo=UTC) for i in range(8)]
    assert expected == pytest.approx(times, abs=timedelta(milliseconds=1))


def test_folders_that_score_passes_over_are_noted(run: Run, folder: Path) -> None:
    """As `fit` notes them."""
    (folder / "days" / "old").mkdir(parents=True)
    for name in ("days/monday.csv", "days/old/monday.csv"):
        shutil.copy(folder / "monday.csv", folder / name)

    done = run("score days --model pump.model -o scores.csv")

    assert (0, True) == (done.status, "note: 1 folder in days passed over" in done.err)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_alarms_on_the_history_leave_the_status_at_0(run: Run) -> None:
    """They are no surprise there; `detect` says 3 for the same alarms."""
    assert 3 == run("detect monday.csv --model pump.model").status

    done = run("fit history.csv monday.csv -o new.model --no-drill --detect")

    assert (0, True) == (done.status, "2026-03-16 14:0" in done.out)


@pytest.mark.usefixtures("folder")
def test_a_file_named_twice_is_noted(run: Run) -> None:
    """A pattern and a name may mean the same file."""
    done = run("fit history.csv 'hist*.csv' -o new.model --no-drill")

    assert 0 == done.status
    assert "note: history.csv is named twice, and read once" in done.err
    assert "in 1 file" in done.out


@pytest.mark.usefixtures("folder")
def test_some_numbers_that_are_no_readings_have_a_name(run: Run, folder: Path) -> None:
    """Rows with a sentinel such as 1e15 are left out, and a note says of which channel."""
    lines = (folder / "history.csv").read_text().splitlines()
    lines[300] = lines[300].replace(lines[300].split(",")[2], "1e15")
    (folder / "spiked.csv").write_text("\n".join(lines))

    done = run("fit spiked.csv -o new.model --no-drill")

    assert 0 == done.status
    assert "1 not (too large)" in done.out
    assert "note: channel pressure goes from" in done.err
