"""Whose peaks make a group's limits: those of nodes that are alike."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from submerge.aggregator.rollup import LEAST_CLIENTS, scores
from submerge.aggregator.rows.histories import Histories
from submerge.protocol.messages import ScoreSketches
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty


def ledger(*levels: float, hours: int = 24, from_client: bool = True) -> SimpleNamespace:
    """Return rows whose hours all came to one level each."""
    rows, heard = [], {}
    for i, level in enumerate(levels):
        sketch = QuantileSketch.of(np.full(hours, level), FINE)
        reported = QuantileSketch.of(np.array([level]))
        maxima = BlockMaxima(sketch, empty(FINE), empty(FINE), hours)
        # Every node has an older life as well, whose row says the same again.
        for current in (1, 2):
            stamp = SimpleNamespace(node=f"c{i}", incarnation=current)
            report = SimpleNamespace(
                stamp=stamp, scores=ScoreSketches(reported, reported, None, maxima)
            )
            rows.append(SimpleNamespace(from_client=from_client, report=report))
            heard[stamp.node, current] = float(current)
    schema = SimpleNamespace(linear=True)
    facts = {"schema": schema, "fingerprint": "", "histories": Histories("room")}
    presence = SimpleNamespace(heard=heard)
    return SimpleNamespace(current=lambda: rows, presence=presence, **facts)


def hours(ledger: SimpleNamespace) -> int:
    """Return how many hours count."""
    return scores(ledger).maxima.spe.n


def test_a_faulty_client_does_not_set_the_limits():
    """Its usual hour is what others come to once in a blue moon."""
    assert 24 * 9 == hours(ledger(*9 * [1.0], 5.0))
    assert 24 * 10 == hours(ledger(*9 * [1.0], 3.5))


def test_machines_of_another_kind_are_not_faulty():
    """Where more than a quarter stand out, they count; half that idle do not shut out the rest."""
    assert 24 * 10 == hours(ledger(*7 * [1.0], *3 * [6.0]))
    assert 24 * 40 == hours(ledger(*21 * [0.0], *19 * [1.0]))


def test_of_few_nobody_can_say():
    """Nor by a few hours, nor of what is merged below."""
    few = LEAST_CLIENTS - 1
    assert 24 * few == hours(ledger(*(few - 1) * [1.0], 50.0))
    assert 6 * 10 == hours(ledger(*9 * [1.0], 50.0, hours=6))
    assert 24 * 10 == hours(ledger(*9 * [1.0], 50.0, from_client=False))
