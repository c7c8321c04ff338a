"""Whose peaks make a group's limits: those of nodes that are alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from submerge.aggregator.rollup import LEAST_CLIENTS, scores
from submerge.aggregator.rows.histories import Histories
from submerge.protocol.messages import Census, ScoreSketches
from submerge.stats.block_maxima import WINDOW_S, BlockMaxima, above, limit
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty, packed, unpacked


def ledger(*levels: float, hours: int = 24, from_client: bool = True) -> SimpleNamespace:
    """Return rows whose hours all came to one level each."""
    return ledger_of(*(np.full(hours, level) for level in levels), from_client=from_client)


def ledger_of(*of: np.ndarray, from_client: bool = True, nodes: int = 0) -> SimpleNamespace:
    """Return rows of these hours; `nodes` that each stands for."""
    rows, heard = [], {}
    census = Census(nodes, ()) if nodes else None
    for i, hours in enumerate(of):
        sketch = hours if isinstance(hours, QuantileSketch) else QuantileSketch.of(hours, FINE)
        reported = QuantileSketch.of(np.ones(1))
        maxima = BlockMaxima(sketch, empty(FINE), empty(FINE), sketch.n)
        # Every node has an older life as well, whose row says the same again.
        for current in (1, 2):
            stamp = SimpleNamespace(node=f"c{i}", incarnation=current)
            report = SimpleNamespace(
                stamp=stamp, census=census, scores=ScoreSketches(reported, reported, None, maxima)
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


# -- what one of many may give -----------------------------------------------------------------

ONE_A_WEEK = 1 / 168 / 2.2


def honest(n: int, blocks: int, seed: int = 0) -> list[np.ndarray]:
    """Return the maxima of n nodes, of rows that are alike."""
    rng = np.random.default_rng(seed)
    return [rng.chisquare(12, size=(blocks, 60)).max(axis=1) for _ in range(n)]


def with_liar(maxima: list[np.ndarray], times: float, share: float = 0.45) -> list[np.ndarray]:
    """Return them with the first node's highest raised: its median is as that of others."""
    lie, many = maxima[0].copy(), int(share * len(maxima[0]))
    lie[np.argsort(lie)[-many:]] *= times
    return [lie, *maxima[1:]]


def limit_of(maxima: list[np.ndarray], **how: Any) -> float:
    return limit(scores(ledger_of(*maxima, **how)).maxima.spe, ONE_A_WEEK)


@pytest.mark.parametrize("times", [8.0, 1e3, 1e12])
@pytest.mark.parametrize(("n", "blocks", "most"), [(40, 336, 1.05), (40, 24, 1.4), (6, 336, 3.0)])
def test_one_node_lifts_the_limits_of_no_group(n, blocks, most, times):
    """One of 40 lifted them 7.4 times, or 750: as far as its highest maxima went."""
    maxima = honest(n, blocks)

    assert limit_of(with_liar(maxima, times)) <= most * limit_of(maxima)


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("share", [0.05, 0.45])
def test_no_node_gives_more_than_three_nths_of_the_highest_tenth_of_a_tail(share, from_client):
    """Of clients, and of sites by the nodes that they stand for."""
    lying = with_liar(honest(40, 336), 50.0, share)
    how = {"from_client": from_client, "nodes": 0 if from_client else 7}
    pooled = scores(ledger_of(*lying, **how)).maxima.spe
    lies, others = np.sort(lying[0])[-3:], np.concatenate(lying[1:])

    assert 40 * 336 == pooled.n
    tail = 400 // 10
    highest = np.sort(others)[-(tail - 3)]
    assert above(pooled, 1.05 * highest) <= tail
    assert above(pooled, 1.05 * others.max()) <= 3 * tail / 40
    assert above(pooled, 2.1 * others.max()) == 0 < (lies > others.max()).sum()


@pytest.mark.parametrize(("n", "blocks"), [(40, 336), (40, 72), (10, 336), (5, 336)])
def test_limits_of_nodes_that_are_alike_stay(n, blocks):
    """To a few per cent, by chance: some node has more than three of the highest."""
    ratios = []
    for seed in range(5):
        maxima = honest(n, blocks, seed)
        whole = limit(QuantileSketch.of(np.concatenate(maxima), FINE), ONE_A_WEEK)
        ratios.append(limit_of(maxima) / whole)

    assert 0.97 <= min(ratios) <= max(ratios) <= 1.0


def test_a_coarse_sketch_makes_no_limit_coarse():
    """Scores of 900 octaves have buckets that are 2^16 times as high as low."""
    maxima, wide = honest(10, 336), 2.0 ** np.linspace(-800, 800, 1000)
    wide[300:900] = np.median(maxima[0])

    assert limit_of(maxima) == limit_of([wide, *maxima])


def test_a_client_that_claims_more_blocks_than_it_can_hold_decides_nothing():
    """A billion low maxima made everybody alarm, all the time."""
    maxima = honest(10, 336)
    claimed = QuantileSketch(FINE.level, ((-640, 10**9),), FINE)
    assert 4 * WINDOW_S < 3600 * claimed.n

    assert limit_of(maxima) == limit_of([claimed, *maxima])


def test_what_is_evened_is_a_sketch_that_a_parent_reads():
    lying = with_liar(honest(40, 336), 1e9)
    found = scores(ledger_of(*lying)).maxima.spe

    assert found == unpacked(packed(found), FINE)
