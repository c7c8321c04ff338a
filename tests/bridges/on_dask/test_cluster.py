"""A real scheduler with two worker processes: one is killed on the way, and files are on S3."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import submerge.dask
from submerge import UsageError
from submerge.history.settings import FitSettings
from submerge_bridges.on_dask.cluster import Cluster
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.formats.remote_path import path_of
from support.commands import shell
from support.six_channels import EPOCH, NAMES, PERIOD, SCALE, normal
from support.workers import assert_alike, file_bytes, on_workers, plain

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")


def frame(n: int = 3000, seed: int = 0) -> Any:
    times = pd.to_datetime(EPOCH + PERIOD * np.arange(n), unit="s")
    return pd.DataFrame(normal(n, seed), columns=NAMES, index=pd.Index(times, name="time"))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of four machines, so that there are tasks to lose."""
    folder = tmp_path_factory.mktemp("machines")
    paths = [folder / f"m{i}.parquet" for i in range(4)]
    for i, path in enumerate(paths):
        frame(70_000 + i, i).to_parquet(path)
    return paths


def test_a_lost_worker_changes_nothing(dask_client: Any, machines: list[Path]):
    """One of two is killed once the first cells are learnt; all bytes are the same."""
    recordings = open_recordings(machines, ReadingOptions(node_by="file"))
    settings = FitSettings(judged_rows=1 << 15)
    cluster = Cluster(dask_client)
    pids = list(dask_client.run(os.getpid).values())
    killed: list[int] = []

    def kill_one(rows: int) -> None:
        if rows and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    lost = on_workers(recordings, settings, cluster, kill_one)
    dask_client.wait_for_workers(2, timeout=60)

    assert killed
    assert pids != list(dask_client.run(os.getpid).values())
    assert file_bytes(lost) == file_bytes(on_workers(recordings, settings, cluster))
    assert_alike(plain(recordings, settings), lost)


@pytest.mark.soak
def test_files_on_s3_are_read_where_they_lie(dask_client: Any, s3: str):
    """By workers, by a pattern; and without a cluster, by the same reader."""
    system = pytest.importorskip("s3fs").S3FileSystem(endpoint_url=s3)
    system.mkdir("plant")
    rows = frame()
    for name, part in (("a", rows[:1400]), ("b", rows[1400:])):
        with system.open(f"plant/{name}.parquet", "wb") as file:
            part.to_parquet(file)
    recordings = open_recordings([path_of("s3://plant/*.parquet")], ReadingOptions())
    settings = FitSettings()
    model = submerge.dask.fit("s3://plant/*.parquet", client=dask_client)
    scores = submerge.dask.score(model, "s3://plant/a.parquet", to="s3://plant", client=dask_client)

    assert file_bytes(plain(recordings, settings)) == model.packed  # in one task
    assert ["s3://plant/a.scores.csv.gz"] == scores
    with system.open(scores[0], "rb") as file:
        assert 1400 == len(pd.read_csv(file, compression="gzip"))


def test_a_frame_an_array_and_a_bag_are_learnt_and_scored(dask_client: Any):
    """As their rows in memory are: the same limits, scores and alarms."""
    dd, da, db = (pytest.importorskip(f"dask.{name}") for name in ("dataframe", "array", "bag"))
    table = frame()
    day = frame(600, 1)
    day.iloc[300:400, 4] += 4 * SCALE[4]
    here = submerge.Model.fit(table)
    several = dd.from_pandas(table, npartitions=3)
    model = submerge.dask.fit(several, client=dask_client)
    records = db.from_sequence(table.reset_index().to_dict("records"), npartitions=3)
    of_bag = submerge.dask.fit(records, client=dask_client)
    block = da.from_array(table.to_numpy(), chunks=(1000, 2))
    of_array = submerge.dask.fit(block, client=dask_client, names=NAMES)
    computed = submerge.dask.score(model, dd.from_pandas(day, npartitions=2)).compute()

    assert repr(here) == repr(model) == repr(of_bag)
    pd.testing.assert_frame_equal(here.score(day).drop(columns="alarm_ewma"), computed)
    assert 3000 == of_array.judge.learnt.rows
    lazy = submerge.dask.score(of_array, da.from_array(day.to_numpy(), chunks=(200, 6)))
    np.testing.assert_array_equal(
        of_array.score(day.to_numpy())["distance"], lazy["distance"].compute()
    )
    found = submerge.dask.detect(model, dd.from_pandas(day, npartitions=3), client=dask_client)
    expected = here.detect(day)
    assert expected
    # Rows are judged together up to the end of a partition: blame is the same but for that.
    assert [list(a.channels)[:1] for a in expected] == [list(a.channels)[:1] for a in found]
    assert [a.worst for a in expected] == pytest.approx([a.worst for a in found], rel=0.01)


