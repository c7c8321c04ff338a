"""`submerge.Model`: what the commands do, for files, frames and arrays."""

from __future__ import annotations

import contextlib
import csv
import doctest
import json
import pickle
import re
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import submerge
from submerge_files.python import model as module
from submerge_operate import cli
from support.pump_files import BEGIN, FAULT, NAMES, bad_day, readings, write

FIRST = 20_160
"""Minutes after `BEGIN` at which the bad day begins: two weeks."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two weeks, a day with a fault, and a model by the command."""
    folder = tmp_path_factory.mktemp("pump")
    write(folder / "history.csv", readings(FIRST))
    write(folder / "bad.csv", bad_day(), first=FIRST)
    words = ["fit", f"{folder}/history.csv", "-o", f"{folder}/command.model"]
    cli.submerge.main(words, standalone_mode=False)
    return folder


@pytest.fixture(scope="module")
def model(house: Path) -> submerge.Model:
    return submerge.Model.fit(house / "history.csv")


def test_it_is_the_file_of_the_command(house: Path, model: submerge.Model):
    """What `fit` learns and `save` writes has the bytes of `submerge fit`."""
    model.save(house / "class.model")

    assert (house / "command.model").read_bytes() == (house / "class.model").read_bytes()


def test_it_says_what_it_is(model: submerge.Model):
    assert (NAMES, 1, 60.0, ("machine",)) == (
        model.channels,
        model.rank,
        model.period_s,
        model.machines,
    )
    assert "at most 1 false alarm per week" == model.limits
    assert repr(model) == (
        "<submerge.Model of 4 channels, rank 1, 20,160 rows, one every 60 s;"
        " limits: at most 1 false alarm per week>"
    )


def test_alarms_are_those_of_the_command(
    house: Path, model: submerge.Model, capsys: pytest.CaptureFixture[str]
):
    """Of a file: times, channels, values and expected values."""
    words = ["detect", f"{house}/bad.csv", "--model", f"{house}/command.model", "--json"]
    with contextlib.suppress(SystemExit):
        cli.submerge.main(words, standalone_mode=False)
    (said,) = map(json.loads, capsys.readouterr().out.splitlines())
    (alarm,) = model.detect(house / "bad.csv")

    assert datetime.fromtimestamp(said["began"]["time"], UTC) == alarm.began
    assert datetime.fromtimestamp(said["ended"]["time"], UTC) == alarm.ended
    assert (said["worst"], said["first"]) == (alarm.worst, alarm.channels)
    assert {name: each["value"] for name, each in said["deviations"].items()} == alarm.value
    assert {name: each["expected"] for name, each in said["deviations"].items()} == alarm.expected
    assert said["began"]["file"] == alarm.file


def test_an_array_has_row_numbers(house: Path, model: submerge.Model):
    """Counted from 0, so that they index the array."""
    rows = bad_day().round(3)
    (alarm,), (same,) = model.detect(rows), model.detect(house / "bad.csv")

    began = BEGIN + timedelta(minutes=FIRST + alarm.began)
    assert (began, same.worst, same.channels) == (same.began, alarm.worst, alarm.channels)
    assert rows[alarm.peaked, 0] == pytest.approx(alarm.value["flow"])
    assert FAULT.start <= alarm.began <= FAULT.start + 10


def test_the_picture_is_that_of_the_command(house: Path, model: submerge.Model):
    """Of a file and of an array: the same scores over their limit, and the alarm."""
    pytest.importorskip("matplotlib")
    of_file, of_array = model.plot(house / "bad.csv"), model.plot(bad_day().round(3))

    assert "1,440 rows judged, 1 alarm" == of_file.axes[0].get_title(loc="left")
    first, second = (each.axes[0].get_lines()[0].get_ydata() for each in (of_file, of_array))
    np.testing.assert_allclose(first, second)
    assert first[FAULT.start + 10 : FAULT.stop].min() > 1 > first[: FAULT.start].max()


