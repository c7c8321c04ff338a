"""Scores of rows by the model that comes down, and the alarm: held against the Python client's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from c_leaf import CLeaf
from submerge import Schema, nodes
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import Answer, Reason
from submerge.schema import Channel, Scaling
from submerge.stats.block_maxima import NONE, limit
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge.stats.smoothing import ewma
from submerge_proto.wire import codec
from support.leaf_root import LeafRoot, at

DIM = 20
SCALING = Scaling((1.0,) * DIM, tuple(np.linspace(0.5, 2, DIM)))


def plant(n: int, seed: int) -> np.ndarray:
    """Rows of three causes, with noise, about a mean."""
    rng = np.random.default_rng(seed)
    causes = np.random.default_rng(99).standard_normal((3, DIM))
    return rng.standard_normal((n, 3)) @ causes + 0.1 * rng.standard_normal((n, DIM)) + 5


class Scored:
    """A leaf that has the fleet's model."""

    def __init__(self, library, center: str = "fleet", channels=None, n: int = 2000) -> None:
        self.schema = Schema(channels or DIM, scaling=SCALING, center=center)
        self.root, self.leaf = LeafRoot(self.schema), CLeaf(library, self.schema, "leaf", at=at(0))
        self.leaf.learn(plant(n, 0), at(1))
        for steady in (1, 400, 500):
            self.root.talk(self.leaf, steady)
        self.model = self.root.node.model("g")

    def arm(self, maxima: np.ndarray, **more) -> None:
        """Give it a model with block maxima, and with them a limit."""
        sketch = QuantileSketch.of(maxima, FINE)
        held = dataclasses.replace(NONE, ewma=sketch, longest=100)
        version = self.model.version + 1
        self.model = dataclasses.replace(self.model, maxima=held, version=version, **more)
        assert 0 == self.leaf.receive("model", codec.encode(self.model), at(600))

    def status(self, steady: float):
        """Report; return the alarm status that the root has read."""
        self.leaf.flush()
        self.root.talk(self.leaf, steady)
        return self.root.heard[-1].alarm_status


@pytest.mark.parametrize("center", ["fleet", "own", "none"])
@pytest.mark.parametrize("apart", [True, False])
def test_distances_are_those_of_the_python_client(library, center, apart):
    """By the model's factors, loadings of their own or the subspace's, about the right mean."""
    scored = Scored(library, center)
    model, leaf = scored.model, scored.leaf
    if not apart:
        factors = tuple(dataclasses.replace(each, loadings=None) for each in model.factors)
        model = dataclasses.replace(model, factors=factors, version=model.version + 1)
        assert 0 == leaf.receive("model", codec.encode(model), at(550))
    model = codec.decode("watch", codec.encode(model))  # as it has arrived
    rows = scored.schema.scaled(plant(50, 1))
    own = None
    for i, row in enumerate(plant(50, 1)):
        if center == "own":
            sums = leaf.sums
            own = OwnMean(sums.mean, sums.mean, sums.weight, int(sums.weight), 1e9)
        leaf.learn(row[None], at(600 + i))
        scorer = nodes.Subspaces(3).scorer(model.summary, DIM, model.factors)
        said = scorer.statistics(rows[i : i + 1], rows[i : i + 1], own)
        expected = said.distance[0] / (1 if own is None else own.excess)
        assert expected == pytest.approx(leaf.scores[0][2], rel=1e-9)


def test_without_a_model_nothing_is_scored(library):
    """Rows are learnt all the same, and it says what it waits for."""
    leaf = CLeaf(library, Schema.anonymous(DIM), "leaf", at=at(0))
    assert [0] * 5 == leaf.learn(plant(5, 0), at(1))

    assert {(0, 0, 0.0, 0.0)} == {*leaf.scores}


