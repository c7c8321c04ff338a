"""No report weighs more than its readings allow: honest ones are taken, heavier ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.presence import AHEAD_S
from submerge.aggregator.rows.refusals import MOST_COUNTED, ROUNDING, most_weight, within_readings
from submerge.protocol.machine import Flush, Reading
from submerge.protocol.messages import Answer, Counts, Join, Reason, Report
from submerge.protocol.summaries import Subspaces
from support.nodes import GROUP, Inbound, Table, new_incarnation, report
from support.wild import schema_of
from support.wire import subspace_of
from support.wired import WiredTable

KIND = Subspaces(2, oversample=1)
SCHEMA = Schema(4, half_life=3600.0)


def test_the_factor_is_that_of_a_believed_clock():
    """A half-life of thirty seconds doubles a reading that is thirty seconds ahead."""
    assert 100 * (1 + ROUNDING) == most_weight(100, None)
    assert 200 * (1 + ROUNDING) == most_weight(100, AHEAD_S)
    assert most_weight(1, 1e-300) == 2.0**200 * (1 + ROUNDING)
    assert most_weight(2**60, None) == MOST_COUNTED * (1 + ROUNDING)


@given(st.floats(1e-3, 1e30), st.integers(0, 2**60))
def test_what_is_sent_weighs_at_most_its_readings(weight, learnt):
    """All of it is faded by one factor; what is light enough stays as it is."""
    summary = subspace_of(4, [3.0, 2.0], weight=weight)
    sent = within_readings(KIND, summary, learnt)
    if not learnt:
        assert sent is None
        return
    assert sent.weight <= most_weight(learnt, None)
    assert (sent is summary) == (weight <= min(learnt, MOST_COUNTED) * (1 + ROUNDING / 2))
    np.testing.assert_allclose(sent.energy / sent.weight, summary.energy / weight)
    np.testing.assert_allclose(sent.sigma**2 / sent.weight, summary.sigma**2 / weight)


@pytest.mark.parametrize("fence", [b"", b"f" * 16])
@pytest.mark.parametrize("half_life", [None, 3600.0])
def test_a_report_that_outweighs_its_readings_is_invalid(fence, half_life):
    """Fenced or not; and one that weighs just as much is taken."""
    schema = Schema(4, half_life=half_life)
    table = Table(KIND, schema)
    host = table.root("r")
    heavy = most_weight(100, half_life)
    reasons = []
    for seq, weight in enumerate([heavy * (1 + 1e-9), 3.3e38, heavy], 1):
        message = report(
            "c",
            new_incarnation(1),
            seq,
            fence=fence,
            pinned=host.node.incarnation,
            fingerprint=schema.fingerprint,
            summary=subspace_of(4, [1.0], weight=weight, schema=schema),
            counts=Counts(100),
        )
        if fence:
            table.tell("r", Join(message.stamp, fence, (), b""))
        reasons += [m.reason for m in table.tell("r", message) if isinstance(m, Answer)]

    assert [Reason.INVALID, Reason.INVALID, Reason.ACK] == reasons


# -- honest nodes -----------------------------------------------------------------------

CLOCKS = [0.0, 25.0, -25.0, 1000.0, -86_400.0, 1e9, -1e9]


class Honest:
    """A fleet of four levels, of real nodes whose clocks may be wrong: each report is weighed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        half_life = [None, 1.0, 30.0, 3600.0][int(rng.integers(4))]
        kernel = bool(rng.random() < 0.25)
        center = str(rng.choice(["own", "fleet"]))
        self.schema = schema_of(kernel, 4, half_life=half_life, center=center)
        self.table = table = WiredTable(KIND, self.schema, seed=seed)
        robust, learns = bool(rng.random() < 0.4), bool(rng.random() < 0.2)
        top = GroupPlan(KIND, self.schema, robust=robust, learns_scaling=learns)
        table.root("r", plans={GROUP: top}, scaling_rows=60)
        for label, parent in {"g": "r", "s": "g", "t": "g"}.items():
            plan = {GROUP: GroupPlan(KIND, robust=robust)}
            table.aggregator(label, under=parent, plans=plan, seal_after_s=600.0)
        fills = bool(rng.random() < 0.5)
        for i, label in enumerate("abcde"):
            table.client(label, under="st"[i % 2], fills_gaps=fills, learns_scaling=learns)
        for host in table.hosts.values():
            host.clock_error = float(rng.choice(CLOCKS)) if rng.random() < 0.4 else 0.0
            host.synced = bool(rng.random() < 0.7)
        self.reports = 0
        self.heaviest = 0.0
        table.heard = self._weigh

    def _weigh(self, letter: Inbound, _: bool) -> None:
        message = letter.message
        if isinstance(message, Answer):
            assert message.reason is not Reason.INVALID
        if isinstance(message, Report):
            self.reports += 1
            if message.summary is not None:
                most = most_weight(message.counts.learnt, self.schema.half_life)
                self.heaviest = max(self.heaviest, message.summary.weight / most)

    def live(self, steps: int) -> None:
        """Let clients read, time pass, processes die, and clocks be set."""
        rng, table = self.rng, self.table
        for _ in range(steps):
            label = str(rng.choice(list("abcde")))
            if table.hosts[label].node is not None:
                rows = rng.standard_normal((int(rng.choice([1, 40])), 4))
                rows[rng.random(rows.shape) < 0.05] = np.nan
                table.step(label, Reading(rows))
                table.run()
            draw = rng.random()
            who = str(rng.choice(list(table.hosts)))
            if draw < 0.15:
                table.restarts(who)
            elif draw < 0.2:
                table.hosts[who].clock_error = float(rng.choice(CLOCKS))
            elif draw < 0.3:
                table.step(who, Flush())
                table.run()
            table.passes(float(rng.choice([0, 5, 60, 700])))
        table.passes(1000)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 2**32))
@example(29123)  # a node that varies by far more than its fleet
def test_no_honest_report_outweighs_its_readings(seed):
    """Fading, rows of the future, clocks that are wrong, gaps, features, screens, sealed rows."""
    fleet = Honest(seed)
    fleet.live(25)

    assert fleet.reports > 10
    assert fleet.heaviest <= 1.0


def test_clocks_ahead_of_one_another_do_not_multiply():
    """A client is ahead of its site, the site of the region, the region of the root."""
    schema = Schema(4, half_life=10.0)
    table = WiredTable(KIND, schema)
    table.root("r")
    for label, parent, ahead in (("g", "r", 25.0), ("s", "g", 50.0)):
        table.aggregator(label, under=parent, report_every_s=5.0)
        table.hosts[label].clock_error = ahead
    table.client("c", under="s", report_every_s=5.0)
    table.hosts["c"].clock_error = 75.0
    table.passes(60)
    table.step("c", Reading(np.random.default_rng(0).standard_normal((40, 4))))
    for label in "csg":
        table.step(label, Flush())
        table.run()

    sent = {label: table.reports(label)[-1] for label in "csg"}
    assert {40} == {each.counts.learnt for each in sent.values()}
    assert {True} == {each.summary.weight <= 40 * (1 + ROUNDING) for each in sent.values()}
    # Or else it would show nothing: the region reads its row with more weight than that.
    assert table.hosts["g"].ledger.seen(table.now("g")).weight > 40 * 2
    assert 40 == table.hosts["r"].ledger.counts().learnt
