"""A unit in a heading is the channel's, from the file to the alarm."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import submerge
from submerge import Channel
from submerge_client.config.sensors import FileSensor
from submerge_client.sensors.files import FileReplay
from submerge_files import model_file
from support.commands import Ran, shell
from support.pump_files import bad_day, readings, write

Run = Callable[[str], Ran]
HEAD, WITH_UNITS = (
    "time,flow,pressure,current,temperature",
    "time,flow [l/min],pressure [bar],current,temperature [°C]",
)


def renamed(path: Path, head: str = WITH_UNITS) -> Path:
    """Put other headings into a file."""
    text = path.read_text()
    path.write_text(text.replace(HEAD, head, 1))
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words."""
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return a folder with a model of two days, and the day after them, the current folder."""
    monkeypatch.chdir(tmp_path)
    renamed(write(tmp_path / "history.csv", readings(2880)))
    renamed(write(tmp_path / "day.csv", bad_day(), first=20_160))
    assert 0 == run("fit history.csv -o plant.model --no-drill").status
    return tmp_path


def test_fit_takes_name_and_unit_apart(folder: Path):
    names = ("flow", "pressure", "current", "temperature")
    units = ("l/min", "bar", "", "°C")

    expected = tuple(map(Channel, names, units))
    assert expected == model_file.read(folder / "plant.model").schema.channels


@pytest.mark.parametrize("head", [WITH_UNITS, HEAD])
def test_detect_finds_columns_with_and_without(folder: Path, run: Run, head: str):
    """In another order, too; the alarm has its value in the channel's unit."""
    text = (folder / "day.csv").read_text().splitlines()
    cells = [line.split(",") for line in [head, *text[1:]]]
    (folder / "day.csv").write_text("\n".join(",".join([a, *b[::-1]]) for a, *b in cells) + "\n")
    done = run("detect day.csv --model plant.model")

    assert 3 == done.status
    assert "    flow " in done.out
    assert " l/min, where the others say " in done.out


@pytest.mark.parametrize("command", ["detect", "score"])
def test_another_unit_is_another_channel(folder: Path, run: Run, command: str):
    """One line, with the heading that may have been meant."""
    renamed(write(folder / "kelvin.csv", readings(50)), WITH_UNITS.replace("°C", "°F"))
    done = run(f"{command} kelvin.csv --model plant.model")

    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert "did you mean 'temperature [°F]'?" in done.err


@pytest.mark.usefixtures("folder")
def test_scores_and_choices_go_by_the_name_alone(run: Run):
    """So do conditions; the heading with its unit is a choice as well."""
    scored = run("score day.csv --model plant.model --when 'flow > 40'")
    fitted = run(
        "fit history.csv -o few.model --no-drill --columns flow..current --when 'flow > 1'"
    )
    named = run("fit history.csv -o two.model --no-drill --columns 'flow [l/min],temperature'")

    assert (0, 0, 0) == (scored.status, fitted.status, named.status)
    assert "no column" not in scored.err
    assert ("flow", "pressure", "current") == model_file.read(Path("few.model")).schema.names
    assert ("flow", "temperature") == model_file.read(Path("two.model")).schema.names


@pytest.mark.slow
def test_frames_have_the_same_headings(folder: Path):
    """A model of files judges a frame with units in its headings, and learns the same from it."""
    pandas = pytest.importorskip("pandas")
    day = pandas.read_csv(folder / "day.csv", parse_dates=["time"], index_col="time")
    model = submerge.Model.load("plant.model")

    assert np.isfinite(model.score(day)["distance"]).all()
    assert [a.began for a in model.detect("day.csv")] == [a.began for a in model.detect(day)]
    assert model.channels == submerge.Model.fit(day).channels


def test_a_client_reads_such_files(folder: Path):
    """Its channels are in an order of their own."""
    sensor = FileReplay(("temperature", "flow"), FileSensor(paths=(folder / "day.csv",)))
    rows: list[np.ndarray] = []
    sensor.read(rows.append, threading.Event())

    expected = np.round(bad_day()[:, [3, 0]], 3)
    assert np.array_equal(expected, np.concatenate(rows))


def test_another_history_is_learnt_under_the_same_channels(folder: Path, run: Run):
    """`--like` finds columns without units, too."""
    renamed(write(folder / "later.csv", readings(1440, seed=5)), HEAD)
    done = run("fit later.csv -o later.model --no-drill --like plant.model")

    assert 0 == done.status
    first, later = (model_file.read(folder / f"{each}.model") for each in ("plant", "later"))
    assert first.schema.fingerprint == later.schema.fingerprint


@pytest.mark.usefixtures("folder")
def test_init_has_the_units(run: Run):
    done = run("client init --from plant.model")

    assert '{ name = "flow", unit = "l/min", offset = ' in done.out
    learnt = run("client init --from history.csv").out
    assert done.out == learnt.replace("history.csv", "plant.model")
