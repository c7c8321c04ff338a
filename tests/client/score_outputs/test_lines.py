"""Score lines: what a client says of each row, in a linear group and in one with a kernel."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from submerge import Channel, Schema
from submerge.features import Gaussian, RandomFourier
from submerge.judge.prepare import prepare
from submerge.judge.score import ScoringModel, score
from submerge.pca.reconstruct import Reconstruction
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Scored
from submerge.protocol.summaries import Subspaces
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import READY_S, ResidualScale
from submerge.stats.score_limits import Limits
from submerge_client.score_outputs.lines import ScoredBlock, ScoreLines
from support.alarms import alarm
from support.scored import scored_rows

NAMES = ("flow", "temp", "hum")
LINEAR = Schema(tuple(map(Channel, NAMES)))
KERNEL = replace(LINEAR, features=RandomFourier(Gaussian(0.2), 32))
SUMMARIES = Subspaces(1, oversample=1)
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((200, 1)) @ np.array([[1.0, 2.0, -1.0]]) + RNG.normal(0, 0.1, (200, 3))
LIMITS = Limits((0.5, 0.95, 0.99), (0.1, 0.5, 1.0), (1.0, 2.0, 3.0), 100, (1.0, 5.0, 10.0))


def lines(
    scored: Scored, *, named: int = 2, alarms: tuple[Alarm, ...] = (), schema: Schema = LINEAR
) -> list[dict]:
    reported: list[bytes] = []
    writer = ScoreLines(schema, contributions=named, out=reported.append)
    writer.write(ScoredBlock(scored, schema, 10, 7.0, alarms))
    return [json.loads(line) for line in b"".join(reported).splitlines()]


def known(schema: Schema) -> ScoringModel:
    """What the fleet knows of ROWS."""
    learner = SUMMARIES.learner(schema)
    learner.learn(ROWS, schema.lift(ROWS))
    return ScoringModel(SUMMARIES, learner.summary(), LIMITS, len(NAMES))


def judged(schema: Schema, row: list[float], **by: object) -> dict:
    """The line of a row that a model of ROWS has scored."""
    block = prepare(np.array([row]), schema, fill=None)
    scores = score(block, known(schema), **by)
    (line,) = lines(replace(scored_rows([0.0]), block=block, scores=scores), named=3, schema=schema)
    return line


def test_a_linear_groups_lines_have_one_spe() -> None:
    """The row, its time, its scores, the limit, and the channels."""
    limits = replace(LIMITS, linear=())
    first, second = lines(scored_rows([0.05, 0.7], limits=limits))

    assert {"row", "at", "spe", "t2", "model", "top"} == set(first)
    assert (11, 0.7, 0.95) == (second["row"], second["spe"], second["over"])
    assert "hum" == next(iter(second["top"]))


def test_the_middle_of_what_is_usual_is_no_limit() -> None:
    """Half of all rows are above it."""
    (line,) = lines(scored_rows([0.2], limits=LIMITS))

    assert "over" not in line


@pytest.mark.parametrize(
    ("spe", "linear", "anomaly_score", "over"),
    [(1.0, 1.0, 1.0, 0.95), (0.1, 19.0, 2.0, 0.99), (0.1, 1.0, 0.0, None), (1.9, 5.5, 2.0, 0.99)],
)
def test_a_kernel_groups_lines_say_the_larger_of_both(spe, linear, anomaly_score, over) -> None:
    """`anomaly_score` is 0 in the middle and 1 at the 99 % limit; `over` is by either."""
    (line,) = lines(scored_rows([spe], linear=[linear], limits=LIMITS))

    assert (linear, pytest.approx(anomaly_score), over) == (
        line["linear"],
        line["anomaly_score"],
        line.get("over"),
    )


@pytest.mark.parametrize("schema", [LINEAR, KERNEL])
def test_channels_are_blamed_by_the_rule_of_alarms(schema) -> None:
    """Each predicted from all the others, in a kernel group by the readings as well."""
    row = [0.4, -0.3, 1.1]
    summary = known(schema).summary
    shown = SUMMARIES.shown(summary)
    linear = shown if schema is LINEAR else shown.linear
    shares = Reconstruction(linear).blame(np.array([row]) - linear.mean)[0]

    assert judged(schema, row)["top"] == pytest.approx(
        dict(zip(NAMES, shares, strict=True)), abs=1e-4
    )


def test_a_channel_that_usually_strays_is_less_to_blame() -> None:
    """By what is usual at the node, once a day of it is known."""
    row, squares = [0.4, -0.3, 1.1], np.array([1.0, 1.0, 1e6])
    ready = ResidualScale(squares, np.ones(3), READY_S)
    young = replace(ready, span_s=READY_S - 1)

    assert "hum" == next(iter(judged(LINEAR, row)["top"]))
    assert judged(LINEAR, row) == judged(LINEAR, row, residual_scale=young)
    assert "hum" != next(iter(judged(LINEAR, row, residual_scale=ready)["top"]))


def test_every_statistic_has_its_limit() -> None:
    """T2, and in a kernel group the readings; `over` is by either kind of SPE."""
    (line,) = lines(scored_rows([1.1], linear=[6.0], limits=LIMITS))

    assert (0.99, 0.95, 0.95) == (line["over"], line["over_t2"], line["over_linear"])
    (line,) = lines(scored_rows([1.1], limits=LIMITS))
    assert (0.99, 0.95, False) == (line["over"], line["over_t2"], "over_linear" in line)


def test_what_was_filled_counts_for_a_limit() -> None:
    """The score is that of the row as it is; the limit, that of what whole rows would come to."""
    scored = scored_rows([0.4], limits=LIMITS)
    scores = scored.scores
    even = {kind: 2 * values for kind, values in scores.even.items()}
    over = {kind: LIMITS.above(values, kind) for kind, values in even.items()}
    (line,) = lines(replace(scored, scores=replace(scores, even=even, over=over)))

    assert (0.4, 0.95) == (line["spe"], line["over"])


def test_before_limits_are_measured_a_line_says_only_what_it_knows() -> None:
    """Both kinds of SPE, and no `anomaly_score`."""
    (line,) = lines(scored_rows([0.5], linear=[2.0]))

    assert {"row", "at", "spe", "t2", "model", "linear", "top"} == set(line)


# -- alarms ----------------------------------------------------------------------------------


def test_rows_of_an_alarm_have_its_name() -> None:
    """The last stretch of a block is the newest alarm's, the one before it the one's before."""
    alarms = (alarm(2), alarm(1, over=True), alarm(0, over=True))
    alarmed = np.array([True, True, False, True, False, False, True])
    scored = scored_rows([0.1] * 7)
    scored = replace(scored, decision=replace(scored.decision, alarmed=alarmed))
    reported = lines(scored, alarms=alarms)

    expected = [alarms[2], alarms[2], None, alarms[1], None, None, alarms[0]]
    assert [each and each.name for each in expected] == [line.get("alarm") for line in reported]


@pytest.mark.parametrize("alarms", [(), (alarm(0),)])
def test_rows_of_none_have_no_name(alarms) -> None:
    """Also while one is remembered, or open and the row not its own."""
    (line,) = lines(scored_rows([0.1]), alarms=alarms)

    assert "alarm" not in line


def test_rows_that_are_not_learnt_say_so() -> None:
    """Whether for an alarm, or because learning is paused; of the others nothing is said."""
    scored = scored_rows([0.1] * 3)
    withheld = np.array([True, False, True])
    held = replace(scored, decision=replace(scored.decision, withheld=withheld))

    assert [True, None, True] == [line.get("withheld") for line in lines(held)]
    assert [False] == ["withheld" in line for line in lines(scored_rows([0.1]))]


def test_a_row_that_was_judged_about_another_mean_is_explained_by_it() -> None:
    """A node's own, or the one that an open alarm is held to."""
    row = [0.0, 0.0, 1.0]
    own = OwnMean(np.array([5.0, 0.0, 1.0]), None, 1e9, 100, 0.0)

    assert "hum" == next(iter(judged(LINEAR, row)["top"]))
    assert "flow" == next(iter(judged(LINEAR, row, own=own)["top"]))


def test_a_virtual_sensor_is_offered_where_the_others_tell_enough() -> None:
    """R2 of 0.5 or more, as measured; below it, and before it is known, a gap was only filled."""
    gaps, schema = np.array([[True, True, True]]), Schema(tuple(map(Channel, "abc")))
    reported = replace(scored_rows([1.0], gaps=gaps), r2=np.array([0.5, 0.49, np.nan]))
    (line,) = lines(reported, schema=schema)

    assert {"a", "b", "c"} == set(line["filled"])
    assert {"a": {"value": 0.0, "r2": 0.5}} == line["virtual"]
    (line,) = lines(replace(reported, r2=None), schema=schema)
    assert "virtual" not in line
