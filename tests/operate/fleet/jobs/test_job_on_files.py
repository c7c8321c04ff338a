"""The same jobs on files, in one process: each file is a node, and the answer is the library's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from submerge.jobs.local_run import run_here
from support import pump_files
from support.commands import shell
from support.data import shared


@pytest.fixture
def run(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def pumps(tmp_path) -> list[Path]:
    """Two machines, one of them with two files."""
    return [
        pump_files.write(tmp_path / name, pump_files.readings(200, seed, level=level), timed=False)
        for name, seed, level in (("pump-1.csv", 0, 0.0), ("pump-2.csv", 1, 3.0))
    ]


def rows_of(path: Path) -> np.ndarray:
    return np.genfromtxt(path, delimiter=",", skip_header=1)


def scaled(paths: list[Path]) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Rows of each file with the spread of all channels at 1, and by what."""
    parts = {path.stem: rows_of(path) for path in paths}
    all_rows = np.concatenate([*parts.values()])
    mean, deviation = all_rows.mean(axis=0), all_rows.std(axis=0)
    return {name: (rows - mean) / deviation for name, rows in parts.items()}, mean, deviation


def test_kmeans_on_files_is_that_of_the_scaled_rows(run, pumps):
    """Each file is a node, called as it is; centers are in the channels' units."""
    ran = run("jobs", "kmeans", "--clusters", 3, "--held-out", 0.2, "--json", "--files", *pumps)
    found = json.loads(ran.out)
    parts, mean, deviation = scaled(pumps)
    expected = run_here("kmeans", {"clusters": 3, "held_out": 0.2}, parts)

    assert ["pump-1", "pump-2"] == found["stayed"]
    assert expected["counts"].tolist() == found["answer"]["counts"]
    assert np.allclose(expected["centers"] * deviation + mean, found["answer"]["centers"])
    assert np.allclose(expected["held_out"], found["answer"]["held_out"])


def test_kernel_pca_feeds_k_means_in_one_command(run, pumps):
    """Centers are places among the scores; the lines say how far rows lie from them."""
    asked = ("jobs", "kpca", "--components", 3, "--clusters", 4, "--files", *pumps)
    found = json.loads(run(*asked, "--json").out)["answer"]
    parts, _, _ = scaled(pumps)
    expected = run_here("kpca", {"components": 3, "clusters": 4}, parts)

    assert (4, 3) == np.shape(found["centers"])
    assert np.allclose(expected["centers"], found["centers"])
    assert "of squared distance between scores and centers" in run(*asked).out


def test_moments_on_files_are_those_of_all_rows(run, pumps):
    """In the channels' units, whether rows were scaled or not."""
    rows = np.concatenate([rows_of(path) for path in pumps])
    for flags in ((), ("--unscaled",)):
        found = json.loads(run("jobs", "moments", "--json", *flags, *pumps).out)["answer"]
        assert np.allclose(rows.mean(axis=0), found["mean"])
        assert np.allclose(rows.var(axis=0), found["variance"])


def test_unscaled_rows_are_clustered_as_they_are(run, pumps):
    ran = run("jobs", "kmeans", "--clusters", 2, "--json", "--unscaled", *pumps)
    found = json.loads(ran.out)["answer"]
    parts = {path.stem: rows_of(path) for path in pumps}

    assert np.allclose(run_here("kmeans", {"clusters": 2}, parts)["centers"], found["centers"])
    assert "centers_scaled" in found


