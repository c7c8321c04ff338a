"""A fit with known faults: what is learnt, which alarms there would be, and what is found."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from submerge_files import model_file
from support.commands import Ran, shell
from support.pump_files import BEGIN, readings, write

Run = Callable[[str], Ran]


def at(minute: int) -> str:
    """Return when a row is."""
    return (BEGIN + timedelta(minutes=minute)).isoformat()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a history with two faults and a standstill, and a file of the faults."""
    folder = tmp_path_factory.mktemp("pump")
    rows = readings(6000)
    rows[2000:2200, 0] += 6
    rows[3000:3300] = 0
    rows[4000:4100, 2] += 4
    write(folder / "history.csv", rows)
    faults = f"{at(2000)},{at(2199)},flow meter\n{at(4000)},{at(4099)},current\n"
    (folder / "faults.csv").write_text(f"from,to,text\n{faults}2030-01-01,2030-01-02,later\n")
    return folder


@pytest.fixture
def run(house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words in that folder."""
    monkeypatch.chdir(house)
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


STILL = f"--exclude '{at(3000)}..{at(3299)}'"
KNOWN = f"fit history.csv -o a.model {STILL} --labels faults.csv"


def test_known_faults_are_not_learnt_and_compared_with_the_alarms(run: Run, house: Path):
    """Nothing else is left out unless that is asked for."""
    done = run(f"{KNOWN} --no-drill")

    assert 0 == done.status, done.err
    assert "learnt     5,400 rows; 300 not (excluded); 300 not (labelled as faults)" in done.out
    assert "labels     2 of 2 known faults found; median delay" in done.out
    assert "0 false alarms (0 a machine and week); 1 label without rows in" in done.out
    assert "left out " not in done.out
    assert 5400 == model_file.read(house / "a.model").model.counts.learnt


@pytest.mark.slow
def test_what_is_unlike_the_rest_may_be_left_out_beside_labels(run: Run):
    words = "fit history.csv -o a.model --labels faults.csv --no-drill"

    assert "unlike all others" in run(f"{words} --leave-out").out
    assert "unlike all others" not in run(words).out


@pytest.mark.slow
def test_detection_on_the_history_is_that_of_detect(run: Run):
    """The same alarms, at the same rows, as `submerge detect` prints; excluded rows have none."""
    done = run(f"{KNOWN} --no-drill --detect")
    report = run(f"{KNOWN} --no-drill").out
    alarms = done.out.removeprefix(report)
    later = run("detect history.csv --model a.model").out

    assert 2 == alarms.count("where the others say")
    assert {*alarms.splitlines()} < {*later.splitlines()}
    assert "alarms     2" in done.err


@pytest.mark.slow
def test_json_has_labels_alarms_and_the_drill(run: Run):
    said = json.loads(run(f"{KNOWN} --detect --json").out)

    assert (2, 0, 1) == tuple(said["labels"][k] for k in ("found", "missed", "outside"))
    assert 0 <= said["labels"]["median_delay_s"] <= 300
    assert [2001, 4001] == [pytest.approx(each["began"]["row"], abs=9) for each in said["alarms"]]
    assert ["flow", "pressure", "current", "temperature"] == [
        each["channel"] for each in said["drill"]["channels"]
    ]
    assert {"excluded": 300, "labelled as faults": 300, "unlike the others": 0} == said["left_out"]


@pytest.mark.slow
def test_the_report_says_what_would_be_found(run: Run):
    """In standard deviations, and of the worst channel in its unit; --no-drill leaves it out."""
    done = run(f"fit history.csv -o a.model {STILL}")

    assert "drill      a bias of 0." in done.out
    assert "standard deviations is found within 60 rows (median " in done.out
    assert "; worst: " in done.out
    assert "drill" not in run(f"fit history.csv -o a.model {STILL} --no-drill").out


@pytest.mark.slow
def test_it_draws_the_history(run: Run, house: Path):
    """With what was left out."""
    pytest.importorskip("matplotlib")
    done = run(f"{KNOWN} --no-drill --plot history.png")

    assert 0 == done.status, done.err
    assert "picture    history.png" in done.err
    assert (house / "history.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_machines_of_the_same_days_are_drawn_in_the_order_of_time(run: Run, house: Path):
    """Without a warning of the library that draws."""
    pytest.importorskip("matplotlib")
    write(house / "north.csv", readings(1500, 1))
    write(house / "south.csv", readings(1500, 2, level=50.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = run("fit north.csv south.csv -o b.model --node-by file --plot both.png")

    assert 0 == done.status, done.err
    assert (house / "both.png").read_bytes().startswith(b"\x89PNG")
    assert "drill      " in done.out


@pytest.mark.slow
def test_rows_without_times_are_learnt_and_judged(run: Run, house: Path):
    """JSON has null for what has no time; a picture counts rows."""
    pytest.importorskip("matplotlib")
    rows = readings(3000)
    rows[2000:2060, 0] += 12
    write(house / "plain.csv", rows, timed=False)
    done = run("fit plain.csv -o b.model --detect --plot plain.png --no-drill")
    said = run("fit plain.csv -o b.model --detect --json --no-drill").out

    assert 0 == done.status, done.err
    assert "plain.csv row 200" in done.out
    assert "NaN" not in said
    assert (None, None) == tuple(json.loads(said)[key] for key in ("first", "last"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "--exclude 2031-01-01..",
            "expected rows in the excluded span 2031-01-01T00:00:00Z.., got",
        ),
        ("--exclude 2020-01-01..2031-01-01", "got none: all 6,000 are excluded"),
        ("--exclude 2026-03-05..2026-03-04", "with FROM before TO"),
        ("--exclude 2026-03-05.. --time none --skip time", "got rows without times"),
        ("--labels history.csv", "line 1: expected the headings from and to, start and end"),
        ("--labels none.csv", "none.csv: expected a CSV of known faults, got No such file"),
        ("--plot history.csv", "expected a picture's name to end in .png"),
        ("--rank 4", "expected --rank below the number of channels, 4, got 4"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_cure(run: Run, house: Path, words: str, said: str):
    """And no model is written."""
    done = run(f"fit history.csv -o no.model {words}")

    assert 2 == done.status
    assert said in done.err
    assert 1 == len(done.err.strip().splitlines())
    assert not (house / "no.model").exists()
