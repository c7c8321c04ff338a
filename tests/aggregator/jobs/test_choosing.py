"""A root's fleet chooses its landmarks, with real servers and clients in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from submerge import UsageError
from submerge.features import Landmarks, OpenLandmarks
from submerge_aggregator.jobs import choosing
from support.job_memory import GROUP, MemoryJobs
from support.patience import until

pytestmark = pytest.mark.slow

SCHEMA = {
    "scaling": "fleet",
    "features": {"kernel": "gaussian", "map": "nystrom", "landmarks": "fleet", "features": 10},
}


def rows_of(name: str, n: int = 40) -> np.ndarray:
    """Rows of a client."""
    return np.random.default_rng(ord(name)).standard_normal((n, 3)) * [1.0, 10.0, 100.0] + 7


def tree() -> dict[str, Any]:
    return {"root": {"hall": {"a": rows_of("a"), "b": rows_of("b")}, "c": rows_of("c")}}


@pytest.fixture
def fleet_of(tmp_path, monkeypatch) -> Iterator[Callable[..., MemoryJobs]]:
    """Make a fleet that looks often, which is closed in the end."""
    made: list[MemoryJobs] = []
    monkeypatch.setattr(choosing, "LOOK_S", 0.05)

    def make(**clients: Any) -> MemoryJobs:
        advanced = {"scaling_rows": 100}
        made.append(MemoryJobs(tmp_path, tree(), schema=SCHEMA, advanced=advanced, **clients))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


def schema_of(fleet: MemoryJobs, node: str = "root") -> Any:
    return fleet.asked(lambda each, _: each.ledger(GROUP).schema, node)


def counted(fleet: MemoryJobs) -> int:
    """Readings that count at the root, those of closed incarnations too."""
    return int(fleet.asked(lambda each, _: each.ledger(GROUP).counts().learnt))


def test_the_fleet_chooses_and_goes_on_to_learn(fleet_of):
    """All nodes take the landmarks, which are readings, and all readings count."""
    fleet = fleet_of(share_points=20)
    until(lambda: schema_of(fleet).features.settled, lambda: f"landmarks: {fleet.board.heard}")
    chosen = schema_of(fleet)
    until(lambda: counted(fleet) == 120, lambda: f"120 readings, got {counted(fleet)}")

    assert isinstance(chosen.features, Landmarks)
    assert 10 == len(chosen.features.points)
    scale, offset = np.array(chosen.scaling.scale), np.array(chosen.scaling.offset)
    points = chosen.features.points * scale + offset
    every = np.vstack([rows_of(name) for name in "abc"])
    nearest = np.abs(points[:, None] - every[None]).max(axis=2).min(axis=1)
    assert (nearest < 1e-4).all()
    until(lambda: schema_of(fleet, "hall") == chosen, lambda: "the schema below")


def test_a_fleet_that_shares_nothing_stays_open_and_says_why(fleet_of):
    """Without share_points no reading leaves a client, and the root waits."""
    fleet = fleet_of()
    until(lambda: [w for k, w in fleet.board.heard if k == "ended"], lambda: "the end of a job")
    ended = next(what for kind, what in fleet.board.heard if kind == "ended")

    assert "set share_points at clients" in ended.failure
    assert isinstance(schema_of(fleet).features, OpenLandmarks)
    assert 1 == sum(kind == "opened" for kind, _ in fleet.board.heard)


def test_who_may_not_choose_again_is_told_why(fleet_of):
    """At an aggregator below, and in an unknown group."""
    fleet = fleet_of(share_points=50)
    until(lambda: schema_of(fleet).features.settled, lambda: "the first landmarks")
    root, hall = (fleet.servers[name].landmarks for name in ("root", "hall"))

    with pytest.raises(UsageError, match=r"only the root chooses landmarks: root-.* is above"):
        fleet.does(hall.choose_again(GROUP))
    with pytest.raises(UsageError, match="no group mill here"):
        fleet.does(root.choose_again("mill"))


def test_a_choice_that_an_operator_orders_is_not_tried_again(fleet_of, caplog):
    """No client holds a row of the new schema yet: it fails, and the log promises no other."""
    fleet = fleet_of(share_points=20)
    until(lambda: schema_of(fleet).features.settled, lambda: "the first landmarks")
    chooser = fleet.servers["root"].landmarks
    until(lambda: not fleet.call(lambda: chooser._choosing), lambda: "the end of the choice")
    caplog.clear()

    name = fleet.does(chooser.choose_again(GROUP))
    fleet.ended(name)
    until(lambda: failures(caplog), lambda: "the log's line")

    assert [{"group", "why"}] == failures(caplog)


def failures(caplog: pytest.LogCaptureFixture) -> list[set[str]]:
    """What the log's lines on choices that failed say besides."""
    lines = [each for each in caplog.records if each.getMessage() == "landmarks not chosen"]
    return [set(each.facts) for each in lines]
