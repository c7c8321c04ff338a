"""Gaps at a client: filled with what the others say, or withheld, and counted either way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Scaling, Schema
from submerge.client.node import ClientNode
from submerge.protocol.machine import Now, Reading, Received, Scored, Start
from submerge.protocol.messages import Counts, Incarnation, Model
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from support.gappy import plant, with_gaps

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((300, 2)) @ RNG.standard_normal((2, 6)) + 5
PLAIN = Schema.anonymous(6)
SCALED = Schema(6, Scaling((5.0,) * 6, (1.0,) * 6))
GAP = float("nan")


def client(schema=PLAIN, *, fills=True):
    """A client that has started, and does not talk to anybody."""
    settings = ClientSettings("c", "g", "root", fills_gaps=fills)
    node = ClientNode(settings, schema, Subspaces(2), np.random.default_rng(0))
    node.step(Start({}), Now(0, 1.7e9))
    return node


def with_gap(rows, *places):
    """The same rows, some numbers of them missing."""
    rows = rows.copy()
    for row, column in places:
        rows[row, column] = GAP
    return rows


def model(schema=PLAIN):
    """What the fleet learnt of the same rows."""
    learner = Subspaces(2).learner(schema)
    learner.learn(schema.lift(ROWS), schema.lift(ROWS))
    return Model(
        "g",
        5,
        schema.canonical,
        schema.fingerprint,
        learner.summary(),
        None,
        Counts(300),
        1,
        (1.0, 1.0, 1.0),
        created=1.7e9,
        expires=2e9,
    )


def read(node, rows):
    """The scores of some rows."""
    effects = node.step(Reading(rows), Now(1, 1.7e9))
    return next((effect for effect in effects if isinstance(effect, Scored)), None)


def test_a_gap_is_filled_with_what_the_model_expects():
    """Rows of rank 2: four numbers say what the fifth was."""
    node = client()
    node.step(Received(model()), Now(0, 1.7e9))
    scored = read(node, with_gap(ROWS[:3], (1, 4)))

    assert ROWS[1, 4] == pytest.approx(scored.block.rows[1, 4], rel=1e-4)
    assert [[1, 4]] == np.argwhere(scored.block.gaps).tolist()
    assert 3 == node.current.counts.learnt


def test_before_a_model_what_was_learnt_here_fills():
    """The own subspace says what is usual."""
    node = client()
    read(node, ROWS[:200])
    read(node, with_gap(ROWS[200:201], (0, 2)))
    mean = node.current.summary(Now(1, 1.7e9)).mean

    assert Counts(201) == node.current.counts
    assert np.allclose(ROWS[:201].mean(axis=0), mean, atol=1e-3)


@pytest.mark.parametrize(("schema", "counts"), [(SCALED, Counts(1)), (PLAIN, Counts(0, 1))])
def test_before_anything_is_known_only_a_scaling_can_fill(schema, counts):
    """Its offset is a guess; without one, zero would be a number from nowhere."""
    node = client(schema)
    read(node, with_gap(ROWS[:1], (0, 0)))

    assert counts == node.current.counts


def test_a_row_that_shows_too_little_is_withheld():
    """Fewer than half of its channels: it would teach the model itself."""
    node = client(SCALED)
    read(node, with_gap(ROWS[:1], (0, 0), (0, 1), (0, 2), (0, 3)))

    assert Counts(0, 1) == node.current.counts


def test_withholding_is_the_other_way():
    """Without `fills_gaps` no gap is learnt."""
    node = client(SCALED, fills=False)
    read(node, with_gap(ROWS[:3], (1, 4)))

    assert Counts(2, 1) == node.current.counts


def test_infinity_is_no_gap():
    """It is withheld, with or without a gap beside it, and no warning is given."""
    node = client(SCALED)
    rows = with_gap(ROWS[:2], (0, 1))
    rows[:, 0] = np.inf
    read(node, rows)

    assert Counts(0, 2) == node.current.counts


@pytest.mark.parametrize("knows_model", [False, True])
def test_what_a_filled_value_lacks_in_variance_is_learnt_too(knows_model):
    """A third of all values missing: the summary has the variances of the complete rows."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 2)) @ rng.standard_normal((2, 6)) + 5
    rows += rng.standard_normal(rows.shape)
    gapped = np.where(rng.random(rows.shape) < 0.3, np.nan, rows)
    gapped = gapped[2 * np.isnan(gapped).sum(axis=1) <= 6]
    learner = Subspaces(2).learner(SCALED)
    learner.learn(rows - 5, rows - 5)
    node = client(SCALED)
    if knows_model:
        known = replace(model(SCALED), summary=learner.summary())
        node.step(Received(known), Now(0, 1.7e9))
    for start in range(0, len(gapped), 50):
        read(node, gapped[start : start + 50])

    summary = node.current.summary(Now(1, 1.7e9))
    assert np.allclose(1, summary.channel_energies / summary.weight / rows.var(axis=0), atol=0.1)


