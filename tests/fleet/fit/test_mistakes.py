"""Mistakes on the command line of `fit`, `detect` and `score`: one line, with what to do."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import Ran, shell
from support.pump_files import bad_day, readings, write

Run = Callable[[str], Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words."""
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return a folder with a history, its model and a day, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "history.csv", readings(3000))
    write(tmp_path / "monday.csv", bad_day(), first=20_160)
    assert 0 == run("fit history.csv -o pump.model --no-drill").status
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
    assert "the files have that column, but only channels are compared: learn it" in done.err


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