def test_the_limit_is_counted_as_everywhere(library):
    """Of many blocks it is the Python client's, to the bucket; of fewer it is provisional."""
    scored = Scored(library)
    maxima = np.random.default_rng(0).gamma(2.0, 10.0, 5000)
    scored.arm(maxima)
    state, sketch = scored.leaf.scorer, scored.model.maxima.ewma

    assert limit(sketch, 3600 / 604800) == pytest.approx(state.limit, rel=1e-12)
    assert not state.provisional
    scored.arm(maxima, widened=1.25)
    assert 1.25 * limit(sketch, 3600 / 604800) == pytest.approx(state.limit, rel=1e-12)
    scored.arm(maxima[:500], widened=1.0)
    assert state.provisional
    assert np.quantile(maxima[:500], 0.99) < state.limit <= 1.03 * maxima[:500].max()
    scored = Scored(library)
    scored.arm(maxima[:39])
    assert not scored.leaf.scorer.limit
    assert ("limits", 39, 40) == tuple(vars_of(scored.status(700).waiting))


def vars_of(waiting):
    return waiting.what, waiting.rows, waiting.of


NAMES = tuple(Channel(f'channel "{i}" °C') for i in range(DIM))


@pytest.fixture
def armed(library):
    scored = Scored(library, channels=NAMES)
    scored.arm(np.random.default_rng(0).uniform(10, 60, 5000))
    return scored


def faulty(n: int, seed: int = 3) -> np.ndarray:
    rows = plant(n, seed)
    rows[:, 7] += 3.0
    return rows


def test_a_fault_raises_one_alarm_that_names_the_channel(armed):
    """As the average passes the limit; its rows are withheld, and it is reported at once."""
    leaf = armed.leaf
    assert 0 == len({*leaf.learn(plant(100, 2), at(1000))} - {0})
    assert (0, 1, 0, 0, 0) == armed.status(1001).states
    fates = leaf.learn(faulty(20), at(1010))
    averages = [average for *_, average in leaf.scores]
    distances = np.array([distance for _, _, distance, _ in leaf.scores])
    first = next(i for i, average in enumerate(averages) if average > leaf.scorer.limit)

    assert [0] * first + [3] * (20 - first) == fates
    known = ewma(distances, limit=leaf.scorer.limit, last=(averages[0] - 0.1 * distances[0]) / 0.9)
    np.testing.assert_allclose(known, averages, rtol=1e-12)
    assert leaf.wakes_at <= 1010
    status = armed.status(1011)
    (alarm,) = status.alarms
    assert (0, 0, 1, 0, 0) == status.states
    assert alarm.is_open
    assert 'channel "7" °C' == alarm.top[0][0]
    assert 0.5 < alarm.top[0][1] <= 1
    deviation = alarm.deviations[0]
    assert ('channel "7" °C', 3.0) == (
        deviation.channel,
        pytest.approx(deviation.difference, abs=1),
    )
    assert ("ewma", 20 - first) == (alarm.cause, alarm.withheld)
    assert max(averages) / leaf.scorer.limit == pytest.approx(alarm.worst)
    assert (
        1
        == armed.root.node.ledger("g")
        .rows[("leaf", armed.root.heard[-1].stamp.incarnation)]
        .report.alarm_status.open
    )


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 32])
def test_the_longest_report_fits_into_the_room_for_it(library, dim):
    """Names of 64 letters, channels of 100 bytes, an alarm, and the largest numbers."""
    names = tuple(Channel(f"{i:02}" + "\N{THERMOMETER}" * 32 + "ab") for i in range(dim))
    schema, name = Schema(names), "n" * 64
    leaf = CLeaf(library, schema, name, group="g" * 64, at=at(0))
    leaf.state.joined = 1
    for each in ("seq", "learnt", "withheld", "lost", "lifetime", "desired"):
        setattr(leaf.state, each, 2**53 - 100)
    leaf.learn(np.random.default_rng(0).standard_normal((9, dim)), at(1))
    leaf.state.join.at = np.inf
    scorer, most = leaf.scorer, 2**60
    scorer.version = scorer.raised_by = scorer.number = most
    scorer.withheld = 2**50
    scorer.ready = scorer.open = scorer.marked = scorer.verdict = 1
    scorer.limit = scorer.worst = scorer.began_s = scorer.peaked_s = 1.1
    for i in range(min(dim, 3)):
        scorer.top[i], scorer.share[i], scorer.value[i], scorer.expected[i] = i, 0.3, 1.1, 2.2
    leaf.flush()
    kind, data = leaf.send(at(2))

    assert kind == "report"
    assert dim == len(codec.decode(kind, data).summary.mean)
    assert 3 >= len(codec.decode(kind, data).alarms[0].top) == min(dim, 3)
    assert len(data) <= 8 * dim * (dim + 1) // 2 + 1280


