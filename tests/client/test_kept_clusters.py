"""Clusters that a client keeps: of which job, in which lines, and over a restart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from submerge import Channel, Schema
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.local_run import run_here
from submerge.judge.prepare import prepare
from submerge_client.jobs import KeptClusters
from submerge_client.score_outputs.lines import ScoredBlock, ScoreLines
from support.scored import scored_rows

SCHEMA = Schema((Channel("flow"), Channel("temp"), Channel("hum")))
OTHER = Schema((Channel("flow"), Channel("temp"), Channel("wind")))
RNG = np.random.default_rng(0)
ROWS = np.repeat([[0.0, 0, 0], [9, 9, 9]], 200, axis=0) + RNG.standard_normal((400, 3))


def outcome(name: str = "job-1", *, keep: bool = True, group: str = "room", **rest) -> JobOutcome:
    """How a job of k-means ends for a client."""
    settings = {"clusters": 2, "held_out": 0.5, "keep": keep}
    answer = run_here("kmeans", settings, {"a": ROWS})
    job = Job(name, "kmeans", settings, group, SCHEMA.fingerprint, 3)
    given = {"answer": answer, "failure": ""} | rest
    return JobOutcome(
        job, opened={}, stayed={}, left={}, declined={}, rounds=3, attempts=1, **given
    )


def block_of(rows: list[list[float]]):
    """A block of rows, gaps filled with zeros."""
    return prepare(np.array(rows), SCHEMA, fill=np.nan_to_num)


def test_rows_get_their_cluster_and_how_far_they_are():
    """From 1, as in tables; over a limit where they are far from all."""
    kept = KeptClusters("room")
    kept.take(outcome())

    near, far, other = kept.of_block(block_of([[0.1, 0, 0], [60.0, 60, 60], [9.0, 9, 9.2]]), SCHEMA)

    assert {1, 2} == {near["cluster"], other["cluster"]}
    assert "cluster_over" not in near
    assert (other["cluster"], 0.99) == (far["cluster"], far["cluster_over"])
    assert near["cluster_distance"] < 1.0 < 80 < far["cluster_distance"]


def test_a_row_with_a_gap_has_none():
    """Said as such: null, and no distance."""
    kept = KeptClusters("room")
    kept.take(outcome())

    assert [{"cluster": None}] == kept.of_block(block_of([[0.1, np.nan, 0]]), SCHEMA)


def test_before_an_answer_and_under_another_schema_lines_are_as_ever():
    """No field at all."""
    kept, block = KeptClusters("room"), block_of([[0.1, 0, 0]])

    assert [{}] == kept.of_block(block, SCHEMA)
    kept.take(outcome())
    assert [{}] == kept.of_block(block, OTHER)
    assert "cluster" in kept.of_block(block, SCHEMA)[0]


@pytest.mark.parametrize(
    "passed_over",
    [
        outcome(keep=False),
        outcome(group="hall"),
        outcome(answer=None, failure="cancelled"),
        outcome(answer={"centers": np.ones((2, 9))}),
    ],
)
def test_other_answers_change_nothing(passed_over, tmp_path):
    """Without `keep`, of another group, a failure, no answer of that kind: the kept one stays."""
    path = tmp_path / "state.clusters"
    kept, block = KeptClusters("room", path), block_of([[0.1, 0, 0]])
    kept.take(outcome())
    before, written = kept.of_block(block, SCHEMA), path.read_bytes()

    kept.take(passed_over)

    assert before == kept.of_block(block, SCHEMA)
    assert written == path.read_bytes()


def test_the_newest_answer_counts():
    """It replaces the one before."""
    kept = KeptClusters("room")
    kept.take(outcome())
    moved = outcome("job-2")
    moved = outcome("job-2", answer={**moved.answer, "centers": moved.answer["centers"] + 50.0})
    kept.take(moved)

    (line,) = kept.of_block(block_of([[0.0, 0, 0]]), SCHEMA)

    assert line["cluster_distance"] > 50


def test_clusters_outlive_the_process(tmp_path):
    """The same fields after a restart; its file is the owner's."""
    path, block = tmp_path / "state.clusters", block_of([[0.1, 0, 0], [9.0, 9, 9.2]])
    before = KeptClusters("room", path)
    before.take(outcome())

    assert before.of_block(block, SCHEMA) == KeptClusters("room", path).of_block(block, SCHEMA)
    assert 0 == path.stat().st_mode & 0o077


@pytest.mark.parametrize("damage", [b"", b"SMJ1", b"x" * (3 << 20), None])
def test_a_damaged_file_is_as_none(damage, tmp_path):
    """Cut, of something else, or changed: a start without clusters."""
    path = tmp_path / "state.clusters"
    KeptClusters("room", path).take(outcome())
    data = path.read_bytes()
    path.write_bytes(data[:-9] if damage is None else damage)

    assert [{}] == KeptClusters("room", path).of_block(block_of([[0.1, 0, 0]]), SCHEMA)


def test_a_folder_in_the_way_is_logged_and_stops_nothing(tmp_path):
    """The answer is kept in memory."""
    path = tmp_path / "state.clusters"
    path.mkdir()
    kept = KeptClusters("room", path)

    kept.take(outcome())

    assert "cluster" in kept.of_block(block_of([[0.1, 0, 0]]), SCHEMA)[0]


def test_lines_have_the_fields():
    """Beside the scores, in each row's line."""
    kept, written = KeptClusters("room"), list[bytes]()
    kept.take(outcome())
    lines = ScoreLines(SCHEMA, contributions=0, out=written.append, clusters=kept.of_block)

    lines.write(ScoredBlock(scored_rows([0.05, 0.7]), SCHEMA, 10, 7.0))
    found = [json.loads(line) for line in b"".join(written).splitlines()]

    assert 2 == len([each for each in found if each["cluster"] in (1, 2)])
