"""What the live tests check of a demo with: they notice what is wrong."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from submerge import Channel, Scaling, Schema, Subspace
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import Subspaces
from submerge_lab.demo.feed import Stint
from support.demo_accuracy import Pools, Rebuilt
from support.demo_books import Held, add_up, merge_held, seen_by_killed

CHANNELS = tuple(Channel(f"mote{mote:02d}.{q}") for mote in (1, 2, 3) for q in ("a", "b"))

# -- what was learnt ------------------------------------------------------------------


def test_rows_are_rebuilt_from_what_was_fed_and_what_was_true():
    """A gap counts as what was there to be read."""
    sound = np.arange(18.0).reshape(3, 6)
    rows = sound + 0.5
    rows[0, 1] = rows[1, 2] = np.nan
    rebuilt = Rebuilt(6)
    for row, truth in zip(rows, sound, strict=True):
        rebuilt.give(row, truth)

    assert [[0.5, 1, 2.5, 3.5, 4.5, 5.5]] == rebuilt.count(1).tolist()
    assert rebuilt.count(3)[:, 2].tolist() == [8, 14.5]
    assert rebuilt.gaps == 2
    assert rebuilt.count(99).shape == (0, 6)


def test_rows_that_show_too_little_are_withheld():
    """As the client withholds them: three gaps in six are filled, four are not."""
    rebuilt = Rebuilt(6)
    for gaps in (3, 4):
        row = np.ones(6)
        row[:gaps] = np.nan
        rebuilt.give(row, np.full(6, 2.0))

    assert [[2, 2, 2, 1, 1, 1]] == rebuilt.count(2).tolist()
    assert rebuilt.gaps == 3


def test_rows_that_are_withheld_do_not_count():
    """Of an alarm, by the client's own word; the others keep their places."""
    rebuilt = Rebuilt(6)
    for i in range(4):
        rebuilt.give(np.full(6, float(i)), np.zeros(6))
    rebuilt.withhold(1)
    rebuilt.withhold(2)

    assert [0, 3] == rebuilt.count(4)[:, 0].tolist()


def test_a_model_of_all_rows_is_as_good_as_exact_pca():
    """The merge of two halves, at full rank, is their pooled PCA; the weights add up."""
    rows = np.random.default_rng(5).standard_normal((400, 6)) * [5, 4, 3, 1, 1, 1]
    schema, summaries = Schema(CHANNELS), Subspaces(3, oversample=3)
    pools = Pools(schema)
    pools.add(rows)
    held = {
        name: Held(parts=[Subspace.of(part, schema, rank=6)])
        for name, part in (("north", rows[:100]), ("south", rows[100:]))
    }
    accuracy, linear = pools.compare(merge_held(held, summaries, schema), summaries)

    assert accuracy.ratio == pytest.approx(1)
    assert linear is None
    assert merge_held({}, summaries, schema) is None


