"""A model of an answer: it scores rows as the job measured those that it held out."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema, UsageError
from submerge.jobs.kinds.kpca.answer import KernelModel
from submerge.jobs.local_run import run_here, split_here
from submerge.pca.score import hotelling, spe
from support import kernels

SETTINGS = {"components": 4, "points": 30, "gamma": 0.1, "held_out": 0.4}
SCHEMA = Schema(5)


def parts() -> dict[str, np.ndarray]:
    X = kernels.clustered(2500, 5)
    return dict(zip("abc", np.array_split(X, 3), strict=True))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", ["kpca", "nystrom"])
def test_its_limits_are_those_of_its_scores(kind, center):
    """SPE and T2 of the features, and SPE of the readings: a bucket of the sketch apart, 5 %."""
    settings = {**SETTINGS, "center": center}
    model = KernelModel.of(run_here(kind, settings, parts()), SCHEMA)
    out = np.concatenate(
        [split_here(name, rows, settings).held_out for name, rows in parts().items()]
    )
    features, linear = model.summary.parts

    lifted = model.schema.lift(out)
    scores = {
        "spe": spe(lifted, features),
        "t2": hotelling(lifted, features),
        "linear": spe(out, linear),
    }

    assert model.limits is not None
    assert len(out) == model.limits.n
    for name, values in scores.items():
        expected = np.quantile(values, model.limits.shares, method="inverted_cdf")
        np.testing.assert_allclose(expected, getattr(model.limits, name), rtol=0.05)


def test_its_summaries_are_of_one_schema_with_the_points_as_landmarks():
    """Weights are the rows that were learnt; nothing of it merges with another schema."""
    answer = run_here("kpca", SETTINGS, parts())
    model = KernelModel.of(answer, SCHEMA)

    assert {model.schema.fingerprint} == {part.schema for part in model.summary.parts}
    assert (4, 2) == tuple(part.rank for part in model.summary.parts)
    assert model.rows == model.summary.weight == answer["counts"][0]
    np.testing.assert_array_equal(answer["points"], model.schema.features.points)


def test_without_rows_held_out_there_are_no_limits():
    """A model has none rather than those of rows that it has learnt."""
    answer = run_here("kpca", {**SETTINGS, "held_out": 0.0}, parts())

    assert KernelModel.of(answer, SCHEMA).limits is None


def test_without_the_readings_directions_there_is_no_model():
    """The error says which setting is needed."""
    answer = run_here("kpca", {**SETTINGS, "readings": False}, parts())

    with pytest.raises(UsageError, match="readings=true"):
        KernelModel.of(answer, SCHEMA)
