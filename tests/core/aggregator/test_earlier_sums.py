"""While a scale is measured, a parent still holds what its aggregators had reported before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import Row
from submerge.pca.restatement import restated
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, EarlierSums, Left, Reason, Report
from submerge.protocol.session import formed
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Scaling
from submerge.stats.moments import Moments
from support.nodes import EPOCH, GROUP, Table, new_incarnation, report

KIND, WIDE = Subspaces(2, oversample=4), Subspaces(1, oversample=0)
"""Of a narrow group, whose reports hold the whole scatter, and of one that has directions."""


def open_schema(names: str) -> Schema:
    """A channel for each letter, with a scale that the fleet is to measure."""
    return Schema(tuple(map(Channel, names)))


FIRST, SECOND = open_schema("abcd"), open_schema("axbcdy")


def rows_of(seed: int, schema: Schema, n: int) -> np.ndarray:
    """Numbers of so many rows."""
    return np.random.default_rng(seed).standard_normal((n, schema.width))


def learnt(node: str, life: int, schema: Schema, kind: Subspaces = KIND, n: int = 30) -> Report:
    """A client's report of rows that it has learnt."""
    whole = WholeScatter.of_rows(rows_of(life, schema, n), schema.fingerprint).rounded()
    summary = whole if kind.is_narrow(schema) else kind.directions(whole)
    more = {"fingerprint": schema.fingerprint, "summary": summary, "counts": Counts(n)}
    return report(node, new_incarnation(life), 1, range(n), **more)


def measured(node: str, life: int, schema: Schema, n: int) -> Report:
    """A client's report of rows that it has only measured."""
    moments = Moments.of(rows_of(life, schema, n))
    more = {"fingerprint": schema.fingerprint, "summary": None, "moments": moments}
    return report(node, new_incarnation(life), 1, range(n), **more)


class Fleet:
    """A root `r`, aggregators below each other, and reports of clients.

    Each of the aggregators has learnt 30 rows under the first scale that was settled, and then
    has heard that the group has other channels.
    """

    def __init__(self, depth: int, kind: Subspaces = KIND) -> None:
        self.table, self.kind = Table(kind, FIRST), kind
        self._configure(FIRST)
        self.below = [f"a{i}" for i in range(depth)]
        for above, label in zip(["r", *self.below], self.below, strict=False):
            self.table.aggregator(label, under=above)
        self.table.passes(10)
        self.put("r", measured("c", 1, FIRST, 400))
        self.table.passes(1800)
        self.settled = self.root.ledger.schema
        for i, label in enumerate(self.below):
            self.put(label, learnt(f"c{i}", 10 + i, self.settled, kind))
            self.table.passes(900 * depth)
        self.before = self.root.ledger.summary()
        self._configure(SECOND)

    @property
    def root(self):
        """The root."""
        return self.table.hosts["r"]

    @property
    def row(self) -> Row:
        """What the root holds of the first aggregator."""
        (row,) = (row for (node, _), row in self.root.ledger.rows.items() if node == "a0")
        return row

    def put(self, label: str, message: Report) -> None:
        """Have a host receive a report that is pinned to it."""
        pinned = self.table.hosts[label].node.incarnation
        self.table.tell(label, replace(message, pinned=pinned))

    def settle(self) -> None:
        """Have the root measure the new channels."""
        self.put("r", measured("c", 2, SECOND, 400))
        self.table.passes(100)
        assert self.root.ledger.schema.scaling is not None

    def lose(self, label: str) -> None:
        """Lose a store; the machine does not come back."""
        self.table.dies(label)

    def _configure(self, schema: Schema) -> None:
        plan = GroupPlan(self.kind, schema, learns_scaling=True)
        start = self.table.moved if "r" in self.table.hosts else self.table.aggregator
        start("r", under=None, plans={GROUP: plan}, scaling_rows=400)


