"""What people read of kernel PCA and of landmarks."""

from __future__ import annotations

import numpy as np
import pytest

from submerge_aggregator.jobs.record import JobRecord
from submerge_operate.fleet.jobs.results import JobResult
from submerge_operate.fleet.jobs.tables import answer_lines
from support.house import SCHEMA
from support.jobbed import job, outcome


def result_of(kind: str, **settings: object) -> JobResult:
    """An answer over 120 rows of three nodes."""
    ended = outcome(job("job-2", kind, settings=settings))
    return JobResult(JobRecord.of(ended, schema=SCHEMA.canonical, opened_s=1.0, ended_s=2.0))


def test_kernel_pca_is_shown_as_shares_of_all_variation():
    """By their slow twin: eigenvalues over the whole scatter."""
    result = result_of("kpca", components=2, points=20, gamma=0.5)
    lines = dict(answer_lines(result))
    shares = result.answer["eigenvalues"] / result.answer["energy"][1]

    assert ["rows", "kernel", "points", "directions", "readings", "limits"] == [*lines]
    assert ("120", "20", "gaussian, gamma 0.5") == (
        lines["rows"], lines["points"], lines["kernel"]
    )  # fmt: skip
    assert lines["directions"].startswith(f"2, of {shares[0]:.1%}, {shares[1]:.1%}: ")
    assert lines["limits"].startswith("none: --held-out 20%")


def test_limits_are_shown_where_rows_are_held_out():
    """At 95 %: of 30 rows there is no 99 % limit. Of a few rows there is none at all."""
    result = result_of("nystrom", components=2, points=20, held_out=0.25)
    lines = dict(answer_lines(result))
    rows, held_out = result.answer["counts"][:2]

    assert f"{rows:.0f}, and {held_out:.0f} held out" == lines["rows"]
    assert lines["limits"].startswith("95% of the rows held out have SPE at most")
    few = dict(answer_lines(result_of("nystrom", components=2, points=20, held_out=0.02)))
    assert few["limits"].startswith("none: rows are held out in groups of eight")
    assert f"T2 {result.answer['t2_limits'][2]:.3g}" in lines["limits"]


def test_fewer_landmarks_than_were_asked_for_are_counted():
    """And how many nodes may share rows, where not all may."""
    result = result_of("landmarks", landmarks=500, kernel="polynomial", degree=3)
    result.answer["counts"][2] = 2
    lines = dict(answer_lines(result))
    found = len(result.answer["points"])

    assert found < 500
    assert f"{found}, of 500 asked for; 2 of 3 nodes may share rows" == lines["landmarks"]
    assert lines["kernel"].startswith("polynomial, gamma ")
    assert lines["kernel"].endswith(", degree 3, coef0 0")


@pytest.mark.parametrize("missing", ["kernel", "counts", "energy"])
def test_an_answer_that_lacks_an_array_is_its_arrays(missing):
    """A root of another version may have no such."""
    result = result_of("kpca", components=2, points=20)
    whole = result.answer
    result.answer = {name: array for name, array in whole.items() if name != missing}

    assert [*result.answer] == [name for name, _ in answer_lines(result)]


def test_a_kernel_that_this_version_does_not_know_is_one_line():
    """The rest is shown all the same."""
    result = result_of("kpca", components=2, points=20)
    result.answer["kernel"][:] = np.array([9.0, 1.0, 0.0, 0.0])
    lines = dict(answer_lines(result))

    assert "an answer has one of 4 kernels, got number 9.0" == lines["kernel"]
    assert "20" == lines["points"]
