"""Each reading counts once, whatever Flower loses, repeats or runs again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import submerge
from submerge import Schema
from submerge_bridges.flower.group import FlowerGroup
from submerge_bridges.flower.root import FlowerRoot
from submerge_files import model_file
from support.flower_rounds import FATES, FlowerRounds

CLIENTS = 3
PLAIN = FlowerGroup("pumps", ("a", "b", "c"), rank=1, scaling="none")
SCALED = FlowerGroup("pumps", ("a", "b", "c"), rank=1, scaling="fleet", scaling_rows=60)

rounds = st.lists(
    st.tuples(st.tuples(*[st.sampled_from(FATES)] * CLIENTS), st.booleans()), max_size=5
)


def sums(root: FlowerRoot) -> tuple[float, Any]:
    """Weight and sum of readings that the root has merged, in the units of the channels."""
    learnt = root.learnt()
    assert learnt.summary is not None
    scaling = Schema.parse(learnt.model.schema).scaling
    summary = learnt.summary.pieces[0]
    mean = summary.mean
    if scaling is not None:
        mean = mean * np.array(scaling.scale) + np.array(scaling.offset)
    return summary.weight, mean * summary.weight


def check(group: FlowerGroup, fates: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = FlowerRounds(group, CLIENTS, Path(folder), per_round=20)
        world.run({})
        for each, restarts in fates:
            if restarts:
                world.restart_root()
            world.run(dict(enumerate(each)))
        for _ in range(4):  # Flower is well again
            world.run({}, reads=False)
        weight, total = sums(world.root)
        counts, expected = world.root.counts(), world.taken()
        world.root.close()

    assert (len(expected), 0, 0) == (counts.learnt, counts.withheld, counts.lost)
    assert len(expected) == pytest.approx(weight, rel=1e-12)
    # float32 means are sent: 1e-7 of each reading's size.
    np.testing.assert_allclose(expected.sum(axis=0), total, atol=1e-5 * len(expected))


@pytest.mark.slow
@settings(max_examples=15)
@given(rounds)
@example([(("state lost", "reply lost", "dies"), True), (("well", "state lost", "well"), False)])
@example([(("carried out twice",) * CLIENTS, False), (("reply lost",) * CLIENTS, True)])
def test_each_reading_counts_once(fates: list[Any]) -> None:
    """Of what clients know that they have taken, the root merges each row once, and no other."""
    check(PLAIN, fates)


@pytest.mark.slow
@settings(max_examples=15)
@given(rounds)
@example([(("well", "reply lost", "state lost"), True), (("dies", "well", "well"), False)])
def test_so_does_one_that_was_read_before_the_scaling_was_settled(fates: list[Any]) -> None:
    """Rows that were only measured go over to the fleet's scaling once."""
    check(SCALED, fates)


@pytest.mark.slow
def test_with_a_period_the_model_has_alarm_limits(tmp_path: Path) -> None:
    """Clients that know how long a row is judge their rows: `submerge.Model` raises alarms."""
    pytest.importorskip("pyarrow")
    group = FlowerGroup("pumps", ("a", "b", "c"), rank=1, scaling="none", period_s=60.0)
    world = FlowerRounds(group, 2, tmp_path, per_round=600)
    for _ in range(10):
        world.run({})
    world.run({}, reads=False)
    model_file.save(tmp_path / "pumps.model", world.root.learnt())
    counts, taken = world.root.counts(), len(world.taken())
    world.root.close()
    model = submerge.Model.load(tmp_path / "pumps.model")
    day = world.rows(9, 0, 300)
    day[200:, 1] += 9
    (alarm,) = model.detect(day, names=model.channels)

    assert taken == counts.learnt + counts.withheld
    assert 200 <= alarm.began < 210
    assert "b" == next(iter(alarm.channels))


def test_a_round_lost_with_its_state_would_count_twice_if_it_were_sent_at_once(
    tmp_path: Path,
) -> None:
    """A life sends nothing of what it has read: its reply may leave, and its state be lost."""
    world = FlowerRounds(PLAIN, 1, tmp_path)

    world.run({0: "state lost"})
    world.run({0: "state lost"})
    world.run({}, reads=False)

    assert 0 == world.root.counts().learnt
    world.root.close()


def test_a_client_that_is_not_heard_stops_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many rounds waiting as may wait it takes no more rows, and drops none."""
    for module in ("group", "life"):
        monkeypatch.setattr(f"submerge_bridges.flower.{module}.FINALS", 3)
    world = FlowerRounds(PLAIN, 1, tmp_path)

    for _ in range(6):
        world.run({0: "reply lost"})
    for _ in range(2):
        world.run({}, reads=False)

    assert 3 * 7 == len(world.taken()) == world.root.counts().learnt
    world.root.close()
