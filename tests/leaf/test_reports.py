"""What a leaf in C reports is read as any client's report, and counted once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from c_leaf import CLeaf
from submerge import Schema, nodes
from submerge.protocol.messages import Answer, Incarnation, Join, Joined, Reason, Report
from submerge.schema import Scaling
from submerge_proto.wire import codec
from support.leaf_root import LeafRoot, at

SCHEMA = Schema.anonymous(4)


def plant(n: int, dim: int = 4, seed: int = 0) -> np.ndarray:
    """Rows of three causes, with noise, about a mean."""
    rng = np.random.default_rng(seed)
    causes = np.random.default_rng(99).standard_normal((3, dim))
    return rng.standard_normal((n, 3)) @ causes + 0.1 * rng.standard_normal((n, dim)) + 5


@pytest.fixture
def fleet(library):
    """A root, and a leaf that has joined and learnt 10 rows, of which the root knows."""
    root, leaf = LeafRoot(SCHEMA, seal_after_s=600.0), CLeaf(library, SCHEMA, "leaf", at=at(0))
    leaf.learn(plant(10), at(1))
    root.talk(leaf, 1)
    root.talk(leaf, 400)
    return root, leaf


def counted(root: LeafRoot, steady: float) -> int:
    """Readings in the newest model."""
    root.step(nodes.Tick(), steady)
    return root.node.model("g").counts.learnt


def reports(root: LeafRoot) -> list[Report]:
    return [each for each in root.heard if isinstance(each, Report)]


def answer(report: Report, reason: Reason, **more) -> bytes:
    made = Answer(report.stamp, reason, pinned=report.pinned, newest=report.stamp.seq, **more)
    return codec.encode(made)


@pytest.mark.parametrize("dim", [1, 2, 20, 23, 32])
def test_a_report_holds_what_the_leaf_has_learnt(library, dim):
    """Weight and mean are exact, and the scatter is off by less than the report says."""
    schema = Schema(dim, scaling=Scaling((1.0,) * dim, (2.0,) * dim))
    leaf, rows = CLeaf(library, schema, "leaf", at=at(0)), plant(500, dim)
    root = LeafRoot(schema)
    leaf.learn(rows, at(1))
    root.talk(leaf, 1)
    root.talk(leaf, 400)
    (report,), sums, scaled = reports(root), leaf.sums, schema.scaled(rows)

    assert 500 == report.summary.weight == report.counts.learnt
    assert np.array_equal(sums.mean, report.summary.mean)
    np.testing.assert_allclose(scaled.mean(axis=0), report.summary.mean, rtol=1e-14)
    assert np.array_equal(np.diag(sums.scatter), report.summary.channel_energies)
    off = np.abs(np.linalg.eigvalsh(report.summary.scatter - sums.scatter)).max()
    assert off <= report.summary.spectral_bound <= 3e-7 * report.summary.energy


@pytest.mark.parametrize("rows", ["constant", "one", "copies", "few", "sizes"])
def test_a_scatter_that_is_singular_travels_as_well(library, rows):
    """Of one row, of channels that never vary, of copies, and of sizes far apart."""
    base = plant(40, 6)
    if rows == "constant":
        base[:, 2] = 7.0
    if rows == "one":
        base = base[:1]
    if rows == "copies":
        base[:, 3:] = base[:, :3] * (1, 2, 1e-3)
    if rows == "few":
        base = base[:3]
    if rows == "sizes":
        base = base * 10.0 ** np.array([9, -9, 3, 0, -3, 6])
    root, leaf = (
        LeafRoot(Schema.anonymous(6)),
        CLeaf(library, Schema.anonymous(6), "leaf", at=at(0)),
    )
    leaf.learn(base, at(1))
    root.talk(leaf, 1)
    root.talk(leaf, 400)
    (report,), scatter = reports(root), leaf.sums.scatter

    off = np.abs(np.linalg.eigvalsh(report.summary.scatter - scatter)).max()
    assert off <= report.summary.spectral_bound <= 1e-6 * report.summary.energy
    assert len(base) == leaf.state.delivered == counted(root, 500)


def test_readings_are_counted_once_whatever_comes_twice(fleet):
    """Each report is heard twice, and each answer: the model counts each reading once."""
    root, leaf = fleet
    for steady in (800, 1200, 1600):
        leaf.learn(plant(5, seed=steady), at(steady))
        sent = leaf.send(at(steady))
        answers = [*root.hear(*sent, steady), *root.hear(*sent, steady)]
        for kind, data in answers * 2:
            leaf.receive(kind, data, at(steady))

    assert 25 == leaf.state.delivered == counted(root, 2000)


def test_an_answer_that_is_lost_costs_a_report_and_nothing_else(fleet):
    """It tries again, with a newer report, and later each time; both are counted as one."""
    root, leaf = fleet
    leaf.learn(plant(5), at(800))
    root.hear(*leaf.send(at(800)), 800)
    assert leaf.send(at(801)) is None
    assert 10 == leaf.state.delivered
    leaf.learn(plant(1), at(805))
    root.talk(leaf, 830)

    assert [1, 2, 3] == [each.stamp.seq for each in reports(root)]
    assert 16 == leaf.state.delivered == counted(root, 1000)


def test_reports_without_an_answer_are_tried_ever_more_rarely_and_a_join_is_asked_again(fleet):
    """From ten seconds to five minutes; after each third report comes a join."""
    _, leaf = fleet
    leaf.learn(plant(5), at(800))
    sent, steady = [], 800.0
    while steady < 5000:
        steady = max(steady, leaf.wakes_at)
        sent.append((steady, leaf.send(at(steady))[0]))
    waits = np.diff([when for when, _ in sent])

    assert 10 <= waits.min() <= waits.max() <= 300
    assert waits[-3:].min() >= 60
    assert ["report"] * 3 + ["join"] == [kind for _, kind in sent[:4]]


def test_a_restart_is_a_new_incarnation_and_what_the_root_holds_stays(fleet, library):
    """RAM is lost, and with it what was not reported: the model has the rest, exactly once."""
    root, leaf = fleet
    leaf.learn(plant(7), at(700))  # never reported
    after = CLeaf(library, SCHEMA, "leaf", seed=1, at=at(900))
    after.learn(plant(3), at(901))
    root.talk(after, 901)
    root.talk(after, 1500)
    assert 13 == counted(root, 1600)
    for steady in range(2000, 6000, 500):  # by now the row of the first is sealed
        root.talk(after, steady)

    first, second = (each.stamp.incarnation for each in (reports(root)[0], reports(root)[-1]))
    assert first != second
    assert 13 == counted(root, 6000)
    assert 0 == after.state.lost


def test_a_root_that_lost_its_store_gets_all_there_is(fleet):
    """Of a root to another root an incarnation goes on: the new one counts all of its readings."""
    _, leaf = fleet
    other = LeafRoot(SCHEMA, seed=5)
    leaf.learn(plant(5), at(800))
    leaf.linked()
    other.talk(leaf, 830)
    other.talk(leaf, 860)

    assert 15 == leaf.state.delivered == counted(other, 1000)
    assert 0 == leaf.state.lost


def test_a_root_from_a_backup_gets_the_newest_report_again(fleet):
    """It says that it holds less than before: the leaf reports at once."""
    _, leaf = fleet
    leaf.linked()
    kind, data = leaf.send(at(500))
    join = codec.decode(kind, data)
    assert isinstance(join, Join)
    pinned = Incarnation(*leaf.state.pinned)
    joined = Joined(join.stamp._replace(seq=0), Reason.ACK, b"", pinned, True, 0, SCHEMA.canonical)
    data = codec.encode(joined._replace(whole_scatter=True))

    assert 0 == leaf.receive("joined", data, at(500))
    assert "report" == leaf.send(at(500))[0]


def test_a_node_that_is_forgotten_begins_again_from_zero(fleet):
    """What an operator has removed comes back in no report."""
    root, leaf = fleet
    root.step(nodes.Forget("g", "leaf"), 500)
    leaf.learn(plant(4), at(510))
    for steady in range(800, 2000, 100):
        root.talk(leaf, steady)
    assert 0 == leaf.state.learnt
    leaf.learn(plant(2), at(2000))
    for steady in range(2000, 3000, 100):
        root.talk(leaf, steady)

    assert 2 == counted(root, 3100)
    assert 4 == leaf.state.lost  # it had not been told of these


def test_a_copy_is_silent_for_an_hour(fleet):
    """Two contradictions within an hour: another device has this one's memory."""
    root, leaf = fleet
    for steady in (500, 900):
        leaf.learn(plant(4), at(steady))
        report = reports(root)[-1]
        assert 3 == leaf.receive("answer", answer(report, Reason.EQUIVOCATION), at(steady))
        assert 0 == leaf.state.learnt
        if steady == 500:
            root.talk(leaf, 501)
            leaf.learn(plant(4), at(502))
            root.talk(leaf, 880)

    assert 900 + 3600 == leaf.wakes_at