def test_an_alarm_reads_like_one(model: submerge.Model):
    (alarm,) = model.detect(bad_day())

    said = r"<Alarm 84\d to 9\d\d, [\d.]+ times its limit: flow \d+%.*; flow [\d.]+, expected .*>"
    assert re.fullmatch(said, repr(alarm))


def test_saved_and_loaded_it_gives_the_same_numbers(tmp_path: Path, model: submerge.Model):
    """Bit for bit: in memory it is what its file holds."""
    model.save(tmp_path / "pump.model")
    loaded, rows = submerge.Model.load(tmp_path / "pump.model"), bad_day()
    mine, its = model.score(rows), loaded.score(rows)

    assert {name: each.tobytes() for name, each in mine.items()} == {
        name: each.tobytes() for name, each in its.items()
    }
    assert model.detect(rows) == loaded.detect(rows)


def test_scores_are_those_of_the_command(house: Path, model: submerge.Model, capsys):
    """Distance, SPE and T2 to the digits of a line, shares, and how close alarms are."""
    words = ["score", f"{house}/bad.csv", "--model", f"{house}/command.model"]
    cli.submerge.main(words, standalone_mode=False)
    lines = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    scores = model.score(bad_day().round(3))

    for name in ("distance", "spe", "t2", "alarm_ewma"):
        assert pytest.approx([float(line[name]) for line in lines], rel=1e-3) == scores[name]
    for name in ("over", "over_spe", "over_t2"):
        assert [float(line[name] or 0) for line in lines] == scores[name].tolist()


def test_gaps_are_filled_and_counted(model: submerge.Model):
    """A row with a gap has scores; a row without most of its channels has none."""
    rows = readings(5, 3)
    rows[1, 2], rows[2, :3] = np.nan, np.nan
    scores = model.score(rows)

    assert [0, 1, 0, 0, 0] == scores["filled"].tolist()
    for name in ("distance", "spe", "t2", "over", "over_spe", "over_t2"):
        assert [False, False, True, False, False] == np.isnan(scores[name]).tolist()


def test_a_row_is_explained(model: submerge.Model):
    """The faulty channel comes first, with the size of the fault; shares sum to 1."""
    rows = bad_day()
    said = model.explain(rows, FAULT.start + 5)

    assert "flow" == said["channel"][0]
    assert rows[FAULT.start + 5, 0] == said["value"][0]
    assert pytest.approx(6, abs=2) == said["difference"][0]
    assert pytest.approx(said["value"] - said["expected"]) == said["difference"]
    assert pytest.approx(1) == said["share"].sum()


def test_rows_in_another_state_have_no_score(model: submerge.Model):
    rows = readings(200, 3)
    scores = model.score(rows, when="flow > 40")

    assert (rows[:, 0] <= 40).tolist() == np.isnan(scores["spe"]).tolist()


def test_another_level_is_a_warning(model: submerge.Model):
    """A fault in less than half of the rows is none."""
    rows = readings(200, 3)
    rows[:, 1] += 12
    with pytest.warns(UserWarning, match=r"another level .*: pressure is \d+ standard.* higher"):
        model.score(rows)
    with pytest.warns(UserWarning, match="another level") as caught:
        model.detect(rows)
    assert __file__ == caught[0].filename
    pytest.importorskip("matplotlib")
    with pytest.warns(UserWarning, match="another level") as caught:
        model.plot(rows)
    assert __file__ == caught[0].filename

    rows = readings(200, 3)
    rows[:90, 1] += 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(rows)