@pytest.mark.soak
def test_rows_in_a_state_are_learnt_and_judged(dask_client: Any, tmp_path: Path):
    """Of a collection, of which a partition may have none, and of files: as in memory."""
    dd = pytest.importorskip("dask.dataframe")
    table, day = frame(), frame(600, 1)
    day.iloc[300:400, 4] += 4 * SCALE[4]
    for each in table, day:
        each["State"] = ["STOP" if i % 50 < 10 or i < 200 else "RUN" for i in range(len(each))]
        each.loc[each["State"] == "STOP", NAMES] = 0.0
    table.to_parquet(tmp_path / "table.parquet")
    here = submerge.Model.fit(table, when="State == RUN")
    ways = dd.from_pandas(table, npartitions=20), str(tmp_path / "table.parquet")
    one, other = (submerge.dask.fit(x, client=dask_client, when="State == RUN") for x in ways)

    assert repr(here) == repr(one) == repr(other)
    assert 1 == len(here.detect(day))
    days = dd.from_pandas(day, npartitions=6)
    (found,) = submerge.dask.detect(one, days, client=dask_client)
    assert found.worst == pytest.approx(here.detect(day)[0].worst, rel=0.01)
    scores = here.score(day).drop(columns="alarm_ewma")
    pd.testing.assert_frame_equal(scores, submerge.dask.score(one, days).compute())


@pytest.mark.soak
def test_commands_take_the_address_of_a_scheduler(
    dask_client: Any,
    machines: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """`fit` learns what it learns without; `detect` and `score` give the same bytes."""
    run, address = shell(monkeypatch, capsys), dask_client.scheduler.address
    files, by = machines[:2], ("--node-by", "file")
    on, alone = tmp_path / "on.model", tmp_path / "alone.model"
    spread = ("--dask", address)

    assert 0 == run("fit", *files, *by, "-o", on, "--no-drill", *spread).status
    assert 0 == run("fit", *files, *by, "-o", alone, "--no-drill").status
    models = [submerge.Model.load(path) for path in (alone, on)]
    assert repr(models[0]) == repr(models[1])
    ran = [run("detect", *files, *by, "--model", on, *more) for more in (spread, ())]
    assert ran[0] == ran[1]
    said = run("score", *files, "--model", on, "-o", tmp_path, *spread)
    one = run("score", files[0], "--model", on, "-o", tmp_path / "one.csv.gz")
    assert (0, 0) == (said.status, one.status)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "m0.scores.csv.gz").read_bytes()
    assert "140,001 of 2 files: 140,001 scored" in said.err


def test_mistakes_take_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """No scheduler answers there, or an option needs all rows in one place."""
    monkeypatch.setattr("submerge_bridges.on_dask.command.CONNECT_S", 0.2)
    path = tmp_path / "rows.parquet"
    frame(300).to_parquet(path)
    run = shell(monkeypatch, capsys)
    silent = ("--dask", "tcp://127.0.0.1:9")
    fit = ("fit", path, "-o", tmp_path / "a.model")

    for arguments, expected in (
        ((*fit, *silent), "expected a Dask scheduler at tcp://127.0.0.1:9, got: "),
        ((*fit, *silent, "--sort"), "expected no --sort with --dask: "),
        (("score", path, *silent, "-o", tmp_path), "expected --model FILE with --dask, got none"),
    ):
        ran = run(*arguments)
        assert 2 == ran.status
        assert expected in ran.err
        assert 1 == ran.err.count("\n")
    with pytest.raises(UsageError, match="expected a frame, an array or a bag of Dask, or paths"):
        submerge.dask.fit(frame(300), client=object())
