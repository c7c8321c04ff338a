"""Answers as files: of this version, of another one, and where a kind has a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge.errors import UsageError
from submerge.history.knowledge import Learnt
from submerge.pca.subspace import Subspace
from submerge.stats.score_limits import Limits
from submerge_aggregator.jobs.record import JobRecord
from submerge_files.model_file import decoded
from submerge_files.score.model import of_file
from submerge_operate.fleet.jobs import answer_files
from submerge_operate.fleet.jobs.results import JobResult
from submerge_operate.fleet.jobs.tables import answer_lines
from support.house import SCHEMA
from support.jobbed import ROWS, job, outcome


@pytest.fixture(scope="module")
def record() -> JobRecord:
    return JobRecord.of(outcome(job()), schema=SCHEMA.canonical, opened_s=1.0, ended_s=2.0)


def test_an_answer_of_another_version_is_arrays_and_nothing_else(record, tmp_path, monkeypatch):
    """They are not taken for what this version would have computed."""
    centers = record.answer["centers"]
    other = JobResult(replace(record, answer={"centers": centers, "radii": np.ones(3)}))
    answer_files.save(other, tmp_path / "all.npz")

    with np.load(tmp_path / "all.npz") as found:
        assert [1.0, 1.0, 1.0] == found["radii"].tolist()
    assert ("radii", "1, 1, 1") in answer_lines(other)
    with pytest.raises(UsageError, match="another version"):
        answer_files.save(other, tmp_path / "centers.csv")
    monkeypatch.setitem(answer_files.MODELS, "kmeans", lambda result: result.answer["counts"])
    with pytest.raises(UsageError, match="another version"):
        answer_files.save(other, tmp_path / "clusters.model")


def test_an_unknown_kind_is_arrays_as_well(record, tmp_path):
    """A root may compute what this version has no name for."""
    named = replace(record.job, kind="sums")
    other = JobResult(replace(record, job=named, answer={"sums": np.arange(6.0)}))

    assert [("sums", "0, 1, 2, 3, 4, 5")] == answer_lines(other)
    answer_files.save(other, tmp_path / "all.npz")
    with np.load(tmp_path / "all.npz") as found:
        assert [*range(6)] == found["sums"].tolist()


def test_without_a_schema_channels_are_numbered(record):
    """As of a job whose order did not reach its end."""
    result = JobResult(replace(record, schema=b""))

    assert ("x0", "x5") == (result.schema.names[0], result.schema.names[-1])
    assert np.array_equal(record.answer["centers"], result.arrays["centers"])


def test_an_unreadable_schema_is_one_line(record):
    with pytest.raises(UsageError, match="cannot be read"):
        JobResult(replace(record, schema=b"{"))


def test_a_kind_with_a_model_gives_one_under_any_other_name(record, tmp_path, monkeypatch):
    """The function that the kind has added gets the result; what it returns is written."""
    path = tmp_path / "clusters.model"
    with pytest.raises(UsageError, match="gives no model"):
        answer_files.check_outputs("kmeans", (path,))
    made: list[JobResult] = []
    written: list[object] = []
    monkeypatch.setitem(
        answer_files.MODELS, "kmeans", lambda result: made.append(result) or "learnt"
    )
    monkeypatch.setattr(answer_files.model_file, "save", lambda *given: written.append(given) or 7)
    result = JobResult(record)
    answer_files.check_outputs("kmeans", (path,))

    assert 7 == answer_files.save(result, path)
    assert ([result], [(path, "learnt")]) == (made, written)


@pytest.mark.parametrize("limits", [None, Limits((0.5, 0.95), (1.0, 2.0), (1.5, 2.5), 30)])
def test_a_model_of_an_answer_scores(record, tmp_path, monkeypatch, limits):
    """By the limits of rows that were held out; without any there are none."""
    rows = np.concatenate([*ROWS.values()])
    summary = Subspace.of(rows, SCHEMA, rank=2)

    def as_model(result: JobResult) -> Learnt:
        return answer_files.learnt_from(
            result, result.schema, summary, rank=2, rows=len(rows), limits=limits
        )

    monkeypatch.setitem(answer_files.MODELS, "kmeans", as_model)
    path = tmp_path / "clusters.model"
    answer_files.save(JobResult(record), path)
    normal = of_file(path, None)

    assert (2, SCHEMA) == (normal.shown.rule.start, normal.schema)
    if limits is None:
        assert normal.limits is None
    else:
        assert (limits.shares, limits.spe, limits.t2, 30) == (
            normal.limits.shares, normal.limits.spe, normal.limits.t2, normal.limits.n
        )  # fmt: skip
    assert np.allclose(summary.basis, normal.summary.basis, atol=1e-6)
    assert 3 == decoded(path.read_bytes(), "it").model.nodes
