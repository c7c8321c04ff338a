"""Score lines: what a client says of each row, in a linear group and in one with a kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from submerge import Channel, Schema
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Scored
from submerge.protocol.messages import Counts, Model
from submerge.protocol.summaries import Subspaces
from submerge.stats.score_limits import Limits
from submerge_client.scores import ScoreLines
from support.alarms import alarm

NAMES = ("flow", "temp", "hum")
LINEAR = Schema(tuple(map(Channel, NAMES)))
KERNEL = replace(LINEAR, features=RandomFourier(Gaussian(0.2), 32))
SUMMARIES = Subspaces(1, oversample=1)
ROWS = np.random.default_rng(0).standard_normal((200, 1)) @ np.array([[1.0, 2.0, -1.0]])
LIMITS = Limits((0.5, 0.95, 0.99), (0.1, 0.5, 1.0), (1.0, 2.0, 3.0), 100, (1.0, 5.0, 10.0))


def lines(
    schema: Schema,
    limits: Limits | None,
    scored: Scored,
    *,
    named: int = 2,
    alarms: tuple[Alarm, ...] = (),
) -> list[dict]:
    text = schema.canonical
    model = Model(
        *(
            "g",
            5,
            text,
            schema.fingerprint,
            _known(schema),
            limits,
            Counts(200),
            1,
            (1.0, 1.0, 1.0),
        ),
        created=0.0,
        expires=2e9,
    )
    reported: list[bytes] = []
    writer = ScoreLines(schema, SUMMARIES, contributions=named, tell=reported.append)
    writer.tell(scored, model, schema, first=10, at=7.0, alarms=alarms)
    return [json.loads(line) for line in b"".join(reported).splitlines()]


def _known(schema: Schema) -> Any:
    learner = SUMMARIES.learner(schema)
    learner.learn(ROWS, schema.lift(ROWS))
    return learner.summary()


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
    ("spe", "linear", "anomaly_score", "over"),
    [(1.0, 1.0, 1.0, 0.95), (0.1, 19.0, 2.0, 0.99), (0.1, 1.0, 0.0, None), (1.9, 5.5, 2.0, 0.99)],
)
def test_a_kernel_groups_lines_say_the_larger_of_both(spe, linear, anomaly_score, over) -> None:
    """`odd` is 0 in the middle and 1 at the 99 % limit; `over` is by either."""
    (line,) = lines(KERNEL, LIMITS, scored([spe], [linear]))

    assert (linear, pytest.approx(anomaly_score), over) == (
        line["linear"],
        line["anomaly_score"],
        line.get("over"),
    )


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


# -- alarms ----------------------------------------------------------------------------------


def test_rows_of_an_alarm_have_its_name() -> None:
    """The last stretch of a block is the newest alarm's, the one before it the one's before."""
    alarms = (alarm(2), alarm(1, over=True), alarm(0, over=True))
    alarmed = np.array([True, True, False, True, False, False, True])
    reported = lines(LINEAR, None, replace(scored([0.1] * 7), alarmed=alarmed), alarms=alarms)

    expected = [alarms[2], alarms[2], None, alarms[1], None, None, alarms[0]]
    assert [each and each.name for each in expected] == [line.get("alarm") for line in reported]


@pytest.mark.parametrize("alarmed", [None, np.zeros(1, dtype=bool)])
def test_rows_of_none_have_no_name(alarmed) -> None:
    """Also while one is remembered, or open and the row not its own."""
    (line,) = lines(LINEAR, None, replace(scored([0.1]), alarmed=alarmed), alarms=(alarm(0),))

    assert "alarm" not in line


def test_rows_that_are_not_learnt_say_so() -> None:
    """Whether for an alarm, or because learning is paused; of the others nothing is said."""
    held = replace(scored([0.1] * 3), withheld=np.array([True, False, True]))

    assert [True, None, True] == [line.get("withheld") for line in lines(LINEAR, None, held)]
    assert ["withheld" in line for line in lines(LINEAR, None, scored([0.1]))] == [False]


def test_a_row_that_was_judged_by_another_model_is_explained_by_it() -> None:
    """An open alarm keeps to what raised it, its mean and its limits."""
    row = np.array([[0.0, 0.0, 1.0]])
    own = replace(_known(LINEAR), mean=np.array([0.0, 0.0, 1.0]) + 1e-3 * np.eye(3)[0])
    plain = scored([0.7], rows=row)
    judged = replace(plain, summary=own, limits=replace(LIMITS, spe=(5.0, 6.0, 7.0), linear=()))
    (by_model,) = lines(LINEAR, replace(LIMITS, linear=()), plain)
    (by_own,) = lines(LINEAR, replace(LIMITS, linear=()), judged)

    assert ("hum", 0.95) == (next(iter(by_model["top"])), by_model["over"])
    assert "flow" == next(iter(by_own["top"]))
    assert "over" not in by_own


def test_a_virtual_sensor_is_offered_where_the_others_tell_enough() -> None:
    """R2 of 0.5 or more, as measured; below it, and while nobody knows, a gap was just filled."""
    gaps = np.array([[True, True, True]])
    reported = replace(scored([1.0]), gaps=gaps, r2=np.array([0.5, 0.49, np.nan]))
    (line,) = lines(Schema((Channel("a"), Channel("b"), Channel("c"))), LIMITS, reported)

    assert {"a", "b", "c"} == set(line["filled"])
    assert {"a": {"value": 0.0, "r2": 0.5}} == line["virtual"]
    (line,) = lines(Schema(3), LIMITS, replace(reported, r2=None))
    assert "virtual" not in line