def test_rows_in_another_state_are_of_no_level(model: submerge.Model):
    """They are not judged: that they are elsewhere is no warning, as in `submerge detect`."""
    rows = np.concatenate((readings(100, 3), np.zeros((200, 4))))
    with pytest.warns(UserWarning, match="another level"):
        model.score(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(rows, when="flow > 1")
        model.detect(rows, when="flow > 1")


@pytest.mark.slow
def test_machines_have_means_of_their_own(tmp_path: Path):
    """Which machine rows are of is asked, and the level is that machine's."""
    for i in range(2):
        write(tmp_path / f"pump{i}.csv", readings(3000, i, level=30.0 * i))
    model = submerge.Model.fit(tmp_path, node_by="file")
    rows = readings(400, 5, level=30.0)

    assert 2 == len(model.machines)
    scores = model.score(rows, machine=model.machines[1])
    assert np.median(scores["distance"]) < 10
    assert [] == model.detect(rows, machine=model.machines[1])
    with pytest.warns(UserWarning, match="another level"):
        model.score(rows, machine=model.machines[0])
    with pytest.raises(submerge.UsageError, match=r"own mean, got none; the model knows pump0"):
        model.score(rows)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda model: model.score("bad.csv"), "got a path: read it first"),
        (lambda model: model.score(3), "got int; make it"),
        (lambda model: model.score(np.ones(4)), r"got shape \(4,\)"),
        (lambda model: model.score(np.ones((4, 3))), "expected 4 names, got|got shape|names"),
        (lambda model: model.detect("none.csv"), "expected a file, got nothing of that name"),
        (lambda model: model.detect(readings(99), at_most="often"), "at_most"),
        (lambda model: model.score(readings(9), time="t"), "column 't'"),
        (lambda model: model.explain(readings(9), 9), "from 0 to 8, got 9"),
        (lambda model: model.explain(np.full((9, 4), np.nan), 1), "row 1: .* got gaps"),
        (lambda _: submerge.Model.fit(readings(99), names=NAMES[:2]), "expected 4 names, got 2"),
        (lambda model: model.explain(readings(9), slice(3)), "the number of a row"),
        (lambda _: submerge.Model.fit(readings(99), rank="auto"), "rank"),
        (lambda _: submerge.Model.fit(readings(99), columns="x0"), "a list of columns"),
        (lambda _: submerge.Model.fit(readings(99), node_by="file"), "are for files"),
        (lambda _: submerge.Model.fit("none.csv", names=NAMES), "files have headings"),
        (lambda _: submerge.Model.load("none.model"), "a saved model in none.model"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_cure(model: submerge.Model, mistake, said: str):
    with pytest.raises(submerge.UsageError, match=said) as caught:
        mistake(model)

    assert 1 == len(str(caught.value).splitlines())


def test_it_is_found_in_the_package_that_users_import():
    """By its public name, in errors and pickles of the class too."""
    assert submerge.Model is module.HistoryModel
    assert "Model" in dir(submerge)
    assert "submerge.Model" == f"{submerge.Model.__module__}.{submerge.Model.__qualname__}"
    assert submerge.Model is pickle.loads(pickle.dumps(submerge.Model))  # noqa: S301
    with pytest.raises(AttributeError, match="has no attribute 'Modell'"):
        submerge.Modell  # noqa: B018


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "msgspec", None)

    with pytest.raises(submerge.UsageError, match=r"msgspec.*: pip install 'submerge\[files\]'"):
        submerge.Model.fit(readings(99))


def test_its_example_is_true():
    found = doctest.DocTestFinder(recurse=False).find(module.HistoryModel, module=False, globs={})
    runner = doctest.DocTestRunner()

    assert [0] == [runner.run(example).failed for example in found]
    assert runner.tries > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3])
def test_a_masked_array_has_gaps_where_it_is_masked(seed: int):
    """What is under a mask, such as -9999 of netCDF, is no reading in `fit` and `score`."""
    rows = readings(4000)
    mask = np.random.default_rng(seed).random(rows.shape) < 0.02
    gaps = np.where(mask, np.nan, rows)
    masked = np.ma.masked_array(np.where(mask, -9999.0, rows), mask)

    by_gaps, by_mask = (submerge.Model.fit(each, names=NAMES) for each in (gaps, masked))

    assert by_gaps.packed == by_mask.packed
    for name, column in by_gaps.score(gaps).items():
        assert np.array_equal(column, by_mask.score(masked)[name], equal_nan=True)
    assert [] == by_mask.detect(masked)