@pytest.mark.parametrize("kind", [KIND, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_store_that_is_lost_while_a_scale_is_measured_costs_nothing(depth, kind):
    """Of what it had reported, level by level: all of it counts once the scale is settled."""
    fleet = Fleet(depth, kind)
    fleet.table.passes(900 * depth)
    assert all(SECOND == fleet.table.hosts[each].ledger.schema for each in fleet.below)
    said = fleet.row.report
    assert (SECOND.fingerprint, None) == (said.fingerprint, said.summary)

    fleet.lose("a0")
    fleet.settle()
    after, schema = fleet.root.ledger.summary(), fleet.root.ledger.schema
    assert 30 * depth == after.weight == fleet.root.ledger.counts().learnt
    if kind is KIND:
        then = restated(after, schema, fleet.settled)
        np.testing.assert_allclose(then.scatter, fleet.before.scatter, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(then.mean, fleet.before.mean, rtol=1e-5, atol=1e-6)


def test_a_report_has_sums_as_long_as_a_scale_is_measured():
    """And one summary of all rows after that; the root counts the same readings throughout."""
    fleet = Fleet(2)
    fleet.table.passes(1800)
    row = fleet.row
    assert (fleet.settled.fingerprint, Counts(60)) == (
        row.report.earlier.fingerprint,
        row.report.earlier.counts,
    )
    fleet.settle()
    assert 60 == fleet.root.ledger.summary().weight

    fleet.table.passes(3600)
    assert fleet.row.report.earlier is None
    assert 60 == fleet.row.report.summary.weight == fleet.root.ledger.summary().weight


def test_a_parent_of_a_parent_that_starts_again_says_the_same():
    """What a row holds beside its moments is in the store."""
    fleet = Fleet(2)
    fleet.table.passes(1800)
    fleet.table.restarts("a0")
    fleet.table.passes(3600)
    fleet.lose("a0")
    fleet.table.restarts("r")
    fleet.settle()
    assert 60 == fleet.root.ledger.summary().weight == fleet.root.ledger.counts().learnt


# -- a row ----------------------------------------------------------------------------

KNOWN = replace(FIRST, scaling=Scaling((0.0,) * 4, (1.0,) * 4))
SETTLED = replace(SECOND, scaling=Scaling((0.0,) * 6, (1.0,) * 6))
AT, FENCE = Now(0.0, EPOCH), b"f" * 16


def ledger_of() -> Ledger:
    """A root's, which had `KNOWN` and measures `SECOND`; `site` may report."""
    ledger = Ledger(
        GROUP, KNOWN, KIND, AggregatorSettings("r", None), created=EPOCH, learns_scaling=True
    )
    ledger.change_schema(SECOND)
    for life in range(6):
        ledger.admit("site", new_incarnation(life), FENCE, (Left(FENCE, 9),))
    return ledger


def of_site(life: int = 1, seq: int = 1, n: int = 30, **sums: object) -> Report:
    """An aggregator's report: 40 readings that were measured, and sums of `n` before."""
    whole = WholeScatter.of_rows(rows_of(life, KNOWN, n), KNOWN.fingerprint).rounded()
    earlier = EarlierSums(KNOWN.fingerprint, whole, Counts(n, 2, 1))._replace(**sums)
    moments = Moments.of(rows_of(life, SECOND, 40))
    return report(
        "site",
        new_incarnation(life),
        seq,
        fence=FENCE,
        fingerprint=SECOND.fingerprint,
        summary=None,
        moments=moments,
        counts=Counts(n + 40, 3, 2),
        earlier=earlier,
    )


def test_a_newer_report_replaces_the_sums_of_the_one_before():
    """They are a part of the row: nothing is added up."""
    ledger = ledger_of()
    for seq, n in ((1, 30), (2, 50), (1, 30)):
        assert ledger.accept(of_site(seq=seq, n=n), AT).reason is Reason.ACK
    assert Counts(90, 3, 2) == ledger.counts()

    ledger.change_schema(SETTLED)
    assert Counts(50, 2, 1) == ledger.counts()
    assert 50 == ledger.summary().weight


def test_rows_that_are_sealed_leave_both_of_what_they_hold():
    """An aggregator that lost its store again and again has a sealed row under each schema."""
    ledger = ledger_of()
    for life in range(6):
        assert ledger.accept(of_site(life), AT).reason is Reason.ACK
    assert {SECOND.fingerprint, KNOWN.fingerprint} == {place for _, place in ledger.sealed}
    assert Counts(6 * 70, 18, 12) == ledger.counts()

    ledger.change_schema(SETTLED)
    assert Counts(180, 12, 6) == ledger.counts()
    assert 180 == ledger.summary().weight
    ledger.forget("site", AT)
    assert ledger.summary() is None


def test_one_number_has_one_content():
    """Also of what is beside the moments."""
    ledger = ledger_of()
    assert ledger.accept(of_site(), AT).reason is Reason.ACK
    assert ledger.accept(of_site(), AT).reason is Reason.ACK
    for other in (
        of_site(counts=Counts(30, 1, 1)),
        of_site(n=29),
        replace(of_site(), earlier=None),
    ):
        assert ledger.accept(other, AT).reason is Reason.EQUIVOCATION


@pytest.mark.parametrize(
    "sums",
    [
        {"counts": Counts(29)},
        {"summary": WholeScatter.of_rows(rows_of(1, SECOND, 30), KNOWN.fingerprint)},
        {"summary": WholeScatter.of_rows(rows_of(1, KNOWN, 30), SECOND.fingerprint)},
    ],
    ids=["heavier than counted", "of other channels", "of another schema"],
)
def test_sums_that_cannot_be_merged_are_refused(sums):
    """With the report: nothing changes."""
    ledger = ledger_of()
    assert ledger.accept(of_site(**sums), AT).reason is Reason.INVALID
    assert {} == ledger.rows


def test_sums_of_an_unknown_schema_are_not_kept():
    """The rest of the report is; and the same report again is the same."""
    ledger, unknown = ledger_of(), replace(KNOWN, scaling=Scaling((1.0,) * 4, (1.0,) * 4))
    whole = WholeScatter.of_rows(rows_of(1, unknown, 30), unknown.fingerprint).rounded()
    message = of_site(fingerprint=unknown.fingerprint, summary=whole)
    for _ in range(2):
        assert ledger.accept(message, AT).reason is Reason.ACK
    (row,) = ledger.rows.values()
    assert (None, message.moments) == (row.report.earlier, row.report.moments)

    ledger.change_schema(SETTLED)
    assert ledger.summary() is None


def test_a_row_whose_sums_count_is_not_old():
    """An operator who drops what is old drops none of it."""
    ledger = ledger_of()
    ledger.accept(of_site(), AT)
    ledger.change_schema(SETTLED)
    ledger.drop_old("site", AT)
    assert 30 == ledger.summary().weight

    ledger.change_schema(replace(SETTLED, center="own"))
    ledger.drop_old("site", AT)
    assert {} == ledger.rows


def test_a_schema_is_remembered_as_long_as_a_row_has_sums_under_it():
    """Others are forgotten first."""
    ledger = ledger_of()
    ledger.accept(of_site(), AT)
    for i in range(70):
        ledger.change_schema(replace(SETTLED, scaling=Scaling((float(i),) * 6, (1.0,) * 6)))
    assert KNOWN.fingerprint in ledger.read
    assert 30 == ledger.summary().weight


# -- on the way -----------------------------------------------------------------------


def test_an_earlier_parent_gets_directions():
    """Of sums as of a summary."""
    message = of_site()
    assert isinstance(formed(message, KIND, whole=False).earlier.summary, Subspace)
    assert isinstance(formed(message, KIND, whole=True).earlier.summary, WholeScatter)


@pytest.mark.parametrize("fits", [True, False])
def test_a_report_goes_without_sums_where_they_have_no_room(fits):
    """Moments go up in any case: the root waits for them."""
    message, asked = of_site(), []

    def has_room(_: Report, schema: Schema) -> bool:
        asked.append(schema)
        return fits

    sent = GroupPlan(KIND, has_room=has_room).within_room(message, ledger_of().schema)
    assert ([SECOND], fits) == (asked, sent is message)
    assert fits == (sent.earlier is not None)
    assert message.moments is sent.moments
