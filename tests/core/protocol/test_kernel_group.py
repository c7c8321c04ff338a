"""Nodes of a kernel group: gamma that the fleet settles, and readings that count all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Scaling, Schema, Subspace
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.fleet_view import MODEL
from submerge.features import (
    Gaussian,
    Landmarks,
    Laplace,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from submerge.protocol.machine import Now, Reading, Scored
from submerge.protocol.messages import Answer, Counts, Joined, Reason, ScoreSketches
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import KernelSummary, Subspaces
from submerge.schema import differences
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import MOST_ANOMALOUS, Limits
from support.nodes import EPOCH, GROUP, Table, new_incarnation, report

OPEN = Schema(8, features=RandomFourier(features=32))
FIXED = replace(OPEN, features=RandomFourier(Gaussian(0.1), features=32))
SCALED = Scaling((5.0,) * 8, tuple(np.arange(1.0, 9.0)))
SUMMARIES = Subspaces(3, oversample=2)


def rows(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 8)) * np.arange(1.0, 9.0) + 5


def house(schema: Schema = OPEN, *, clients: int = 2, settles: int = 100, **settings) -> Table:
    """A root, an aggregator and clients, all of one schema."""
    learns = settings.get("learns_scaling", False)
    table = Table(SUMMARIES, schema)
    plan = GroupPlan(SUMMARIES, schema, learns_scaling=learns)
    table.root("r", plans={GROUP: plan}, scaling_rows=settles)
    table.aggregator("a")
    for i in range(clients):
        table.client(f"c{i}", under="a", **settings)
    return table


def reads(table: Table, label: str, block: np.ndarray) -> list[Scored]:
    effects = table.step(label, Reading(block))
    table.run()
    return [effect for effect in effects if isinstance(effect, Scored)]


def schema_of(table: Table, label: str) -> Schema:
    return table.hosts[label].node.current.schema


def test_the_fleet_settles_gamma_and_goes_on_to_learn():
    """Moments first; then everybody has the gamma of all readings, and a model comes of it."""
    table = house(settles=600)
    for i in range(2):
        reads(table, f"c{i}", rows(300, i))
    table.passes(3000)
    for i in range(2):
        reads(table, f"c{i}", rows(200, 10 + i))
    table.passes(3000)

    pooled = np.vstack([rows(300, 0), rows(300, 1)])
    expected = 1 / (2 * pooled.var(axis=0).sum())
    gammas = {schema_of(table, f"c{i}").features.kernel.gamma for i in range(2)}
    assert 1 == len(gammas)
    assert expected == pytest.approx(gammas.pop(), rel=1e-9)
    model = table.hosts["r"].model
    assert isinstance(model.summary, KernelSummary)
    # Those that settled gamma are learnt, too.
    assert (1000, 1000.0) == (model.counts.learnt, pytest.approx(model.summary.weight))


def test_what_is_settled_is_said_at_the_root_and_at_the_client():
    """Once each, with gamma: a person may want to know on what."""
    table = house(settles=600, clients=1)
    reads(table, "c0", rows(700))
    table.passes(3000)

    gamma = schema_of(table, "c0").features.kernel.gamma
    for label in ("r", "c0"):
        (said,) = (note for note in table.hosts[label].notes if note.what == "schema settled")
        assert gamma == pytest.approx(said.facts["gamma"], rel=1e-5)


def test_until_gamma_is_settled_nothing_but_moments_travels():
    """And with them a sample of projected readings, for tails that moments do not bear."""
    table = house(settles=10**6)
    reads(table, "c0", rows(300))
    table.passes(1000)

    report = table.reports("c0")[-1]
    assert (None, 300) == (report.summary, report.moments.count)
    assert isinstance(report.moments, Moments)
    assert report.moments.sample is not None


def test_a_fixed_scaling_is_applied_before_gamma_is_measured():
    """Gamma is of scaled readings."""
    scaling = Scaling((5.0,) * 8, tuple(np.arange(1.0, 9.0)))
    table = house(replace(OPEN, scaling=scaling))
    reads(table, "c0", rows(400))
    table.passes(3000)

    scaled = (rows(400) - 5) / np.arange(1.0, 9.0)
    expected = 1 / (2 * scaled.var(axis=0).sum())
    assert expected == pytest.approx(schema_of(table, "c0").features.kernel.gamma, rel=1e-9)


def test_scaling_and_gamma_are_settled_together():
    """Channels that have all come to one size have a spread of one each."""
    table = house(learns_scaling=True)
    reads(table, "c0", rows(400))
    table.passes(3000)
    found = schema_of(table, "c0")

    assert found.scaling is not None
    assert 1 / 16 == pytest.approx(found.features.kernel.gamma)


def test_readings_far_out_do_not_settle_gamma_for_the_others():
    """One in fifty is a thousand times too large; gamma is still of the size of the rest."""
    wild = rows(1000)
    wild[::50] *= 1000
    table = house()
    reads(table, "c0", wild)
    table.passes(3000)

    clean = 1 / (2 * rows(1000).var(axis=0).sum())
    found = schema_of(table, "c0").features.kernel.gamma
    assert clean / 2 < found < clean * 2
    assert found > 100 / (2 * wild.var(axis=0).sum())


def test_readings_that_never_vary_settle_on_some_gamma():
    """There is nothing to tell apart, and nothing to divide by."""
    table = house()
    reads(table, "c0", np.full((200, 8), 3.0))
    table.passes(3000)

    assert 0 < schema_of(table, "c0").features.kernel.gamma < np.inf


def test_a_restarted_client_takes_gamma_from_its_model():
    """It learns from its first row on, before any parent has answered."""
    table = house(clients=1)
    reads(table, "c0", rows(300))
    table.passes(3000)
    reads(table, "c0", rows(200, 1))
    table.passes(3000)
    assert MODEL in table.hosts["c0"].disk
    settled = schema_of(table, "c0")

    table.dies("a")
    table.restarts("c0")
    scored = reads(table, "c0", rows(5, 2))

    assert settled == schema_of(table, "c0")
    assert table.hosts["c0"].node.current.learns
    assert scored[0].scores.linear is not None


def test_a_restarted_root_keeps_the_gamma_that_it_settled():
    """Otherwise every restart would throw the fleet's model away."""
    table = house(clients=1)
    reads(table, "c0", rows(300))
    table.passes(3000)
    settled = schema_of(table, "c0")
    table.restarts("r")
    table.passes(3000)

    assert settled.canonical == table.hosts["r"].model.schema


