"""The rows that a client holds for jobs: complete, learnt, scaled, bounded, of one schema."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from submerge import Schema
from submerge.features import OpenLandmarks, Polynomial
from submerge.judge.decision import Decision
from submerge.judge.prepare import prepare
from submerge.protocol.machine import Scored
from submerge.schema import Channel, Scaling
from submerge_client.jobs import HeldSample

SCHEMA = Schema((Channel("a", "K"), Channel("b", "K")), scaling=Scaling((10.0, 20.0), (2.0, 4.0)))
ROWS = np.array([[10.0 + 2 * i, 20.0 + 4 * i] for i in range(1, 11)])


def node(schema: Schema = SCHEMA, *, learns: bool = True, monitor: Any = None) -> Any:
    """What a sample asks of a client."""
    current = SimpleNamespace(
        learns=learns, raw=False, fingerprint=schema.fingerprint, schema=schema
    )
    settings = SimpleNamespace(learn_when=None)
    return SimpleNamespace(current=current, settings=settings, monitor=monitor)


def sample(most: int = 10) -> HeldSample:
    return HeldSample(most, np.random.default_rng(0))


def scored(rows: np.ndarray, withheld: list[bool], filled: int | None = None) -> list[Scored]:
    """The effect of a step that has scored rows; the gaps of one were filled."""
    gappy = rows.copy()
    if filled is not None:
        gappy[filled, 1] = np.nan
    fill = None if filled is None else np.nan_to_num
    block = prepare(gappy, SCHEMA, fill=fill)
    decision = Decision(np.zeros(len(rows), dtype=bool), np.array(withheld))
    return [Scored(block, None, decision, 1, False)]  # type: ignore[arg-type]


def test_rows_are_as_the_schema_scales_them():
    """In the order in which they came; each with a number of its own."""
    held = sample()
    held.see(ROWS, (), node())

    fingerprint, rows, order, times = held.draw(1)
    assert (SCHEMA.fingerprint, 1) == (fingerprint, times)
    np.testing.assert_array_equal([[i, i] for i in range(1, 11)], rows)
    assert 10 == len({*order.tolist()})


def test_what_is_withheld_or_filled_is_not_held():
    """Rows of an alarm, and rows with a gap, whatever it was filled with."""
    held = sample()
    held.see(ROWS, scored(ROWS, [False, True] + 8 * [False], filled=0), node())

    np.testing.assert_array_equal([[i, i] for i in range(3, 11)], held.draw(1)[1])


@pytest.mark.parametrize("withholds", [True, False])
def test_without_a_model_an_operators_pause_counts(withholds):
    """All rows are learnt, or none."""
    held = sample()
    held.see(ROWS, (), node(monitor=SimpleNamespace(withholds=withholds)))

    assert (0 if withholds else 10) == len(held)


def test_gaps_before_there_is_a_model_are_left_out():
    """A row is held whole or not at all."""
    rows = ROWS.copy()
    rows[1, 0] = np.nan
    held = sample()
    held.see(rows, (), node())

    np.testing.assert_array_equal([[i, i] for i in (1, *range(3, 11))], held.draw(1)[1])


def test_another_schema_empties_it():
    """Rows of two schemas never meet."""
    held = sample()
    held.see(ROWS, (), node())
    other = Schema((Channel("a", "K"), Channel("b", "K")), scaling=None)
    held.see(ROWS[:8], (), node(other))

    assert other.fingerprint == held.draw(1)[0]
    np.testing.assert_array_equal(ROWS[:8], held.draw(1)[1])


def test_nothing_is_held_while_the_scaling_is_open_or_if_none_may_be():
    """Neither before the fleet has settled it, nor with job_rows = 0."""
    held, none = sample(), sample(0)
    held.see(ROWS, (), node(learns=False))
    none.see(ROWS, (), node())

    assert (0, 0) == (len(held), len(none))
    assert ("", (0, 0)) == (held.draw(1)[0], held.draw(1)[1].shape)


def test_the_memory_is_bounded():
    """However many rows come, so many are held."""
    held = sample(20)
    for _ in range(100):
        held.see(ROWS, (), node())

    assert (20, 2) == held.draw(1)[1].shape


def test_rows_are_held_while_the_fleet_has_still_to_choose_its_landmarks():
    """In the units of the open schema: they are what it chooses from."""
    open_ = Schema(SCHEMA.channels, features=OpenLandmarks(Polynomial(2), 5))
    held = sample()
    held.see(ROWS[:3], (), node(open_, learns=False))

    assert open_.fingerprint == held.draw(1)[0]
    assert {tuple(row) for row in ROWS[:3]} == {tuple(row) for row in held.draw(1)[1]}
