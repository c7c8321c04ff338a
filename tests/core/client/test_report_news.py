"""ReportNews: how often a node looks whether its subspace has turned."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from submerge import SAPCA, Subspace
from submerge.client.node import ReportNews
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from support.strategies import rows_of


class Learning:
    """An incarnation that has reported a summary, and counts how often it is read."""

    def __init__(self, shown: Subspace) -> None:
        self.shown, self.reads = shown, 0
        self.counts = SimpleNamespace(learnt=0)

    def summary(self, now: object) -> Subspace:
        self.reads += 1
        return self.shown


@pytest.mark.parametrize(("dim", "apart"), [(3, 64), (64, 64), (200, 200), (300, 300), (301, 64)])
def test_a_look_waits_for_as_many_rows_as_its_decomposition_has_dimensions(dim, apart):
    """The exact path decomposes at each reading: spread over the rows, that is O(dim^2) a row."""
    current = Learning(SAPCA(2).partial_fit(rows_of("noise", 9, dim, seed=0)).subspace)
    news = ReportNews(ClientSettings("n", "g", "p"), Subspaces(2), alarms=False)

    looked = []
    for learnt in range(1, 701):
        current.counts.learnt = learnt
        before = current.reads
        assert not news.has_turned(current, None)
        looked += [learnt] if current.reads > before else []

    assert looked == list(range(64, 701, apart))


def test_the_distance_between_two_looks_decomposes_nothing():
    """A summary of a narrow group has its directions computed only when they are asked for."""
    shown = SimpleNamespace(pieces=(SimpleNamespace(dim=70),))  # no `parts`
    current = Learning(shown)
    news = ReportNews(
        ClientSettings("n", "g", "p"),
        SimpleNamespace(turn_degrees=lambda *_: 0.0),
        alarms=False,
    )

    looked = []
    for learnt in range(1, 250):
        current.counts.learnt, before = learnt, current.reads
        news.has_turned(current, None)
        looked += [learnt] if current.reads > before else []

    assert [64, 134, 204] == looked