def test_channels_that_only_round_differently_have_no_spread():
    """Settled with scaling, gamma is of channels that vary; where none does, of one."""
    idle = np.full((400, 8), 0.1) + np.spacing(0.1) * (np.arange(3200).reshape(400, 8) % 2)
    table = house(learns_scaling=True)
    reads(table, "c0", idle)
    table.passes(3000)

    assert 0.5 == schema_of(table, "c0").features.kernel.gamma


def test_a_reading_that_would_be_withheld_does_not_settle_gamma():
    """Scaled readings are bounded before gamma is known as they are afterwards."""
    wild = rows(400)
    wild[7, 3] = 1e30
    table = house()
    reads(table, "c0", wild)
    table.passes(3000)

    clean = 1 / (2 * np.delete(wild, 7, 0).var(axis=0).sum())
    assert clean == pytest.approx(schema_of(table, "c0").features.kernel.gamma, rel=1e-6)
    assert 1 == sum(report.counts.withheld for report in table.reports("c0")[-1:])


def test_no_sample_is_taken_of_readings_without_a_common_size():
    """Where scaling is open as well, moments are of raw readings, and all that there is."""
    table = house(settles=10**6, learns_scaling=True)
    reads(table, "c0", rows(300))
    table.passes(1000)

    assert table.reports("c0")[-1].moments.sample is None


def test_gaps_are_filled_while_gamma_is_open():
    """A node with a dead sensor has something to say of the others."""
    holed = rows(300)
    holed[:, 2] = np.nan
    table = house(replace(OPEN, scaling=SCALED), fills_gaps=True)
    reads(table, "c0", holed)
    table.passes(3000)

    assert schema_of(table, "c0").features.settled


@pytest.mark.parametrize(
    "anew",
    [
        replace(OPEN, scaling=Scaling((5.0,) * 8, (100.0,) * 8)),
        OPEN,
        replace(OPEN, scaling=SCALED, features=RandomFourier(Laplace(), 32)),
        replace(OPEN, scaling=SCALED, half_life=60.0),
    ],
    ids=["scale", "no scaling", "kernel", "half-life"],
)
def test_what_is_configured_anew_is_settled_anew(anew):
    """What a store has settled answers what was asked then, and nothing else."""
    table = house(replace(OPEN, scaling=SCALED))
    reads(table, "c0", rows(400))
    table.passes(3000)
    assert table.hosts["r"].ledger.schema.features.settled

    disk = table.hosts["r"].disk
    table.dies("r")
    again = house(anew, clients=0)
    again.hosts["r"].disk = disk
    again.restarts("r")
    opened = again.hosts["r"].ledger.schema

    assert anew.canonical == opened.canonical