def test_scores_say_which_row_is_which():
    """The second of three cannot be used: first and third are scored."""
    node = client(fills=False)
    node.step(Received(model()), Now(0, 1.7e9))
    scored = read(node, with_gap(ROWS[:3], (1, 0)))

    assert [0, 2] == scored.block.which.tolist()
    assert (2, 6) == scored.block.rows.shape
    assert scored.block.gaps is None


def test_what_is_filled_is_what_the_life_reports_under():
    """Its incarnation, like any other row's."""
    node = client(SCALED)
    before = node.current.incarnation
    read(node, with_gap(ROWS[:1], (0, 0)))

    assert isinstance(before, Incarnation)
    assert before == node.current.incarnation


def open_client(*, fills=True):
    """A client whose scaling the fleet has not settled."""
    settings = ClientSettings("c", "g", "root", fills_gaps=fills, learns_scaling=True)
    node = ClientNode(settings, PLAIN, Subspaces(2), np.random.default_rng(0))
    node.step(Start({}), Now(0, 1.7e9))
    return node


def test_while_the_scaling_is_open_a_gap_is_what_the_other_channels_say():
    """A device that is away does not keep the others from being measured."""
    node = open_client()
    read(node, ROWS[:100])
    read(node, with_gap(ROWS[100:102], (0, 2), (1, 5)))

    assert Counts(102) == node.current.counts
    measured = node.current.measured(Now(1, 1.7e9 + 1))
    assert np.allclose(ROWS[:102].mean(axis=0), measured.whole.mean, atol=1e-4)
    assert np.allclose(102 * np.cov(ROWS[:102].T, bias=True), measured.whole.scatter, rtol=1e-3)


def test_a_channel_that_has_never_come_is_waited_for():
    """It has no mean: its rows are withheld, and counted as that."""
    node = open_client()
    read(node, with_gap(ROWS[:5], *((i, 3) for i in range(5))))
    assert Counts(withheld=5) == node.current.counts
    read(node, ROWS[5:8])
    read(node, with_gap(ROWS[8:9], (0, 3)))

    assert Counts(learnt=4, withheld=5) == node.current.counts
    closed = open_client(fills=False)
    read(closed, ROWS[:3])
    read(closed, with_gap(ROWS[3:4], (0, 3)))
    assert Counts(learnt=3, withheld=1) == closed.current.counts


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["5%", "10%", "start", "middle", "end", "flickers"])
def test_what_a_client_reports_is_what_all_of_its_rows_say(kind):
    """A fault is as far off as by complete rows, within 10 %."""
    whole, fault = plant(2000, 0.1, seed=0), plant(200, 0.1, seed=5)
    fault[:, 1] += 1.5
    found = []
    for rows in (whole, with_gaps(whole, kind)):
        node = client(Schema(4, Scaling((20.0,) * 4, (3.0,) * 4)))
        for start in range(0, len(rows), 20):
            read(node, rows[start : start + 20])
        seen = node.current.summary(Now(1, 1.7e9 + 1))
        off = (fault - 20) / 3 - seen.mean
        distance = np.einsum("ij,ij->i", off @ np.linalg.inv(seen.scatter / seen.weight), off)
        found.append(float(np.median(distance)))

    assert found[0] == pytest.approx(found[1], rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema", [Schema.anonymous(4), Schema(4, Scaling((20.0,) * 4, (3.0,) * 4))]
)
def test_rows_that_all_have_gaps_are_learnt(schema):
    """A log of motes, some silent in each row: a fault is as far as by complete rows."""
    whole, fault = plant(2000, 0.1, seed=0), plant(200, 0.1, seed=5)
    fault[:, 1] += 1.5
    gone = whole.copy()
    gone[np.arange(len(gone)), np.random.default_rng(1).integers(4, size=len(gone))] = np.nan
    found = []
    for rows in (whole, gone):
        node = client(schema)
        for start in range(0, len(rows), 20):
            read(node, rows[start : start + 20])
        assert node.current.counts.learnt > 1990
        seen = node.current.summary(Now(1, 1.7e9 + 1))
        off = schema.scaled(fault) - seen.mean
        distance = np.einsum("ij,ij->i", off @ np.linalg.inv(seen.scatter / seen.weight), off)
        found.append(float(np.median(distance)))

    assert found[0] == pytest.approx(found[1], rel=0.1)