def test_a_kernel_groups_model_is_held_against_features_and_readings():
    """Each against its own exact PCA."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 6))
    schema = Schema(CHANNELS, Scaling((1.0,) * 6, (2.0,) * 6), RandomFourier(Gaussian(0.05), 64))
    summaries = Subspaces(16, oversample=16, linear_rank=2)
    learner, pools = summaries.learner(schema), Pools(schema)
    learner.learn(schema.scaled(rows), schema.lift(rows))
    model = learner.summary()
    pools.add(rows)
    features, linear = pools.compare(model, summaries)

    assert (16, 2) == (features.rank, linear.rank)
    assert 1 <= features.ratio < 1.02  # 64 features, of which 32 directions are kept
    assert linear.energy_kept == pytest.approx(1)
    assert features.exact[0] != pytest.approx(linear.exact[0])


# -- the balance ----------------------------------------------------------------------


def stint(node, given, **more) -> Stint:
    """A client process that was given rows."""
    return Stint(node, given, **more)


def held(*, sealed=0, weight=None, lost=0, **incarnations) -> Held:
    """What is held of a child: learnt readings by life, and of those that are over."""
    counts = {current: Counts(learnt=n, lost=lost) for current, n in incarnations.items()}
    child = Held(counts, Counts(learnt=sealed))
    total = child.counts.learnt if weight is None else weight
    child.parts = [SimpleNamespace(weight=float(total))]
    return child


def books(aggregator, *, root=None):
    """The stores of one aggregator and of a root that holds what it holds."""
    total = sum(child.counts.learnt for child in aggregator.values())
    lost = sum(child.counts.lost for child in aggregator.values())
    return {"mid": aggregator}, {"mid": held(store=total, lost=lost)} if root is None else root


def test_a_fleet_without_mishaps_is_exact():
    """Fed is learnt, to the reading."""
    stints = [stint("a", 10, incarnations={"x"}), stint("b", 7, incarnations={"y"})]
    balance = add_up(stints, *books({"a": held(x=10), "b": held(y=7)}))

    assert balance.wrong == ()
    assert (17, 17, 0, {}, 2) == (
        balance.fed,
        balance.learnt,
        balance.declared_lost,
        balance.lost_with_kill,
        balance.exact,
    )


def killed(*, acknowledged=60):
    """A client that was killed after 100 rows, and whose next process was given 50."""
    return [
        stint("a", 100, incarnations={"x"}, acknowledged=acknowledged, killed=True, ended=True),
        stint("a", 50, incarnations={"y"}, acknowledged=50),
    ]


def test_what_a_killed_client_took_with_it_is_no_mistake():
    """Between what was acknowledged and what it was given."""
    child = held(y=50, sealed=80)
    balance = add_up(killed(), *books({"a": child}))

    assert balance.wrong == ()
    assert balance.lost_with_kill == {"a": 20}
    assert seen_by_killed(killed(), child) == 80


@pytest.mark.parametrize(
    ("child", "said"),
    [
        (
            held(y=50, sealed=59),
            "60 readings of a were acknowledged before its kill, but 59 are held",
        ),
        (held(y=50, sealed=101), "a was given 100 readings before its kill, but 101 are counted"),
        (held(y=51, sealed=80), "a was given 50 readings, but 51 are counted"),
        (held(y=49, sealed=80), "1 of 50 readings of a are missing"),
    ],
)
def test_a_killed_clients_books_are_looked_into(child, said):
    """What was acknowledged has to be there, once, and all that came after the kill."""
    assert (said,) == add_up(killed(), *books({"a": child})).wrong


@pytest.mark.parametrize(
    ("stores", "said"),
    [
        (books({"a": held(x=9)}), "1 of 10 readings of a are missing"),
        (books({}), "10 of 10 readings of a are missing"),
        (books({"a": held(x=11)}), "a was given 10 readings, but 11 are counted"),
        (books({"a": held(x=10), "b": held(y=1)}), "b is in a store, but was never fed"),
        (books({"a": held(x=10, weight=9)}), "mid counts 10 readings, but its summaries 9.0"),
        (books({"a": held(x=10)}, root={"mid": held(m=9)}), "mid holds Counts(learnt=10"),
        (books({"a": held(x=10)}, root={}), "mid holds Counts(learnt=10"),
    ],
)
def test_what_does_not_add_up_is_said(stores, said):
    """At a client, at an aggregator, between it and the root."""
    wrong = add_up([stint("a", 10, incarnations={"x"})], *stores).wrong

    assert any(said in sentence for sentence in wrong)


def test_two_aggregators_may_not_hold_one_client():
    """It would be counted twice, however right each is by itself."""
    child = {"a": held(x=5)}
    balance = add_up([stint("a", 10, incarnations={"x"})], {"one": child, "two": child}, {})

    assert "a is held by 2 aggregators" in balance.wrong


def test_what_a_client_declares_lost_is_accounted_for():
    """A life that ended within its process: its readings are lost, and said to be."""
    balance = add_up([stint("a", 10, incarnations={"x", "y"})], *books({"a": held(y=7, lost=3)}))

    assert balance.wrong == ()
    assert (7, 3) == (balance.learnt, balance.declared_lost)
