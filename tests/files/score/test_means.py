"""`submerge score --mean`: which mean rows are measured from, and whether a file is near it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import hotelling, spe
from submerge.client.alarms.detector import DetectorState
from submerge.client.monitor_state import MonitorState
from submerge.history.recording import Recorded
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.summaries import Subspaces
from submerge.stats.node_mean import OwnMean
from submerge_files.score.model import deviations_of, of_file
from submerge_files.score.node_file import first_rows
from support.commands import shell
from support.pump_files import readings, write
from support.score_files import (
    DIM,
    LEARNT,
    LIMITS,
    NAMES,
    RANK,
    SCHEMA,
    column,
    kept,
    learnt,
    some_rows,
    table,
    written,
)

OWN = replace(SCHEMA, center="own")
FROM_ITS_OWN = "note: rows are measured from their own file's mean"


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return shell(monkeypatch, capsys)


def state(mean: np.ndarray) -> MonitorState:
    own = OwnMean(mean, None, 5000.0, 5000, 1e6)
    return MonitorState(OWN.fingerprint, own, DetectorState(), DesiredState("pump-1", 0))


def about(mean: np.ndarray, rows: np.ndarray, schema=SCHEMA) -> tuple[np.ndarray, np.ndarray]:
    """SPE and T2 of rows about a mean."""
    shown = replace(learnt(schema), mean=mean).truncated(RANK)
    X = schema.scaled(rows)
    return spe(X, shown), hotelling(X, shown)


@pytest.mark.parametrize("schema", [SCHEMA, OWN], ids=["fleet", "own"])
def test_the_first_rows_may_be_the_reference(submerge, tmp_path, schema):
    """Of each file; a fault that begins later has no part in it."""
    path = kept(tmp_path / "m", schema, summary=learnt(schema), limits=LIMITS)
    parts = some_rows(300, 3, shift=3.0), some_rows(60, 4, shift=-2.0)
    for rows in parts:
        rows[55:, 2] += 9
    files = [written(tmp_path / f"{i}.csv", rows) for i, rows in enumerate(parts)]
    lines = table(submerge("score", *files, "--model", path, "--mean", "first:50").out)

    begin = 0
    for rows in parts:
        mine = lines[begin : begin + len(rows)]
        found = about(schema.scaled(rows[:50]).mean(axis=0), rows, schema)
        for expected, name in zip(found, ("spe", "t2"), strict=True):
            # About a mean of 50 rows, rows vary 1 + 1/50 times as much.
            assert expected / 1.02 == pytest.approx(column(mine, name), rel=1e-6)
        begin += len(rows)


@pytest.mark.parametrize("name", ["pump-1.csv", "machine"])
def test_a_known_machine_is_measured_from_its_own_history(submerge, tmp_path, name):
    """By the file's name; a model of one machine knows every file."""
    mean = learnt(OWN).mean + 1.5
    machine = name.removesuffix(".csv")
    path = kept(
        tmp_path / "m", OWN, summary=learnt(OWN), limits=LIMITS, monitors=((machine, state(mean)),)
    )
    rows = some_rows(80, 3, shift=2.0)
    ran = submerge("score", written(tmp_path / "pump-1.csv", rows), "--model", path)

    expected = about(mean, rows, OWN)[0] / (1 + 1 / 5000)
    assert expected == pytest.approx(column(table(ran.out), "spe"), rel=1e-6)
    assert FROM_ITS_OWN not in ran.err


def test_a_machine_that_is_not_known_is_measured_from_its_file(submerge, tmp_path):
    """A note says so, and what else there is."""
    mean = learnt(OWN).mean + 1.5
    path = kept(
        tmp_path / "m", OWN, summary=learnt(OWN), limits=LIMITS, monitors=(("p-2", state(mean)),)
    )
    rows = some_rows(80, 3, shift=2.0)
    file = written(tmp_path / "pump-1.csv", rows)
    ran = submerge("score", file, "--model", path)
    asked = submerge("score", file, "--model", path, "--mean", "own")

    expected = about(OWN.scaled(rows).mean(axis=0), rows, OWN)[0]
    assert expected == pytest.approx(column(table(ran.out), "spe"), rel=1e-6)
    assert 1 == ran.err.count(FROM_ITS_OWN)
    assert "--mean first:400 takes that of its first rows, --mean model the model's" in ran.err
    assert (ran.out, 0) == (asked.out, asked.err.count(FROM_ITS_OWN))


