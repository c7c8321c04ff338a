"""What a root has learnt, by the admin API: the bytes of a model file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from submerge import Subspace
from submerge.aggregator.node import AggregatorNode
from submerge.pca.merging import merge_whole
from submerge.pca.whole_scatter import WholeScatter
from submerge_proto.files.learnt import unpacked
from support import golden_parts as parts
from support.house import SCHEMA, House
from support.wire import reported

ROWS = np.random.default_rng(0).normal(size=(90, 6))


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    """A root whose model has learnt the rows of two clients, with their scores."""
    with House(tmp_path) as house:
        house.hears("c", ROWS[:60], scores=parts.scores(33, of_readings=False))
        house.hears("d", ROWS[60:])
        house.passes(61.0)
        yield house


def whole(house: House):
    """What it answers."""
    answer = house.asks("GET", "/model/room?whole=1")
    assert (200, "application/octet-stream") == (answer.status, answer.headers["content-type"])
    return unpacked(answer.body)


def test_what_merges_is_in_the_file(house):
    """All rows of the group: the whole scatter, as the root would send it further up."""
    learnt = whole(house).learnt
    (piece,) = learnt.summary.pieces
    rows = [WholeScatter.of(Subspace.of(each, SCHEMA, rank=4)) for each in (ROWS[:60], ROWS[60:])]
    expected = merge_whole(*rows)

    assert (90, 2) == (piece.weight, learnt.model.rank)
    assert np.allclose(expected.mean, piece.mean, rtol=1e-12)
    assert np.isclose(expected.energy, piece.energy, rtol=1e-12)
    off = np.abs(np.linalg.eigvalsh(expected.scatter - piece.scatter)).max()
    assert off <= piece.spectral_bound < 1e-6 * piece.energy + expected.spectral_bound


def test_recent_scores_are_in_the_file(house):
    """With their block maxima: limits follow from them wherever the model goes."""
    learnt = whole(house).learnt

    expected = parts.scores(33, of_readings=False)
    assert reported(expected.spe) == reported(learnt.sketches.spe)
    assert reported(expected.maxima.spe) == reported(learnt.sketches.maxima.spe)


def test_to_ask_changes_nothing(house):
    """Nor does it matter how often."""
    before = house.asks("GET", "/nodes").json
    first, second = (house.asks("GET", "/model/room?whole=1").body for _ in range(2))

    assert first == second
    assert before == house.asks("GET", "/nodes").json


def test_below_a_root_there_is_the_model_alone(house, monkeypatch):
    """An aggregator holds some rows of the group, and the model of all."""
    monkeypatch.setattr(AggregatorNode, "top", property(lambda _: False))
    learnt = whole(house).learnt

    assert 90 == learnt.model.counts.learnt
    assert (None, None, None, "room") == (
        learnt.summary,
        learnt.moments,
        learnt.sketches,
        learnt.origin,
    )