def test_rows_with_a_gap_are_left_out_and_counted(run, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b\n1,2\n3,\n5,6\n,\n")
    ran = run("jobs", "moments", "--json", path)

    assert [2.0] == json.loads(ran.out)["answer"]["count"]
    assert "2 rows with a gap are left out" in ran.err


def test_a_column_may_name_the_nodes(run, tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("unit,a,b\n" + "".join(f"u{i % 3},{i},{i * i % 7}\n" for i in range(90)))
    ran = run("jobs", "moments", "--json", "--node-by", "unit", path)

    assert ["u0", "u1", "u2"] == json.loads(ran.out)["stayed"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--clusters", 3, "nowhere.csv"), "nowhere.csv"),
        (("--clusters", 3, "--least", 2, "PUMP"), "--least is for a running fleet"),
        (("--clusters", 3, "--config", "root.toml", "PUMP"), "--config is for a running fleet"),
        (("--clusters", 3, "--no-wait", "PUMP"), "--no-wait is for a running fleet"),
        (("--clusters", 3, "--no-exact", "PUMP"), "--no-exact is for a running fleet"),
        (("--clusters", 3, "--columns", "flaw", "PUMP"), "flaw"),
        (("--clusters", 500, "PUMP"), "clusters must be at most the 33 of five rows or more"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, pumps, given, why):
    ran = run("jobs", "kmeans", *(pumps[0] if each == "PUMP" else each for each in given))

    assert (2, 1, True) == (ran.status, len(ran.err.splitlines()), why in ran.err), ran.err


@pytest.mark.parametrize("option", ["--out", "--rows"])
def test_a_file_that_is_read_is_not_written(run, tmp_path, option):
    """Whatever its first column is called, and whichever way it is named."""
    path = tmp_path / "table.csv"
    head = "cluster,rows,b" if option == "--out" else "node,row,cluster,distance,over"
    rows = "".join(f"{i % 7},{i % 5},{i % 3},{i % 2},1\n" for i in range(40))
    path.write_text(f"{head}\n" + (rows if option == "--rows" else rows.replace(",1\n", "\n")))
    before = path.read_text()
    other = tmp_path / "folder" / ".." / "table.csv"
    other.parent.parent.mkdir()
    ran = run("jobs", "kmeans", "--clusters", 2, path, option, other)

    assert (2, 1) == (ran.status, len(ran.err.splitlines()))
    assert "is read from, and would be overwritten" in ran.err
    assert before == path.read_text()


def test_a_long_table_in_the_way_is_not_replaced(run, pumps, tmp_path):
    """It begins with a column called channel, as a table of moments does."""
    path = tmp_path / "long.csv"
    path.write_text("channel,value\nflow,1\n")
    ran = run("jobs", "moments", "--out", path, *pumps)

    assert (2, "channel,value\nflow,1\n") == (ran.status, path.read_text())
    assert "is no answer of a job" in ran.err


def test_two_answers_in_one_file_are_refused(run, pumps, tmp_path):
    """The second would replace the first."""
    path = tmp_path / "c.csv"
    ran = run("jobs", "kmeans", "--clusters", 2, "--out", path, "--rows", path, *pumps)

    assert (2, False) == (ran.status, path.exists())
    assert "c.csv is to be written twice" in ran.err


def test_files_without_a_whole_row_are_refused(run, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b\n1,\n,2\n")
    ran = run("jobs", "moments", path)

    assert 2 == ran.status
    assert "expected rows without a gap, got none" in ran.err


@pytest.mark.parametrize(("kind", "held_out"), [("kpca", ("--held-out", "20%")), ("nystrom", ())])
def test_an_answer_of_kernel_pca_is_a_model_that_scores(run, pumps, tmp_path, kind, held_out):
    """With limits of rows that were held out; `score` says that there are none where none were."""
    path = tmp_path / "pumps.model"
    ran = run("jobs", kind, "--components", 2, "--points", 20, *held_out, "--out", path, *pumps)
    assert 0 == ran.status, ran.err
    scored = run("score", pumps[0], "--model", path)
    heading, *lines = scored.out.splitlines()

    assert 0 == scored.status, scored.err
    assert 200 == len(lines)
    over = [line.split(",")[heading.split(",").index("over")] for line in lines]
    assert bool(held_out) == any(over)
    assert bool(held_out) != ("no limits" in scored.err)


@pytest.mark.slow
def test_centers_are_drawn(run, pumps, tmp_path):
    """As a PNG; another file is not replaced by it."""
    picture = tmp_path / "centers.png"
    assert 0 == run("jobs", "kmeans", "--clusters", 3, "--plot", picture, *pumps).status
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.write_text("no picture")
    assert 2 == run("jobs", "kmeans", "--clusters", 3, "--plot", picture, *pumps).status


@pytest.mark.slow
def test_kmeans_of_real_data(run):
    """Wine: 1,599 rows of eleven channels in units of their own."""
    found = json.loads(run("jobs", "kmeans", "--clusters", 3, "--json", shared("wine.csv")).out)
    counts = found["answer"]["counts"]

    assert (1599.0, 11, 11) == (
        sum(counts),
        len(found["channels"]),
        len(found["answer"]["centers"][0]),
    )
    assert min(counts) > 300


def test_rows_of_files_get_their_cluster(run, pumps, tmp_path):
    """Each row of each file in its order; as many in each cluster as the answer counts, nearly."""
    for kind in ("kmeans", "cluster", "kpca", "nystrom"):
        path = tmp_path / f"{kind}.csv"
        asked = ("--clusters", 2, *(("--components", 3) if kind in ("kpca", "nystrom") else ()))
        ran = run("jobs", kind, *asked, "--json", "--rows", path, "--files", *pumps)
        head, *lines = [line.split(",") for line in path.read_text().splitlines()]
        answer = json.loads(ran.out)["answer"]

        assert ["node", "row", "cluster", "distance", "over"] == head
        assert [["pump-1", "1"], ["pump-2", "200"]] == [lines[0][:2], lines[-1][:2]]
        counts = answer.get("cluster_counts") or answer["counts"]
        near = [sum(line[2] == number for line in lines) for number in "12"]
        assert len(lines) == sum(counts)
        assert max(abs(one - other) for one, other in zip(counts, near, strict=True)) <= 9


def test_a_row_with_a_gap_has_no_cluster(run, tmp_path):
    """Its line is there, and empty: lines can be put beside the file's."""
    path, rows = tmp_path / "a.csv", tmp_path / "rows.csv"
    path.write_text("x,y\n0,0\n0,1\n,3\n" + 5 * "0,2\n" + 5 * "9,9\n" + "9,8\n")

    run("jobs", "kmeans", "--clusters", 2, "--rows", rows, path)
    lines = rows.read_text().splitlines()[1:]

    assert "a,3,,," == lines[2]
    assert lines[0].split(",")[2] == lines[1].split(",")[2] != lines[-1].split(",")[2]


def test_rows_need_a_kind_with_clusters(run, pumps, tmp_path):
    """And a file that is missing, or has such rows: no other one is replaced."""
    assert "--rows is for" in run("jobs", "moments", "--rows", tmp_path / "r.csv", *pumps).err
    kernels = ("--components", 2, "--points", 9, "--rows", tmp_path / "r.csv")
    assert "--clusters N beside it" in run("jobs", "kpca", *kernels, *pumps).err
    (tmp_path / "r.csv").write_text("mine,all\n")
    ran = run("jobs", "kmeans", "--clusters", 2, "--rows", tmp_path / "r.csv", *pumps)
    assert "no such list of rows" in ran.err
    assert "mine,all\n" == (tmp_path / "r.csv").read_text()


def test_an_answer_of_clusters_in_scores_is_shown(run, pumps, tmp_path):
    """The gammas that were tried; a table of the clusters."""
    ran = run("jobs", "cluster", "--clusters", 3, "--out", tmp_path / "c.csv", *pumps)

    (gamma,) = (line for line in ran.out.splitlines() if line.startswith("gamma"))
    assert re.fullmatch(
        r"gamma +\S+, eigengap \S+: the widest, before \S+ at \S+, \S+ at \S+", gamma
    )
    assert "cluster,rows,score_1,score_2" == (tmp_path / "c.csv").read_text().splitlines()[0]