def test_a_file_at_another_level_is_one_warning(submerge, tmp_path):
    """With the channel, how far, and what to do; not if its own rows are the reference."""
    path = kept(tmp_path / "m", SCHEMA, summary=learnt(), limits=LIMITS)
    rows = some_rows(600)
    rows[:, 3] += 9 * LEARNT[:, 3].std()
    files = [written(tmp_path / f"{i}.csv", rows + i) for i in (0, 1)]
    ran = submerge("score", files[0], "--model", path)
    both = submerge("score", *files, "--model", path)
    first = submerge("score", *files, "--model", path, "--mean", "first:400")

    (said,) = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    before, _, after = said.partition(f"{NAMES[3]} is ")
    assert f"warning: {files[0]} is at another level than the model: " == before
    assert after.startswith("9 standard deviations higher; ")
    assert after.endswith("measure from the first rows (--mean first:400)")
    assert 1 == both.err.count("warning: 2 of 2 files are at another level than the model: in ")
    assert "warning" not in first.err


def test_the_warning_names_the_file_that_is_furthest(submerge, tmp_path):
    """Not the first."""
    path = kept(tmp_path / "m", SCHEMA, summary=learnt(), limits=LIMITS)
    rows = some_rows(300)
    near, far = rows.copy(), rows.copy()
    near[:, 3] += 9 * LEARNT[:, 3].std()
    far[:, 3] += 90 * LEARNT[:, 3].std()
    files = [written(tmp_path / f"{i}.csv", each) for i, each in enumerate((near, far))]

    assert f"in {files[1]} {NAMES[3]} is 9" in submerge("score", *files, "--model", path).err


def test_a_level_that_changes_after_the_first_rows_is_no_warning(submerge, tmp_path):
    """The first rows were asked for; what comes later is for the scores to say."""
    path = kept(tmp_path / "m", SCHEMA, summary=learnt(), limits=LIMITS)
    rows = some_rows(300)
    rows[50:, 3] += 9 * LEARNT[:, 3].std()
    file = written(tmp_path / "x.csv", rows)

    for option, warned in ((), True), (("--mean", "first:50"), False):
        ran = submerge("score", file, "--model", path, *option)
        assert warned == ("warning: " in ran.err)


def test_a_file_with_a_fault_is_at_the_models_level(submerge, tmp_path):
    """However far off a fifth of its rows are, and whatever is missing."""
    path = kept(tmp_path / "m", SCHEMA, summary=learnt(), limits=LIMITS)
    rows = some_rows(600)
    rows[:120, 3] += 1e4
    rows[200:400, 1] = np.nan

    assert (
        "warning" not in submerge("score", written(tmp_path / "x.csv", rows), "--model", path).err
    )


@pytest.mark.parametrize("factors", [False, True])
def test_a_channel_varies_as_its_readings_do(tmp_path, factors):
    """The model's standard deviations, with factors and without."""
    known = Subspaces(RANK).factors(learnt()) if factors else ()
    path = kept(tmp_path / "m", SCHEMA, summary=learnt(), factors=known)
    found = deviations_of(of_file(path, None))

    scaled = SCHEMA.scaled(LEARNT)
    assert scaled.std(axis=0) == pytest.approx(found, rel=0.05)
    assert (DIM,) == found.shape


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 40))
def test_the_first_rows_are_the_same_however_a_file_is_cut(sizes, most):
    """No row more, and none less."""
    n = sum(sizes)
    cut = np.split(np.arange(n), np.cumsum(sizes)[:-1]) if sizes else []
    parts = (Recorded("m", part[:, None] * 1.0, None, "x.csv", 1) for part in cut)
    found = [row for part in first_rows(parts, most) for row in part.rows[:, 0].tolist()]

    assert list(range(min(n, most))) == found


@pytest.mark.slow
def test_a_fitted_model_scores_each_machine_from_its_own_mean(submerge, tmp_path):
    """Two machines of one kind at different levels, and one that the model does not know."""
    for name, seed, level in (("north", 1, 0.0), ("south", 2, 50.0)):
        write(tmp_path / f"{name}.csv", readings(3000, seed, level=level))
    submerge("fit", "north.csv", "south.csv", "--node-by", "file", "-o", "m")
    (tmp_path / "new").mkdir()
    rows = readings(500, 3, first=3000, level=50.0)
    rows[400:, 0] += 6
    south = write(tmp_path / "new" / "south.csv", rows, first=3000)
    west = write(tmp_path / "new" / "west.csv", rows, first=3000)
    known = submerge("score", south, "--model", "m")
    unknown = submerge("score", west, "--model", "m")

    over = column(table(known.out), "over")
    assert np.nan_to_num(over[:400]).astype(bool).mean() < 0.2
    assert 1.0 == np.nan_to_num(over[400:]).astype(bool).mean()
    assert (0, 1) == (known.err.count(FROM_ITS_OWN), unknown.err.count(FROM_ITS_OWN))
    assert "2026-03-04T02:00:00+00:00" == table(known.out)[0]["time"]
