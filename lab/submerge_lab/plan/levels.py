"""FleetNeeds: aggregators by level, cores, memory and traffic, from unit costs.

Each aggregator takes as many children as a share of one core answers in time, but no more than were
ever measured, or as many as are asked for. All reports of clients and aggregators come once in an
interval; the root makes a model in its interval, and each aggregator passes it on.

A model that an aggregator sends to one child over gRPC is counted as much processor time as a
report, which is an upper bound. Over MQTT it is published once, and the broker passes it on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from submerge import UsageError
from submerge_lab.plan.units import Transport, UnitCosts

DAY_S = 86400.0

MEASURED_CHILDREN = 1000
"""The most children with which an aggregator was measured (benchmarks/crowd.py, footprint.py)."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What is planned.

    busy : Share of a core that an aggregator or a broker is planned to use.
    fan_in : Children of an aggregator; None takes as many as fit, and `MEASURED_CHILDREN` at most.
    """

    leaves: int
    report_every_s: float = 300.0
    model_every_s: float = 60.0
    transport: Transport = "grpc"
    busy: float = 0.5
    fan_in: int | None = None


class Level(NamedTuple):
    """Aggregators of one level, the one above the clients first.

    children : most that one of them has
    core_share : of one core, that each of them uses
    """

    aggregators: int
    children: int
    core_share: float
    memory_bytes: float


class FleetNeeds(NamedTuple):
    """What a plan needs.

    up_bytes_day, down_bytes_day : of one client, reports with answers, and models
    broker_cores : of all brokers; 0 without any
    """

    levels: tuple[Level, ...]
    up_bytes_day: float
    down_bytes_day: float
    broker_messages_s: float
    broker_cores: float
    brokers: int

    @property
    def aggregators(self) -> int:
        """All of them."""
        return sum(level.aggregators for level in self.levels)

    @property
    def cores(self) -> float:
        """Of all aggregators and brokers, as they are busy."""
        used = sum(level.aggregators * level.core_share for level in self.levels)
        return used + self.broker_cores

    @property
    def memory_bytes(self) -> float:
        """Of all aggregators."""
        return sum(level.aggregators * level.memory_bytes for level in self.levels)


def needs(plan: FleetPlan, units: UnitCosts) -> FleetNeeds:
    """Return what a plan needs."""
    per_child = core_of_child(plan, units)
    fan_in = plan.fan_in or min(int(plan.busy / per_child), MEASURED_CHILDREN)
    if fan_in < 2 or fan_in > int(1 / per_child):
        raise UsageError(
            f"expected 2 to {int(1 / per_child)} children of an aggregator, got {fan_in}: choose"
            " another --fan-in, or longer intervals (--report-every, --model-every)"
        )
    levels, below = list[Level](), plan.leaves
    while not levels or below > 1:
        n = -(-below // fan_in)
        children = -(-below // n)
        memory = units.base_bytes.value + children * units.row_bytes.value
        levels.append(Level(n, children, children * per_child, memory))
        below = n
    reports, models = DAY_S / plan.report_every_s, DAY_S / plan.model_every_s
    messages = 0.0
    if plan.transport == "mqtt":
        # A report and its answer, and a model for each child.
        nodes = plan.leaves + sum(level.aggregators for level in levels) - 1
        messages = nodes * (2 / plan.report_every_s + 1 / plan.model_every_s)
    broker_cores = messages * units.broker_core_s.value
    return FleetNeeds(
        tuple(levels),
        reports * (units.report_bytes.value + units.answer_bytes.value),
        models * units.model_bytes.value,
        messages,
        broker_cores,
        math.ceil(broker_cores / plan.busy),
    )


def core_of_child(plan: FleetPlan, units: UnitCosts) -> float:
    """Return the share of an aggregator's core that one child takes."""
    reports = (units.report_core_s.value + units.merge_core_s.value) / plan.report_every_s
    sent = units.report_core_s.value / plan.model_every_s if plan.transport == "grpc" else 0.0
    return reports + sent


class Prices(NamedTuple):
    """What things cost, in any currency; a month has 30 days.

    gb_up, gb_down : 10^9 bytes from clients, and to them
    """

    core: float = 0.0
    gib: float = 0.0
    gb_up: float = 0.0
    gb_down: float = 0.0


class MonthlyCost(NamedTuple):
    """What a plan costs in a month of 30 days."""

    cores: float
    memory: float
    up: float
    down: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.cores + self.memory + self.up + self.down


def monthly_cost(plan: FleetPlan, need: FleetNeeds, prices: Prices) -> MonthlyCost:
    """Return the cost of a month. Cores are paid as they are planned, not as they are busy."""
    gb = plan.leaves * 30 / 1e9
    return MonthlyCost(
        prices.core * need.cores / plan.busy,
        prices.gib * need.memory_bytes / 2**30,
        prices.gb_up * need.up_bytes_day * gb,
        prices.gb_down * need.down_bytes_day * gb,
    )