def test_what_is_not_for_it_changes_nothing(fleet):
    """Answers to another node or incarnation, of another parent, and to reports not yet sent."""
    root, leaf = fleet
    report = reports(root)[-1]
    before = bytes(leaf.state)
    others = [
        dataclasses.replace(report, stamp=report.stamp._replace(node="other")),
        dataclasses.replace(report, stamp=report.stamp._replace(incarnation=Incarnation(1, 1))),
        dataclasses.replace(report, pinned=Incarnation(1, 1)),
    ]
    for other in others:
        assert 2 == leaf.receive("answer", answer(other, Reason.STALE), at(500))
    ahead = dataclasses.replace(report, stamp=report.stamp._replace(seq=99))
    assert 2 == leaf.receive("answer", answer(ahead, Reason.ACK), at(500))
    assert 1 == leaf.receive("answer", b"", at(500))
    assert 1 == leaf.receive("answer", b"\x0a\x05abc", at(500))

    assert before == bytes(leaf.state)


def test_rows_that_are_all_withheld_are_reported_as_well(library):
    """There is no summary then; the root knows of the rows."""
    root, leaf = LeafRoot(SCHEMA), CLeaf(library, SCHEMA, "leaf", at=at(0))
    leaf.learn(np.full((5, 4), np.nan), at(1))
    root.talk(leaf, 1)
    root.talk(leaf, 400)

    counts = reports(root)[-1].counts
    assert (0, 5) == (counts.learnt, counts.withheld)
    assert 5 == leaf.state.delivered


def test_another_schema_is_not_learnt_for(library):
    """A leaf has the schema that it was compiled with: it asks again, and reports nothing."""
    leaf = CLeaf(library, SCHEMA, "leaf", at=at(0))
    leaf.learn(plant(5), at(1))
    root = LeafRoot(Schema.anonymous(5))
    for steady in range(1, 2000, 100):
        root.talk(leaf, steady)

    assert {Join} == {type(each) for each in root.heard}


def test_more_channels_than_there_is_room_for_are_refused(library):
    """Nothing is learnt, and nothing written."""
    assert 5 == CLeaf(library, Schema.anonymous(33), "leaf").wrong
    assert 0 == CLeaf(library, Schema.anonymous(32), "leaf").wrong