@pytest.mark.parametrize("value", [1e11, 1e15, 1e38, 1e308, -1e308, np.inf])
def test_a_failing_sensor_raises_an_alarm_whatever_it_reads(model: submerge.Model, value: float):
    """A reading that is none, as of a float with exchanged words, is no reason for silence."""
    day = bad_day()
    day[100:200, 1] = value

    first, *_ = model.detect(day, names=NAMES)
    scores = model.score(day[:300], names=NAMES)

    assert 100 <= first.began <= 102
    assert NAMES[1] in first.channels
    assert (scores["distance"][100:200] > 1e15).all()
    assert np.isfinite(scores["distance"]).all()
    assert (scores["over"][100:200] == scores["over"].max()).all()


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e15, 1e300, np.inf])
def test_a_history_with_what_is_no_reading_says_so(value: float):
    """Such rows are not learnt, which a warning says, and nothing else changes."""
    rows = readings(4000)
    rows[2000:2100, 1] = value

    with pytest.warns(UserWarning, match=f"channel {NAMES[1]} goes from .* are not learnt"):
        model = submerge.Model.fit(rows, names=NAMES)

    assert [] == model.detect(readings(4000))


@pytest.mark.slow
def test_values_that_mark_something_are_said_of_frames_as_of_files():
    """A value far from all others, often, is named; with `when`, only of rows that are learnt."""
    rows = readings(4000)
    rows[2000:2100, 1] = 1e11

    with pytest.warns(UserWarning, match=f"channel {NAMES[1]} is 1e.11 in 100 rows"):
        submerge.Model.fit(rows, names=NAMES)
    submerge.Model.fit(rows, names=NAMES, when=f"{NAMES[1]} < 1e10")


@pytest.mark.slow
def test_a_valve_and_the_flow_that_it_moves_are_named_as_twins(tmp_path: Path):
    """While a fault of one could be the other's; alarms, their JSON, a row and scores say it."""
    rng, n = np.random.default_rng(0), 8000
    load = np.sin(np.arange(n) / 200) + 0.3 * rng.normal(size=n)
    heat = np.cos(np.arange(n) / 300) + 0.3 * rng.normal(size=n)
    causes = [load, 40 + 12 * load, load / 2 + heat, heat, load - heat, 0.3 * load + 0.2 * heat]
    noise = np.array([0.02, 0.3, 0.2, 0.2, 0.2, 0.2])
    rows = np.stack(causes, axis=1) + noise * rng.normal(size=(n, 6))
    names = ["valve", "flow", "pressure", "temperature", "level", "current"]
    model = submerge.Model.fit(rows[:6000], names=names)

    def found(channel: int, size: float):
        bad = rows[6000:].copy()
        bad[500:700, channel] += size
        (alarm,) = (each for each in model.detect(bad) if 500 <= each.began < 700)
        return alarm, bad

    for channel, small, large in ((0, 0.3, 1.0), (1, 1.5, 5.0)):
        alarm, bad = found(channel, small)
        assert {"valve", "flow"} == set(alarm.twins)
        assert " or " in repr(alarm)
        assert ((), names[channel]) == (
            found(channel, large)[0].twins,
            next(iter(found(channel, large)[0].channels)),
        )
    said = model.explain(bad, 505)
    assert {("valve", "flow"), ("flow", "valve")} == set(
        zip(said["channel"][:2], said["twin"][:2], strict=True)
    )
    assert not said["twin"][2:].any()
    model.save(tmp_path / "valves.model")
    write_rows(tmp_path / "bad.csv", names, bad)
    runner, asked = CliRunner(), ("--model", f"{tmp_path}/valves.model", f"{tmp_path}/bad.csv")
    printed = runner.invoke(cli.submerge, ["detect", *asked, "--json"]).stdout
    assert {"valve", "flow"} == set(json.loads(printed.splitlines()[0])["twins"])
    told = runner.invoke(cli.submerge, ["detect", *asked]).stdout
    assert "each is told by the other" in told
    lines = runner.invoke(cli.submerge, ["score", *asked, "--json"]).stdout.splitlines()
    assert {"valve", "flow"} == set(json.loads(lines[505])["twins"])
    assert "twins" not in json.loads(lines[100])


def write_rows(path: Path, names: list[str], rows: np.ndarray) -> None:
    np.savetxt(path, rows, "%.9g", ",", header=",".join(names), comments="")
