"""Score lines: what a client says of each row, in a linear group and in one with a kernel."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from submerge import Channel, Schema
from submerge.features import Gaussian, RandomFourier
from submerge.messages import Counts, Model
from submerge.oddness import Limits
from submerge.steps import Scored
from submerge.summaries import Subspaces
from submerge_client.scores import ScoreLines

NAMES = ("flow", "temp", "hum")
LINEAR = Schema(tuple(map(Channel, NAMES)))
KERNEL = replace(LINEAR, features=RandomFourier(Gaussian(0.2), 32))
SUMMARIES = Subspaces(1, oversample=1)
ROWS = np.random.default_rng(0).standard_normal((200, 1)) @ np.array([[1.0, 2.0, -1.0]])
LIMITS = Limits((0.5, 0.95, 0.99), (0.1, 0.5, 1.0), (1.0, 2.0, 3.0), 100, (1.0, 5.0, 10.0))


def lines(schema: Schema, limits: Limits | None, scored: Scored, *, named: int = 2) -> list[dict]:
    learner = SUMMARIES.learner(schema)
    learner.learn(ROWS, schema.lift(ROWS))
    text = schema.canonical
    known = learner.summary()
    model = Model(
        *("g", 5, text, schema.fingerprint, known, limits, Counts(200), 1, (1.0, 1.0, 1.0)),
        created=0.0,
        expires=2e9,
    )
    told: list[bytes] = []
    writer = ScoreLines(schema, SUMMARIES, contributions=named, tell=told.append)
    writer.tell(scored, model, schema, first=10, at=7.0)
    return [json.loads(line) for line in b"".join(told).splitlines()]


def scored(spe, linear=None, rows=None) -> Scored:
    rows = np.tile([[0.0, 0.0, 1.0]], (len(spe), 1)) if rows is None else rows
    spe = np.array(spe)
    other = None if linear is None else np.array(linear)
    return Scored(spe, spe * 2, other, rows, np.arange(len(spe)), None, 5, False)


def test_a_linear_groups_lines_have_one_spe() -> None:
    """Which row, when, how odd, over which limit, and by which channels."""
    linear = replace(LIMITS, linear=())
    first, second = lines(LINEAR, linear, scored([0.05, 0.7]))

    assert {"row", "at", "spe", "t2", "model", "top"} == set(first)
    assert (11, 0.7, 0.95) == (second["row"], second["spe"], second["over"])
    assert "hum" == next(iter(second["top"]))


def test_the_middle_of_what_is_usual_is_no_limit() -> None:
    """Half of all rows are above it."""
    (line,) = lines(LINEAR, replace(LIMITS, linear=()), scored([0.2]))

    assert "over" not in line


@pytest.mark.parametrize(
    ("spe", "linear", "odd", "over"),
    [(1.0, 1.0, 1.0, 0.95), (0.1, 19.0, 2.0, 0.99), (0.1, 1.0, 0.0, None), (1.9, 5.5, 2.0, 0.99)],
)
def test_a_kernel_groups_lines_say_the_larger_of_both(spe, linear, odd, over) -> None:
    """`odd` is 0 in the middle and 1 at the 99 % limit; `over` is by either."""
    (line,) = lines(KERNEL, LIMITS, scored([spe], [linear]))

    assert (linear, pytest.approx(odd), over) == (line["linear"], line["odd"], line.get("over"))


def test_whichever_is_larger_names_the_channels() -> None:
    """By the residual of the readings, or by the gradient in feature space."""
    row = np.array([[0.4, -0.3, 1.1]])
    by_features, by_readings = (
        lines(KERNEL, LIMITS, scored([spe], [linear], row), named=3)[0]["top"]
        for spe, linear in ((5.0, 1.0), (0.1, 50.0))
    )

    learner = SUMMARIES.learner(KERNEL)
    learner.learn(ROWS, KERNEL.lift(ROWS))
    for top, by_linear in ((by_features, False), (by_readings, True)):
        shares = SUMMARIES.contributions(
            row, learner.summary(), KERNEL, by_linear=np.array([by_linear])
        )[0]
        assert top == pytest.approx(dict(zip(NAMES, shares, strict=True)), abs=1e-3)
    assert by_features != pytest.approx(by_readings, abs=0.01)


def test_before_limits_are_measured_a_line_says_only_what_it_knows() -> None:
    """Both kinds of SPE, and no `odd`."""
    (line,) = lines(KERNEL, None, scored([0.5], [2.0]))

    assert {"row", "at", "spe", "t2", "model", "linear", "top"} == set(line)
