"""Groups of one, two and three channels: no setting is needed, and no alarm is about rounding."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.protocol.machine import Reading
from submerge.protocol.settings import AlarmSettings
from submerge.protocol.summaries import Subspaces
from support.nodes import GROUP, Table

HOUR_S = 3600.0
ALARMS = AlarmSettings(at_most_per_s=1 / (2000 * HOUR_S), settle_s=86400.0, period_s=HOUR_S)
KIND = Subspaces(8, rank_max=16)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_fault_is_found_by_its_distance(dim):
    """From the first reading to an alarm: limits, and a rank below the dimension."""
    rng, schema = np.random.default_rng(dim), Schema(dim, center="own")
    table = Table(KIND, schema)
    plan = GroupPlan(KIND, schema, chooses_rank=True)
    table.root("r", plans={GROUP: plan}, report_every_s=60)
    for name in "cd":
        table.client(name, under="r", report_every_s=100, min_rows=10, alarms=ALARMS)
    mixed = rng.standard_normal((dim, dim))
    for _ in range(40):
        for name in "cd":
            table.step(name, Reading(rng.standard_normal((25, dim)) @ mixed.T + 5))
        table.passes(150)
    model, monitor = table.hosts["r"].model, table.hosts["c"].node._ingest.monitor
    assert model.rank == max(1, dim - 1)
    assert {"ewma"} <= monitor.detector.limits.known.keys()
    faulty = rng.standard_normal((30, dim)) @ mixed.T + 5
    faulty[:, 0] += 20 * np.linalg.norm(mixed[0])
    table.step("c", Reading(faulty))
    assert monitor.detector.log.open is not None
    causes = {
        alarm.cause for host in "cd" for alarm in table.hosts[host].node._ingest.monitor.alarms
    }
    assert causes <= {"ewma", "channel"}
