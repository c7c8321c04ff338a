"""A cluster learns what one machine learns, to rounding, and the same bytes in any order."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge.condition import Condition, InState
from submerge.errors import NothingLearnt
from submerge.history.fit import Fitted
from submerge.history.recording import TimeSpan
from submerge.history.settings import SOON, FitSettings
from submerge_files.detect.run import DetectRequest, as_object, detect
from submerge_files.fit import apart
from submerge_files.model_file import learnt_of
from submerge_files.reader import ReadingOptions, open_recordings, recordings
from support.six_channels import EPOCH, NAMES, PERIOD, SCALE, normal
from support.workers import WorkersHere, assert_alike, file_bytes, on_workers, plain

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of some hundred rows, so that many of them share a file and a cell."""
    monkeypatch.setattr("submerge.history.fit.CHUNK", 128)
    monkeypatch.setattr(recordings, "MOST_PIECE", 256)
    monkeypatch.setattr(apart, "LEAST_ROWS", 200)
    monkeypatch.setattr(apart, "LOOKED", 2)


def written(folder: Path, rows: np.ndarray, cuts: list[int], *, timed: bool = True) -> list[Path]:
    """Write rows as Parquet files that are cut there; return their paths."""
    times = (EPOCH * 1e6 + PERIOD * 1e6 * np.arange(len(rows))).astype("M8[us]")
    paths, start = [], 0
    for number, end in enumerate([*sorted({*cuts}), len(rows)]):
        columns = {name: rows[start:end, i] for i, name in enumerate(NAMES)}
        table = pa.table(({"time": times[start:end]} if timed else {}) | columns)
        paths.append(folder / f"{number:02}.parquet")
        pq.write_table(table, paths[-1], row_group_size=100)
        start = end
    return paths


def both(
    paths: list[Path], asked: FitSettings, seed: int = 0, **options: object
) -> tuple[Fitted, Fitted]:
    """Return what one machine learns, and a cluster: twice the same, in two orders of tasks."""
    recordings = open_recordings(paths, ReadingOptions(**options))
    cluster = WorkersHere(seed)
    alone, spread = plain(recordings, asked), on_workers(recordings, asked, cluster)
    assert cluster.tasks > 3
    again = on_workers(recordings, asked, WorkersHere(seed + 1))
    assert file_bytes(spread) == file_bytes(again)
    return alone, spread


@pytest.mark.slow
@pytest.mark.usefixtures("small_tasks")
@settings(max_examples=6)
@given(
    st.lists(st.integers(10, 2990), max_size=4),
    st.sampled_from([1024, 1500, 1 << 22]),
    st.booleans(),
    st.integers(0, 99),
)
def test_a_cluster_learns_what_one_machine_learns(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], piece: int, timed: bool, seed: int
):
    """However files are cut, with times or without."""
    rows = normal(3000)
    rows[::53, 2] = np.nan
    paths = written(tmp_path_factory.mktemp("rows"), rows, cuts, timed=timed)
    random.Random(seed).shuffle(paths)  # noqa: S311 - an order
    assert_alike(*both(paths, FitSettings(judged_rows=piece), seed))