def test_an_alarm_ends_when_rows_are_normal_again(armed):
    """After 32 rows without a high average; the rows after it are learnt."""
    leaf = armed.leaf
    leaf.learn(faulty(20), at(1010))
    armed.status(1011)
    fates = leaf.learn(plant(100, 4), at(1100))
    (alarm,) = armed.status(1200).alarms

    assert 1.7e9 + 1100 == alarm.ended
    assert 32 <= fates.index(0) < 70
    assert {0} == {*fates[fates.index(0) :]}


def test_an_accepted_alarm_is_learnt_and_a_rejected_one_is_not(armed):
    """As an operator has said, once, through the root; and learning is paused and resumed."""
    leaf, root = armed.leaf, armed.root
    leaf.learn(faulty(20), at(1010))
    (alarm,) = armed.status(1011).alarms
    root.step(nodes.SetDesired("g", "leaf", verdict=(alarm.number, True)), 1012)
    assert (
        "accepted" == armed.status(1013).alarms[0].verdict or armed.status(1050).alarms[0].verdict
    )
    assert [0, 0] == leaf.learn(faulty(2), at(1060))
    root.step(nodes.SetDesired("g", "leaf", verdict=(alarm.number, False)), 1062)
    armed.status(1063)
    armed.status(1100)
    assert [3, 3] == leaf.learn(faulty(2), at(1101))
    root.step(nodes.SetDesired("g", "leaf", paused=True, verdict=(alarm.number, True)), 1102)
    armed.status(1103)
    status = armed.status(1150)
    assert [4, 4] == leaf.learn(faulty(2), at(1160))
    assert status.desired == leaf.state.desired > 0


def test_rows_of_an_alarm_are_learnt_after_a_day(armed):
    """A leaf must not stop to learn for good because nobody looks."""
    leaf = armed.leaf
    leaf.learn(faulty(20), at(1010))

    assert [3] == leaf.learn(faulty(1), at(86_000))
    assert [0] == leaf.learn(faulty(1), at(90_000))


def test_models_that_cannot_be_used_change_nothing(armed):
    """Older ones, of another schema, of numbers that are none: rows are scored as before."""
    leaf, model = armed.leaf, armed.model
    before = bytes(leaf.scorer)
    assert 4 == leaf.receive("model", codec.encode(model), at(700))
    other = Schema.anonymous(DIM)
    stranger = dataclasses.replace(model, schema=other.canonical, version=model.version + 1)
    assert 5 == leaf.receive("model", codec.encode(stranger), at(700))
    newer = dataclasses.replace(model, version=model.version + 1)
    without = dataclasses.replace(newer, factors=())
    assert 5 == leaf.receive("model", codec.encode(without), at(700))
    factors = model.factors[0]
    for field in ("noise", "loadings"):
        wrong = dataclasses.replace(factors, **{field: getattr(factors, field) * np.nan})
        message = codec.encode(dataclasses.replace(newer, factors=(wrong,)))
        assert 5 == leaf.receive("model", message, at(700)), field

    assert before == bytes(leaf.scorer)


def test_a_desired_state_of_another_node_is_not_its_own(armed):
    """Answers may carry those of others; an older number is no news."""
    leaf, report = armed.leaf, armed.root.heard[-1]
    states = (DesiredState("other", 9, paused=True), DesiredState("leaf", 5, paused=True))
    made = Answer(report.stamp, Reason.ACK, pinned=report.pinned, newest=report.stamp.seq)
    for number in (5, 4):
        other = dataclasses.replace(states[1], number=number, paused=number == 5)
        data = codec.encode(made._replace(desired_states=(states[0], other)))
        assert 0 == leaf.receive("answer", data, at(700))

    assert (5, 1) == (leaf.state.desired, leaf.state.paused)