def test_a_gamma_by_hand_is_not_taken_for_one_that_was_settled():
    """Left open now, it is worked out, though the store knows one."""
    table = house(FIXED, clients=0)
    disk = table.hosts["r"].disk
    again = house(OPEN, clients=0)
    again.hosts["r"].disk = disk
    again.restarts("r")

    assert not again.hosts["r"].ledger.schema.features.settled


def test_a_client_with_a_scaling_of_its_own_does_not_recall_another():
    """Its configuration was mended while it was down: the old model's scaling is history."""
    table = house(replace(OPEN, scaling=SCALED), clients=1)
    reads(table, "c0", rows(300))
    table.passes(3000)
    reads(table, "c0", rows(300, 1))
    table.passes(3000)
    disk = table.hosts["c0"].disk
    other = replace(OPEN, scaling=Scaling((5.0,) * 8, (100.0,) * 8))
    table.dies("a")
    host = table.client("x", under="a", schema=other)
    host.disk = disk
    table.restarts("x")

    assert other == schema_of(table, "x")


@pytest.mark.parametrize(("before", "after"), [("flat", "bent"), ("bent", "flat")])
def test_a_group_that_gains_or_loses_its_kernel_outlives_its_old_rows(before, after):
    """Rows of the old schema are sealed and folded by what they are, restarts included."""
    kinds = {"flat": Schema(8), "bent": FIXED}
    ledger = Ledger("g", kinds[before], SUMMARIES, AggregatorSettings("root", None), created=EPOCH)

    def reported(schema, number, *, final=False):
        learner = SUMMARIES.learner(schema)
        learner.learn(rows(40, number), schema.lift(rows(40, number)))
        return report(
            "c",
            new_incarnation(number),
            summary=learner.summary(),
            fingerprint=schema.fingerprint,
            counts=Counts(40),
            final=final,
        )

    for number, final in ((1, True), (2, False)):
        ledger.accept(reported(kinds[before], number, final=final), Now(number, EPOCH + number))
    ledger.change_schema(kinds[after])
    ledger.accept(reported(kinds[after], 3), Now(3, EPOCH + 3))
    ledger.tidy(Now(1e5, EPOCH + 1e5))

    (sealed,) = (each for place, each in ledger.sealed.items())
    assert (80.0, 40.0) == (sealed.summary.weight, ledger.summary().weight)


def test_features_too_large_to_sum_are_withheld():
    """Products of readings grow faster than readings: the row counts, and nobody refuses it."""
    schema = Schema(8, features=TensorSketch(Polynomial(4, 1.0), 32))
    table = house(schema, clients=1)
    block = rows(200)
    block[50] = 1e6
    reads(table, "c0", block)
    table.passes(1000)

    counts = table.hosts["c0"].node.current.counts
    assert (199, 1) == (counts.learnt, counts.withheld)
    assert 199 == table.hosts["r"].ledger.counts().learnt


def test_nothing_is_learnt_of_a_group_whose_gamma_is_open():
    """A summary of features that nobody else can have is refused, not merged and sent down."""
    table = house(clients=0)
    table.client("c", under="a")
    table.passes(100)
    pinned = table.hosts["c"].node.current.pin.incarnation
    learner = SUMMARIES.learner(FIXED)
    learner.learn(rows(40), FIXED.lift(rows(40)))
    relabeled = KernelSummary(
        *(replace(part, schema=OPEN.fingerprint) for part in (learner.summary().features,) * 2)
    )
    reported = report("x", summary=relabeled, fingerprint=OPEN.fingerprint, pinned=pinned)
    answered = table.tell("a", replace(reported, counts=Counts(40)))

    assert [Reason.INVALID] == [each.reason for each in answered if isinstance(each, Answer)]


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (RandomFourier(Gaussian(0.2), 32), "gamma: expected 0.1, got 0.2"),
        (RandomFourier(Gaussian(0.1), 64), "features: expected 32, got 64"),
        (RandomFourier(Gaussian(0.1), 32, seed=1), "seed: expected 0, got 1"),
        (RandomFourier(Laplace(0.1), 32), "kernel: expected gaussian, got laplace"),
        (
            RandomFourier(Gaussian(0.1), 32, "fourier-pair"),
            "map: expected orthogonal, got fourier-pair",
        ),
        (None, "kernel: expected gaussian, got none; [schema.features] says which"),
    ],
    ids=["gamma", "features", "seed", "kernel", "kind", "none"],
)
def test_another_map_is_refused_by_name(other, line):
    """Before its first report, with a line that says what sets the two apart."""
    table = house(FIXED, clients=0)
    alien = Schema(8) if other is None else replace(FIXED, features=other)
    table.client("c", under="a", schema=alien)
    reads(table, "c", rows(200))
    table.passes(1000)

    answers = [m for s, _, m in table.said if s == "a" and isinstance(m, Joined)]
    assert {(Reason.SCHEMA, (line,))} == {(m.reason, m.lines) for m in answers}
    assert [] == table.reports("c")


