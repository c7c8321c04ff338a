"""What the root takes of a federation, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from submerge import UsageError
from submerge_bridges.flower.carrying import ParcelMessage
from submerge_bridges.flower.group import FlowerGroup
from submerge_bridges.flower.root import FlowerRoot
from submerge_proto.wire import codec
from support.flower_rounds import FlowerRounds

GROUP = FlowerGroup("pumps", ("a", "b", "c"), rank=1, scaling="none")


@pytest.fixture
def world(tmp_path: Path):
    """Two clients that have read a round each, which is not sent yet."""
    world = FlowerRounds(GROUP, 2, tmp_path)
    world.run({})
    yield world
    world.root.close()


def reply(world: FlowerRounds, client: int) -> tuple[ParcelMessage, ...]:
    """The reply of a client in its second round."""
    return world.live(client, world.root.instruction(world.name(client)), reads=False)[0]


def test_a_node_cannot_speak_for_another(world: FlowerRounds) -> None:
    """A report in the name of one node, from another as Flower says, counts for neither."""
    world.root.take({world.name(1): reply(world, 0)})

    assert 0 == world.root.counts().learnt
    assert [] == world.root.nodes()
    assert 1 == world.root.refused


def test_no_node_of_a_federation_is_an_aggregator(world: FlowerRounds) -> None:
    """A report with a fence, which speaks for many nodes, is refused."""
    (carried,) = reply(world, 0)
    report = codec.decode("report", carried.data)
    forged = ParcelMessage("report", codec.encode(replace(report, fence=bytes(16))))  # type: ignore[type-var]
    world.root.take({world.name(0): (forged,)})

    assert (0, 1) == (world.root.counts().learnt, world.root.refused)


def test_noise_costs_the_message_and_not_the_round(world: FlowerRounds) -> None:
    """One bad message changes no row; the others of its batch are taken."""
    noise = ParcelMessage("report", b"noise"), ParcelMessage("joined", b"\x00")
    world.root.take({world.name(0): noise, world.name(1): reply(world, 1)})

    assert 7 == world.root.counts().learnt
    assert 2 == world.root.refused


def test_a_second_root_on_the_store_of_the_first_is_refused(world: FlowerRounds) -> None:
    """Two servers would each count what the other has counted."""
    with pytest.raises(UsageError, match="another process uses"):
        FlowerRoot(GROUP, Path(world._store))


def test_a_later_root_goes_on_from_the_store(world: FlowerRounds) -> None:
    """What was counted in an earlier run of the server is in the model of this one."""
    world.run({}, reads=False)
    world.restart_root()

    assert 14 == world.root.counts().learnt == world.root.learnt().model.counts.learnt


def test_without_readings_there_is_no_model(tmp_path: Path) -> None:
    """A model of nothing is an error, in one line, which says what is waited for."""
    for scaling, said in (("none", "more rounds"), ("fleet", "1000 rows settle the scaling")):
        root = FlowerRoot(replace(GROUP, scaling=scaling), tmp_path / f"{scaling}.db")

        with pytest.raises(UsageError, match=f"no model.*{said}"):
            root.learnt()
        root.close()
