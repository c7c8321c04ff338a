"""Settings: what would have a node spin, wait for ever, or report to itself is refused."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema, UsageError
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Now, Start, Tick
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge_lab.simulator.samples import SampleSets

NOW = Now(0.0, 1.7e9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"patience_s": 0.0},
        {"cap_s": float("inf")},
        {"report_every_s": float("nan")},
        {"report_every_s": "5m"},
        {"finals": 0},
        {"min_rows": 0.5},
        {"node": ""},
        {"node": "a b"},
        {"group": "x" * 65},
        {"parent": "c"},
    ],
)
def test_what_a_client_cannot_live_with_is_refused(wrong):
    """In one line, before it runs."""
    with pytest.raises(UsageError):
        ClientSettings(**{"node": "c", "group": "g", "parent": "a", **wrong})


@pytest.mark.parametrize(
    "wrong", [{"model_every_s": -1.0}, {"scaling_rows": 0}, {"parent": "r"}, {"node": "r/1"}]
)
def test_what_an_aggregator_cannot_live_with_is_refused(wrong):
    """Likewise."""
    with pytest.raises(UsageError):
        AggregatorSettings(**{"node": "r", "parent": None, **wrong})


@pytest.mark.parametrize(
    "wrong",
    [
        {"at_most_per_s": 0.0},
        {"at_most_per_s": float("inf")},
        {"at_most_per_s": "1 per week"},
        {"after": 0},
        {"after": 9},
        {"of": 65},
        {"settle_s": 0.0},
        {"max_withheld_s": float("nan")},
        {"period_s": -1.0},
    ],
)
def test_alarms_that_cannot_be_raised_are_refused(wrong):
    """Or that would be raised for ever."""
    with pytest.raises(UsageError):
        AlarmSettings(**wrong)


def test_rows_may_go_by_the_clock():
    """Which is what a period of 0 says."""
    assert 0.0 == AlarmSettings(period_s=0.0).period_s


def nodes() -> list[ClientNode | AggregatorNode]:
    rng, sets = np.random.default_rng(0), SampleSets()
    return [
        ClientNode(ClientSettings("c", "g", "a"), Schema.anonymous(1), sets, rng),
        AggregatorNode(AggregatorSettings("r", None), {"g": GroupPlan(sets)}, rng),
    ]


@pytest.mark.parametrize("node", nodes(), ids=["client", "aggregator"])
def test_a_node_starts_once_and_first(node):
    """An event before `Start`, or a second one, is the driver's mistake."""
    with pytest.raises(UsageError, match="the first event is Start"):
        node.step(Tick(), NOW)
    node.step(Start({}), NOW)
    with pytest.raises(UsageError, match="it comes once"):
        node.step(Start({}), NOW)


def test_an_aggregator_serves_a_group():
    """Without one it would never be woken."""
    with pytest.raises(UsageError, match="one group or more"):
        AggregatorNode(AggregatorSettings("r", None), {}, np.random.default_rng(0))
