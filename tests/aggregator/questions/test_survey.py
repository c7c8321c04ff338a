"""What an operator sees of nodes adds up to what their group counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge.aggregator.group import GroupPlan
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.machine import Drop
from submerge.protocol.messages import Counts, EarlierSums, Join, Report, successor
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Scaling, Schema
from submerge.stats.moments import Moments
from submerge_aggregator.questions import survey
from submerge_aggregator.questions.survey import Missing
from support.nodes import GROUP, Table, new_incarnation, report

OPEN = Schema(tuple(map(Channel, "abc")), center="own")
ROWS = np.random.default_rng(0).normal(size=(400, 3))


def sent(life: int, seq: int, n: int, **fields: object) -> Report:
    """A client's report that measures the first rows."""
    moments = Moments.of(ROWS[:n])
    more = {"fingerprint": OPEN.fingerprint, "summary": None, "counts": Counts(n), **fields}
    return report("c", new_incarnation(life), seq, range(n), moments=moments, **more)


@pytest.mark.parametrize("final", [True, False])
def test_readings_that_measured_are_shown_once(final):
    """Of live rows and of sealed ones, before the schema is settled and after it."""
    kind = Subspaces(2, oversample=4)
    table = Table(kind, OPEN)
    plans = {GROUP: GroupPlan(kind, OPEN, learns_scaling=True)}
    table.aggregator("r", under=None, plans=plans, scaling_rows=500)
    host = table.hosts["r"]

    def hears(message: Report) -> None:
        table.tell("r", replace(message, pinned=host.node.incarnation))
        table.passes(100)

    def shown() -> int:
        (view,) = survey.nodes(host.node, table.now("r"), GROUP)
        return sum(each.learnt for each in (*view.rows, *view.sealed))

    hears(sent(1, 1, 300, final=final))
    assert 300 == shown() == host.ledger.counts().learnt
    hears(sent(2, 1, 200, final=final))
    settled = host.ledger.schema
    assert settled.scaling is not None
    assert shown() == host.ledger.counts().learnt == 0

    for life, n in ((1, 300), (2, 200)):
        name = successor(new_incarnation(life), settled.family)
        whole = WholeScatter.of_rows(ROWS[:n], settled.fingerprint).rounded()
        learnt = replace(sent(life, 1, n), moments=None, summary=whole, final=final)
        stamp = learnt.stamp._replace(incarnation=name)
        hears(replace(learnt, stamp=stamp, fingerprint=settled.fingerprint))
    assert 500 == shown() == host.ledger.counts().learnt


def test_a_row_with_sums_under_an_earlier_schema_is_shown_by_them():
    """Once its own schema is settled: they count, so the row is not old."""
    kind, fence = Subspaces(2, oversample=4), b"f" * 16
    before = replace(OPEN, channels=OPEN.channels[:2], scaling=Scaling((0.0,) * 2, (1.0,) * 2))
    table = Table(kind, before)
    for schema in (before, OPEN):
        start = table.moved if table.hosts else table.aggregator
        plans = {GROUP: GroupPlan(kind, schema, learns_scaling=schema is OPEN)}
        start("r", under=None, plans=plans, scaling_rows=5000)
    host = table.hosts["r"]
    whole = WholeScatter.of_rows(ROWS[:30, :2], before.fingerprint).rounded()
    sums = EarlierSums(before.fingerprint, whole, Counts(30, 1))
    message = replace(sent(1, 1, 70, counts=Counts(100, 2)), fence=fence, earlier=sums)
    table.tell("r", Join(message.stamp, fence, (), b""))
    table.tell("r", replace(message, pinned=host.node.incarnation))

    def shown() -> tuple[int, int, str]:
        (view,) = survey.nodes(host.node, table.now("r"), GROUP)
        (row,) = view.rows
        return row.learnt, row.withheld, row.schema

    assert (100, 2, "current") == shown()
    settled = replace(OPEN, scaling=Scaling((0.0,) * 3, (1.0,) * 3))
    host.ledger.change_schema(settled)
    assert (30, 1, "current") == shown()
    with pytest.raises(Missing, match="nothing under an old schema"):
        survey.has(host.node, Drop(GROUP, "c", None, old=True))
    host.ledger.change_schema(replace(settled, center="fleet"))
    assert "old" == shown()[2]
    survey.has(host.node, Drop(GROUP, "c", None, old=True))