@pytest.mark.slow
@pytest.mark.usefixtures("small_tasks")
def test_so_it_does_where_rows_come_once_more_for_their_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """More rows with rare gaps than are kept: which of them stay depends on the task."""
    monkeypatch.setattr("submerge.history.folds.MOST_RARE", 32)
    rows = normal(3000)
    rows[np.random.default_rng(4).random(rows.shape) < 0.08] = np.nan
    assert_alike(*both(written(tmp_path, rows, [1000]), FitSettings(), 0), within=5e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("small_tasks")
def test_so_it_does_of_several_machines_a_state_and_excluded_spans(tmp_path: Path):
    """A column of machines, a condition, and spans that are left out."""
    rows, day = normal(2400), EPOCH + PERIOD * 700
    times = (EPOCH * 1e6 + PERIOD * 1e6 * np.arange(800)).astype("M8[us]")
    names = np.repeat(["a", "b", "c"], 800)
    columns = {name: rows[:, i] for i, name in enumerate(NAMES)}
    table = pa.table({"time": np.tile(times, 3), "who": names} | columns)
    pq.write_table(table, tmp_path / "all.parquet")
    asked = FitSettings(
        when=Condition.parse(f"c1 < {np.quantile(rows[:, 1], 0.9)}", NAMES),
        exclude=(TimeSpan(day, day + 30 * PERIOD),),
    )
    assert_alike(*both([tmp_path / "all.parquet"], asked, node_by="who"))


@pytest.mark.usefixtures("small_tasks")
def test_rows_in_some_states_are_learnt_and_judged_alike(tmp_path: Path):
    """A column of text says which: chunks are of the rows that are left, wherever they are read."""
    rows = normal(1200)
    rows[1000:1060, 4] += 9 * SCALE[4]
    times = (EPOCH * 1e6 + PERIOD * 1e6 * np.arange(1200)).astype("M8[us]")
    columns = {name: rows[:, i] for i, name in enumerate(NAMES)}
    modes = ["off" if i % 7 == 0 else "on" for i in range(1200)]
    for number in range(2):
        table = pa.table({"time": times, "mode": modes} | columns)
        part = table.slice(600 * number, 600)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=100)
    files = [tmp_path / f"{number}.parquet" for number in range(2)]
    on = (InState("mode", "==", "on"),)
    alone, spread = both(files, FitSettings(rank=2), states=on)
    assert_alike(alone, spread)
    assert alone.first.rows == modes.count("on")

    recordings = open_recordings(files, ReadingOptions(states=on))
    request = DetectRequest(learnt_of(alone), SOON)
    found = [detect(recordings, request, workers=each) for each in (None, WorkersHere())]
    assert found[0].seen.rows == found[1].seen.rows == modes.count("on")
    told = [[as_object(alarm) for alarm in each.alarms] for each in found]
    assert told[0]
    assert told[0] == told[1]


@pytest.mark.usefixtures("small_tasks")
def test_so_it_does_of_text(tmp_path: Path):
    """A CSV is read from its start by each task that needs it."""
    path = tmp_path / "rows.csv"
    stamps = EPOCH + PERIOD * np.arange(700)
    np.savetxt(
        path,
        np.column_stack([stamps, normal(700)]),
        delimiter=",",
        header=",".join(["time", *NAMES]),
        comments="",
    )
    assert_alike(*both([path], FitSettings(rank=2)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, r"expected no time before .* sort the rows"),
        ({"sort": True}, "expected rows in the order of time.*got --sort"),
        ({"time": "none"}, "expected more rows than channels, got 1 rows"),
    ],
)
def test_what_cannot_be_learnt_is_said_in_one_line(
    tmp_path: Path, options: dict[str, object], expected: str
):
    """As on one machine: by the worker that finds it, or by who puts all together."""
    rows = np.full((400, 6), np.nan) if "time" in options else normal(400)
    rows[0] = 1.0
    (path,) = written(tmp_path, rows, [])
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table.slice(200), table.slice(0, 200)]), path)
    recordings = open_recordings([path], ReadingOptions(**options))

    with pytest.raises((UsageError, NothingLearnt), match=expected):
        on_workers(recordings, FitSettings(), WorkersHere())


@pytest.mark.usefixtures("small_tasks")
def test_files_that_overlap_or_repeat_a_row_are_refused(tmp_path: Path):
    """Also where different workers read them."""
    rows = normal(900)
    first, second = written(tmp_path, rows, [500])
    table = pq.read_table(second)
    pq.write_table(pa.concat_tables([pq.read_table(first).slice(499), table]), second)
    again = open_recordings([first, second], ReadingOptions())
    with pytest.raises(UsageError, match="expected each row once, got that of"):
        on_workers(again, FitSettings(), WorkersHere())

    pq.write_table(pa.concat_tables([pq.read_table(first).slice(490), table]), second)
    overlap = open_recordings([first, second], ReadingOptions())
    with pytest.raises(UsageError, match=r"expected no time before .*the files overlap"):
        on_workers(overlap, FitSettings(), WorkersHere())
