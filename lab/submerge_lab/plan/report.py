"""A plan as tables: aggregators by level, totals, and the unit costs that they follow from."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from submerge_files.console.units import size_of, span_text
from submerge_lab.plan.levels import FleetNeeds, FleetPlan, MonthlyCost
from submerge_lab.plan.units import UnitCost, UnitCosts

NAMES = {
    "report_bytes": "a report",
    "answer_bytes": "its answer",
    "model_bytes": "a model",
    "report_core_s": "a report, at an aggregator",
    "merge_core_s": "merging one child's report",
    "row_bytes": "one child, at an aggregator",
    "base_bytes": "an aggregator without children",
    "broker_core_s": "a message, at a broker",
}


def print_plan(
    plan: FleetPlan, units: UnitCosts, need: FleetNeeds, cost: MonthlyCost, *, priced: bool
) -> None:
    """Print a plan."""
    console = Console(highlight=False)
    console.print(
        f"{plan.leaves:,} clients over {plan.transport}; a report every"
        f" {span_text(plan.report_every_s)}, a model every {span_text(plan.model_every_s)};"
        f" at most {plan.busy:.0%} of a core each\n"
    )
    console.print(_levels(need))
    console.print()
    console.print(_totals(plan, need, cost, priced=priced))
    console.print()
    console.print(_units(units))


def _levels(need: FleetNeeds) -> Table:
    table = _table("level", *["aggregators", "children", "core", "memory"])
    for i, level in enumerate(need.levels, start=1):
        name = "root" if i == len(need.levels) else str(i)
        table.add_row(
            name,
            f"{level.aggregators:,}",
            f"{level.children:,}",
            f"{level.core_share:.1%}",
            size_of(level.memory_bytes),
        )
    return table


def _totals(plan: FleetPlan, need: FleetNeeds, cost: MonthlyCost, *, priced: bool) -> Table:
    up, down = need.up_bytes_day, need.down_bytes_day
    rows = [
        ("aggregators", f"{need.aggregators:,}"),
        ("cores in use", f"{need.cores:,.1f}"),
        ("memory", size_of(need.memory_bytes, decimals=1)),
        ("from a client, a day", f"{size_of(up, decimals=1)} of reports and answers"),
        ("to a client, a day", f"{size_of(down, decimals=1)} of models"),
        ("of all clients, a day", size_of(plan.leaves * (up + down), decimals=1)),
    ]
    if plan.transport == "mqtt":
        rows += [
            ("messages at brokers", f"{need.broker_messages_s:,.0f}/s"),
            ("brokers", f"{need.brokers:,}, {need.broker_cores:,.1f} cores in use"),
        ]
    if priced:
        parts = zip(("cores", "memory", "up", "down"), cost, strict=True)
        each = ", ".join(f"{name} {price:,.2f}" for name, price in parts if price)
        rows.append(("cost of 30 days", f"{cost.total:,.2f} ({each})" if each else "0"))
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*row)
    return table


def _units(units: UnitCosts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("unit cost", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("measured by", overflow="fold")
    for name, cost in units.named().items():
        table.add_row(NAMES[name], _value(cost), cost.source)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _value(cost: UnitCost) -> str:
    return f"{1e6 * cost.value:,.0f} µs" if cost.unit == "core s" else f"{cost.value:,.0f} B"
