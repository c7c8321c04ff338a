"""disKPCA against communication: what is counted, and that every figure has its command."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from papers import dis_kpca, dis_kpca_large, every, page
from papers.frame import RESULTS
from plants.uneven import GAMMA, uneven
from submerge.jobs.local_run import run_here

SETTINGS = {
    "components": 2,
    "points": 8,
    "kernel": "gaussian",
    "gamma": 0.5,
    "center": False,
    "readings": False,
    "seed": 3,
}

GENERATED = dis_kpca.of_kernel("generated", uneven(), "polynomial", GAMMA)


def parts(servers: int, n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {f"server-{each}": rng.standard_normal((n, 3)) for each in range(servers)}


@pytest.mark.parametrize("sample", ["residual", "uniform"])
def test_what_is_counted_is_the_job_itself(sample):
    """The answer has the bytes of the job's own, with servers in this process or in their own."""
    settings = {**SETTINGS, "sample": sample}
    answer = run_here("kpca", settings, parts(4))

    for start in (dis_kpca.server, dis_kpca.Process):
        made = dis_kpca.counted(settings, parts(4), start=start).answer
        assert {name: each.tobytes() for name, each in answer.items()} == {
            name: each.tobytes() for name, each in made.items()
        }


def test_k_means_runs_on_the_scores_that_kernel_pca_gives():
    """The second job is `kmeans` itself, on as many rows as the first has."""
    settings = {"clusters": 2, "seed": 1}
    made = dis_kpca.counted(settings, parts(4), kind="kmeans").answer
    answer = run_here("kmeans", settings, parts(4))

    assert answer["cost"].tobytes() == made["cost"].tobytes()
    assert 160 == made["counts"].sum()


def test_points_go_up_once_and_down_to_each_server():
    """A point is its readings and its number on the way up, its readings on the way down."""
    m, width, servers = SETTINGS["points"], 3, 4
    words = dis_kpca.counted({**SETTINGS, "sample": "uniform"}, parts(servers)).words
    size_and_sums, largest_and_heads = 1 + 4, 1 + 2

    assert m * (width + 1) + servers * largest_and_heads == words["points-1"]
    assert (
        servers * (m * width + 2 * SETTINGS["components"] * m + size_and_sums) == words["project"]
    )


def test_words_do_not_grow_with_the_rows():
    """Ten times the rows: the same words."""
    settings = {**SETTINGS, "sample": "uniform"}

    assert (
        dis_kpca.counted(settings, parts(4)).words
        == dis_kpca.counted(settings, parts(4, n=400)).words
    )


def test_a_quick_run_does_not_replace_committed_results():
    """It is refused, in a line that says what to do."""
    result = CliRunner().invoke(every.main, ["--quick"])

    assert result.exit_code == 2
    assert "--into build/papers" in result.output


def test_every_figure_is_measured_by_make_bench():
    """A module of the folders that has a figure is in its list, and its results are committed."""
    files = [path for path in RESULTS.parent.rglob("*.py") if "command(figure)" in path.read_text()]
    figures = {path.relative_to(RESULTS.parent).with_suffix("").as_posix() for path in files}

    assert figures - {"frame"} == set(page.ORDER)
    assert all((RESULTS / f"{name}.json").exists() for name in page.ORDER)


def test_a_figure_of_a_folder_is_measured_into_a_folder(tmp_path):
    """Its name is its place, of the module as of the JSON."""
    command = every.command_of("federated/synth", tmp_path, quick=True)

    assert command[1].endswith("papers/federated/synth.py")
    assert str(tmp_path / "federated" / "synth.json") in command


@pytest.mark.slow
def test_batch_sends_the_points_down_that_dis_lr_has_sent():
    """To the root alone it is cheapest; to all servers it costs the points once, as disLR does."""
    each, m, servers = GENERATED, 50, 5
    batch = dis_kpca.Batch(each.rows, each.kernel)
    found = dis_kpca.runs(each, batch, m, 0, servers)
    alone, with_dis_lr = found["uniform + batch"], found["uniform + disLR"]
    directions, width = servers * dis_kpca.RANK * m, each.rows.shape[1]

    assert directions == with_dis_lr.to_all - with_dis_lr.to_root
    assert directions + servers * m * width == alone.to_all - alone.to_root


@pytest.mark.slow
def test_points_by_residual_beat_uniform_ones_on_uneven_rows():
    """On generated rows with a polynomial kernel, ours is at the least error of all ways."""
    each = GENERATED
    batch = dis_kpca.Batch(each.rows, each.kernel)
    found = dis_kpca.runs(each, batch, 100, 0, 5)
    errors = {name: run.error for name, run in found.items()}

    assert errors["residual"] < 1.01
    assert errors["uniform + disLR"] > 2 < errors["uniform + batch"]


@pytest.mark.slow
def test_k_means_costs_what_directions_miss_and_more():
    """The cost is of all of the features, so it is never below the error."""
    found = dis_kpca_large.measured(GENERATED, 50, seed=0, servers=5)

    assert all(0 < run.error < run.cost < 1 for run in found.values())
    assert found["residual"].error < found["uniform + batch"].error