def test_who_says_gamma_where_the_fleet_settles_it_is_refused():
    """Two ways to have one gamma would be one too many."""
    table = house(clients=0)
    table.client("c", under="a", schema=FIXED)
    table.passes(100)

    (lines,) = {m.lines for s, _, m in table.said if s == "a" and isinstance(m, Joined)}
    assert ("gamma: expected the fleet's, got 0.1; leave it out to take it",) == lines


def test_who_leaves_gamma_out_takes_a_fixed_one():
    """As with scaling: the root's word counts."""
    table = house(FIXED, clients=0)
    table.client("c", under="a", schema=OPEN)
    table.passes(100)

    assert schema_of(table, "c") == FIXED
    assert table.hosts["c"].node.current.learns


def test_a_gap_is_filled_before_it_is_lifted():
    """The row counts, and its score says where the gap was."""
    table = house(FIXED, clients=1, fills_gaps=True)
    reads(table, "c0", rows(300))
    table.passes(2000)
    holed = rows(2, 9)
    holed[1, 4] = np.nan
    (scored,) = reads(table, "c0", holed)

    assert [[1, 4]] == np.argwhere(scored.block.gaps).tolist()
    assert np.isfinite(scored.block.rows).all()
    assert 302 == table.hosts["c0"].node.current.counts.learnt


def test_limits_are_measured_for_features_and_for_readings():
    """A kernel group's model carries both, at the same shares."""
    table = house(FIXED, clients=1)
    for seed in range(6):
        reads(table, "c0", rows(300, seed))
        table.passes(700)
    limits = table.hosts["r"].model.limits

    assert len(limits.shares) == len(limits.spe) == len(limits.linear) == 4
    assert list(limits.linear) == sorted(limits.linear)


def test_a_linear_group_has_no_second_kind_of_limit():
    """Whatever a child makes of its scores."""
    table = house(Schema(8), clients=0)
    sketch = QuantileSketch.of(np.array([1.0]))
    known = Subspace.of(rows(5), Schema(8), rank=2)
    table.client("c", under="a")
    table.passes(100)
    pinned = table.hosts["c"].node.current.pin.incarnation
    reported = report("x", summary=known, fingerprint=Schema(8).fingerprint, pinned=pinned)
    table.tell(
        "a", replace(reported, scores=ScoreSketches(sketch, sketch, sketch), counts=Counts(5))
    )
    table.passes(1000)

    assert () == table.hosts["r"].model.limits.linear
    assert 1 == table.hosts["r"].model.limits.n


def test_the_larger_of_both_is_measured_from_the_middle_to_the_limit():
    """0 in the middle, 1 at 99 %, and the larger of both counts."""
    limits = Limits((0.5, 0.95, 0.99), (1.0, 2.0, 3.0), (0.0, 0.0, 0.0), 100, (10.0, 20.0, 50.0))
    anomaly_score = limits.anomaly_score(
        {"spe": np.array([1.0, 3.0, 2.0, 7.0]), "linear": np.array([10.0, 10.0, 50.0, 30.0])}
    )

    np.testing.assert_allclose(anomaly_score, [0.0, 1.0, 1.0, 3.0])


def test_where_all_scores_were_one_nothing_is_odder_than_can_be_told():
    """Sensors that stood still: the first that moves is as odd as can be, in JSON too."""
    limits = Limits((0.5, 0.99), (1.0, 1.0), (0.0, 0.0), 100, (0.0, 0.0))
    anomaly_score = limits.anomaly_score(
        {"spe": np.array([1.0, 1.0, 9.0]), "linear": np.array([0.0, 9.0, 0.0])}
    )

    assert [0.0, MOST_ANOMALOUS, MOST_ANOMALOUS] == anomaly_score.tolist()


def test_landmarks_that_differ_are_told_apart():
    """Their text is long; its hash is not."""
    maps = [Landmarks(Gaussian(0.1), rows(20, seed)) for seed in (0, 1)]
    lines = differences(*(Schema(8, features=map_) for map_ in maps))

    (line,) = (line for line in lines if line.startswith("points"))
    expected, got = line.removeprefix("points: expected ").split(", got ")
    assert expected != got
    assert len(line) < 100


def test_a_kind_without_limits_counts_for_nothing():
    """A root of an earlier version, or one that has no scores yet."""
    limits = Limits((0.5, 0.99), (1.0, 3.0), (0.0, 0.0), 100)

    scores = {"spe": np.array([2.0]), "linear": np.array([9.0])}
    assert [0.5] == limits.anomaly_score(scores).tolist()
