"""`submerge detect`: alarms on files, at their times and with their channels."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from submerge.client.alarms.detector import DetectorState
from submerge.stats.quantile_sketch import FINE, empty
from submerge_files import model_file
from submerge_files.detect.run import detect, request_of
from submerge_files.reader import ReadingOptions
from submerge_operate import cli
from support.commands import Ran, shell
from support.pump_files import BEGIN, FAULT, bad_day, readings, write

FIRST = 20_160
"""Minutes after `BEGIN` at which the day begins: two weeks."""


Run = Callable[[str], Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words."""
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of two weeks, a day with a fault, and one without."""
    folder = tmp_path_factory.mktemp("pump")
    write(folder / "history.csv", readings(FIRST))
    write(folder / "bad.csv", bad_day(), first=FIRST)
    write(folder / "good.csv", readings(1440, 2, first=FIRST), first=FIRST)
    words = ["fit", f"{folder}/history.csv", "-o", f"{folder}/pump.model"]
    cli.submerge.main(words, standalone_mode=False)
    return folder


@pytest.fixture
def here(house: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(house)
    return house


@pytest.mark.usefixtures("here")
def test_a_fault_is_found_at_its_time_and_named(run: Run):
    """The exit status says that there was an alarm."""
    done = run("detect bad.csv --model pump.model")

    assert 3 == done.status
    assert done.out.startswith("2026-03-16 14:0")
    assert "flow 6" in done.out or "flow 5" in done.out
    assert "where the others say" in done.out
    assert "alarms     1" in done.err


@pytest.mark.usefixtures("here")
def test_json_has_an_object_for_each_alarm(run: Run):
    (line,) = run("detect bad.csv --model pump.model --json").out.splitlines()
    alarm = json.loads(line)
    began = (BEGIN + timedelta(minutes=FIRST + FAULT.start)).timestamp()

    assert 0 <= alarm["began"]["time"] - began <= 600
    assert FAULT.start < alarm["began"]["row"] <= FAULT.start + 11
    assert ("bad.csv", False) == (alarm["began"]["file"], alarm["provisional"])
    assert "flow" == next(iter(alarm["first"]))
    value, expected = alarm["deviations"]["flow"].values()
    assert pytest.approx(6, abs=3) == value - expected


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_score_shows_what_it_alarms_on(here: Path, run: Run, form: str):
    """A column for each statistic of alarms, over its limit: the alarm begins where one is."""
    (line,) = run("detect bad.csv --model pump.model --json").out.splitlines()
    alarm = json.loads(line)
    if form == "parquet":
        reader = pytest.importorskip("pyarrow.parquet")
        run("score bad.csv --model pump.model -o scores.parquet")
        lines = reader.read_table(here / "scores.parquet").to_pylist()
    elif form == "json":
        said = run("score bad.csv --model pump.model --json").out.splitlines()
        lines = [json.loads(line) for line in said]
    else:
        said = run("score bad.csv --model pump.model").out.splitlines()
        lines = list(csv.DictReader(said))
    columns = [name for name in lines[0] if name.startswith("alarm_")]
    near = [max(float(line[name]) for name in columns) for line in lines]

    assert {"alarm_ewma", "alarm_channel"} <= {*columns}
    over = [row for row, each in enumerate(near, 1) if each > 1]
    assert alarm["began"]["row"] == over[0] < over[-1] <= alarm["ended"]["row"]
    assert 3 < max(near) <= alarm["worst"]  # of single rows


@pytest.mark.usefixtures("here")
def test_a_day_without_a_fault_has_no_alarm(run: Run):
    done = run("detect good.csv --model pump.model")

    assert (0, "") == (done.status, done.out)
    assert "rows       1,440 judged" in done.err
    assert "alarms     0" in done.err


def test_it_draws_a_picture(here: Path, run: Run):
    pytest.importorskip("matplotlib")
    done = run("detect bad.csv --model pump.model --plot bad.png")

    assert 3 == done.status
    assert (here / "bad.png").read_bytes().startswith(b"\x89PNG")


def test_a_fault_of_one_machine_is_in_the_picture_of_several():
    """Others of the same moments do not cover it."""
    plot = pytest.importorskip("submerge_files.detect.plot")
    times = np.repeat([0.0, 60.0, 120.0, 240.0], 2)
    over = np.array([1.0, 2, 9, 3, 1, 1, 5, 4])
    errors = np.column_stack((over, -over))

    when, highest, largest = plot.at_once(times, over, errors, 120.0)

    assert [0.0, 120.0, 240.0] == when.tolist()
    assert [9.0, 1.0, 5.0] == highest.tolist()
    assert [[9.0, -1.0], [1.0, -1.0], [5.0, -4.0]] == largest.tolist()


@pytest.mark.usefixtures("here")
def test_rows_in_another_state_have_no_note(here: Path, run: Run):
    """A standstill that a condition leaves out is known."""
    rows = readings(3000)
    rows[::50] = 0
    write(here / "still.csv", rows)
    fitted = "fit still.csv -o still.model --no-drill"

    assert "in all others" in run(fitted).err
    assert "in all others" not in run(f"{fitted} --when 'flow > 0'").err
    assert "in all others" not in run("detect still.csv --model still.model").err
    assert "in all others" in run("detect still.csv --model still.model --when 'flow > -1'").err


def test_columns_go_by_name(here: Path, run: Run):
    """In another order, and beside columns that the model does not know."""
    lines = (here / "bad.csv").read_text().splitlines()
    turned = [",".join(reversed(line.split(","))) for line in lines]
    (here / "turned.csv").write_text("\n".join(turned) + "\n")

    same = run("detect bad.csv --model pump.model").out
    assert same == run("detect turned.csv --model pump.model").out


def test_few_rows_have_provisional_limits(here: Path, run: Run):
    write(here / "short.csv", readings(400))
    run("fit short.csv -o short.model")
    done = run("detect bad.csv --model short.model")

    assert "provisional: about 1 false alarm in" in done.err
    assert ", provisional:" in done.out


def test_limits_of_a_short_history_are_settled_when_it_is_learnt(here: Path, run: Run):
    """`fit` says them and how they came; they are the same whatever is judged."""
    write(here / "short.csv", readings(400))
    write(here / "faulty.csv", readings(60, 5) + np.array([8, 0, 0, 0]))
    fitted = run("fit short.csv -o short.model --no-drill").out
    said = re.search(r"about 1 false alarm in [\d,]+ rows", fitted)

    assert said
    assert "(extrapolated)" in fitted
    for file in ("good.csv", "bad.csv", "faulty.csv"):
        assert said[0] in run(f"detect {file} --model short.model").err
    assert 3 == run("detect faulty.csv --model short.model").status


def test_a_model_without_limits_takes_none_from_what_is_judged(here: Path, run: Run):
    """An earlier version kept no held-out scores of few rows: it has to be fitted again."""
    write(here / "short.csv", readings(400))
    run("fit short.csv -o short.model --no-drill")
    learnt = model_file.read(here / "short.model").learnt
    states = [(name, replace(each, detector=DetectorState())) for name, each in learnt.monitors]
    model_file.save(here / "old.model", replace(learnt, monitors=tuple(states)))
    done = run("detect bad.csv --model old.model")

    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert "no alarm limits, since its history is of 400 rows: fit more of them" in done.err


def test_a_model_of_an_earlier_version_has_a_note(here: Path, run: Run):
    """It has limits of the distance, which nothing is compared with any more, and none of ewma."""
    learnt = model_file.read(here / "pump.model").learnt
    maxima = learnt.model.maxima
    earlier = replace(maxima, distance=maxima.ewma, smoothed=maxima.ewma, ewma=empty(FINE))
    model_file.save(
        here / "earlier.model", replace(learnt, model=replace(learnt.model, maxima=earlier))
    )

    assert "an earlier version made the model" in run("detect bad.csv --model earlier.model").err
    assert "an earlier version" not in run("detect bad.csv --model pump.model").err


def test_rows_are_numbered_as_in_their_file(here: Path, run: Run):
    """Also where those of two machines alternate, or where they are sorted."""
    lines = (here / "bad.csv").read_text().splitlines()
    both = [f"{lines[0]},pump", *(f"{x},{p}" for x in lines[1:] for p in ("north", "south"))]
    (here / "both.csv").write_text("\n".join(both))
    (here / "turned_round.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    alarms = [
        json.loads(line)
        for words in ("both.csv --node-by pump", "turned_round.csv --sort")
        for line in run(f"detect {words} --model pump.model --json").out.splitlines()
    ]
    north, south, turned = (alarm["began"]["row"] for alarm in alarms)

    assert FAULT.start <= (north - 1) // 2 <= FAULT.start + 10
    assert (north + 1, "north") == (south, alarms[0]["machine"])
    assert FAULT.start <= 1440 - turned <= FAULT.start + 10


def test_another_pace_of_rows_is_noted(here: Path, run: Run):
    """Then false alarms come as many times more often than promised."""
    write(here / "timeless.csv", readings(1440, 2), timed=False)
    lines = (here / "good.csv").read_text().splitlines()
    (here / "slow.csv").write_text("\n".join([lines[0], *lines[1::10]]))

    note = "and the model has learnt one every 60 s"
    assert f"a row comes every 10 min, {note}" in run("detect slow.csv --model pump.model").err
    assert f"rows have no times, {note}" in run("detect timeless.csv --model pump.model").err
    assert "note: a row" not in run("detect good.csv --model pump.model").err


def test_a_picture_of_rows_without_times_counts_rows(here: Path):
    """Also by a model that was learnt from rows with times: not from 1970 on."""
    write(here / "untimed.csv", readings(1440, 2), timed=False)

    def period_of(file: str) -> float:
        asked = request_of([file], Path("pump.model"), ReadingOptions(), "1 false per week", None)
        return detect(*asked).period_s

    assert (0.0, 60.0) == (period_of("untimed.csv"), period_of("good.csv"))


def test_machines_with_less_than_a_day_each_have_provisional_limits(here: Path, run: Run):
    """Their own means are not settled by then: the rate is said, and no fault is passed over."""
    for seed, name in enumerate(("north", "south")):
        write(here / f"{name}.csv", readings(900, seed))
    fitted = run("fit north.csv south.csv --node-by file -o young.model")
    (here / "later").mkdir()
    write(here / "later" / "north.csv", bad_day())
    done = run("detect later/north.csv --node-by file --model young.model")

    assert "provisional: about 1 false alarm in " in fitted.out
    assert 3 == done.status
    assert "provisional: flow" in done.out
    assert "provisional: about 1 false alarm in " in done.out + done.err


def test_files_without_times_have_rows(here: Path, run: Run):
    write(here / "plain.csv", bad_day(), timed=False)
    done = run("detect plain.csv --model pump.model")

    assert done.out.startswith("plain.csv row 84")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("detect bad.csv --model none.model", "expected a saved model in none.model"),
        ("detect bad.csv --model bad.csv", "bad.csv is not a model file"),
        ("detect bad.csv", "--model"),
        ("detect none.csv --model pump.model", "expected a file, got nothing of that name"),
        ("detect bad.csv --model pump.model --at-most often", "at_most"),
        ("detect bad.csv --model pump.model --columns flow,current", "got none for pressure"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_mistake_is_one_line_that_names_the_cure(run: Run, words: str, said: str):
    done = run(words)

    assert 2 == done.status
    assert said in done.err
    assert 1 == len(done.err.strip().splitlines())


def test_a_missing_channel_is_an_error_that_names_it(here: Path, run: Run):
    text = (here / "bad.csv").read_text().replace("pressure", "presure")
    (here / "typo.csv").write_text(text)
    done = run("detect typo.csv --model pump.model")

    assert 2 == done.status
    assert "pressure" in done.err
    assert "presure" in done.err
