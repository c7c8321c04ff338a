"""One instruction in the life of a client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import ShapeError
from submerge.protocol.machine import Now
from submerge_bridges.flower.carrying import ParcelMessage
from submerge_bridges.flower.group import FlowerGroup
from submerge_bridges.flower.keeping import StateRecords
from submerge_bridges.flower.life import ClientLife, JoinRefused
from support.flower_rounds import FlowerRounds

GROUP = FlowerGroup("pumps", ("a", "b", "c"), rank=1, scaling="none")


@pytest.fixture
def world(tmp_path: Path):
    """One client, and its root."""
    world = FlowerRounds(GROUP, 1, tmp_path)
    yield world
    world.root.close()


def test_rows_of_another_width_are_refused(world: FlowerRounds) -> None:
    """The error names the shape that is expected, and the one that came."""
    life = ClientLife(GROUP, "flower-0", StateRecords({}))
    life.begin(world.root.instruction("flower-0"))

    with pytest.raises(ShapeError, match=r"\(n, 3\), got \(2, 4\)"):
        life.read(np.zeros((2, 4)))


def test_a_life_that_reads_nothing_leaves_nothing(world: FlowerRounds) -> None:
    """No report follows from an empty array: rounds without rows come to an end."""
    world.run({}, reads=False)
    reply, _ = world.live(0, world.root.instruction("flower-0"), reads=False)

    assert () == reply


def test_a_client_of_other_channels_is_told_which(world: FlowerRounds) -> None:
    """The root's objections are in the error, and nothing is read."""
    other = replace(GROUP, channels=("a", "b", "d"))
    life = ClientLife(other, "flower-0", StateRecords({}))

    with pytest.raises(JoinRefused, match=r"refuses this client.*missing channel: c"):
        life.begin(world.root.instruction("flower-0"))


def test_an_instruction_without_an_answer_to_a_join_is_refused() -> None:
    """Without it, what is read could not be kept for any root."""
    life = ClientLife(GROUP, "flower-0", StateRecords({}))

    with pytest.raises(JoinRefused, match="answer to a join"):
        life.begin(())


def test_a_message_that_cannot_be_read_costs_that_message(world: FlowerRounds) -> None:
    """Noise in an instruction is counted, and the rest of it is carried out."""
    life = ClientLife(GROUP, "flower-0", StateRecords({}))
    life.begin((ParcelMessage("answer", b"noise"), *world.root.instruction("flower-0")))

    assert (1, 5) == (life.refused, life.read(np.ones((5, 3))))


@pytest.mark.slow
def test_a_clock_that_was_set_back_costs_no_reading(world: FlowerRounds) -> None:
    """An incarnation is named above the floor of those that are closed, whatever the clock says."""
    for _ in range(12):  # so many that the first of them are below a floor
        world.run({})
    world.wall -= 1e6
    backward = world.wall

    world.now = lambda: Now(0.0, backward)  # type: ignore[method-assign]
    for _ in range(3):
        world.run({})
    world.run({}, reads=False)

    assert len(world.taken()) == world.root.counts().learnt
    assert 0 == world.root.counts().lost


@pytest.mark.slow
def test_gaps_are_withheld_or_filled_as_the_group_says(tmp_path: Path) -> None:
    """A row with a gap counts as withheld; where gaps are filled by the model, as learnt."""
    for fills, expected in ((False, (37, 1)), (True, (38, 0))):
        group = replace(GROUP, fills_gaps=fills)
        folder = tmp_path / str(fills)
        folder.mkdir()
        world = FlowerRounds(group, 1, folder)
        for _ in range(4):  # then there is a model
            world.run({})
        rows = world.rows(0, 28, 10)
        rows[4, 1] = np.nan
        records = StateRecords(world.contexts[0])
        life = ClientLife(group, "flower-0", records, world.now)
        life.begin(world.root.instruction("flower-0"))
        life.read(rows)
        life.end()
        world.contexts[0] = records.values
        world.run({}, reads=False)
        counts = world.root.counts()
        world.root.close()

        assert expected == (counts.learnt, counts.withheld)
