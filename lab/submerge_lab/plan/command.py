"""`submerge lab plan`: what a fleet of any size needs, from unit costs that were measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, cast

import click
from rich.console import Console
from rich.table import Table

from submerge import UsageError
from submerge_files.console.options import QUIET, default_option, flag_option, json_option
from submerge_files.console.progress import advancing
from submerge_files.console.units import duration, share, size_of, span_text
from submerge_lab.plan.levels import (
    FleetNeeds,
    FleetPlan,
    MonthlyCost,
    Prices,
    monthly_cost,
    needs,
)
from submerge_lab.plan.measure import sizes
from submerge_lab.plan.units import Transport, UnitCost, UnitCosts, recorded, remeasured

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


MOST_LEAVES, WIDEST, SHORTEST_S = 100_000_000, 4096, 1.0

PRICE = click.FloatRange(0.0)


@click.command(
    epilog="""\b
Example: submerge lab plan --leaves 1000000 --transport mqtt --price-core 20
         submerge lab plan --leaves 50000 --channels 200 --measure"""
)
@default_option("--leaves", 1_000_000, "Clients.", type=click.IntRange(1, MOST_LEAVES))
@default_option("--channels", 64, "Channels of a client.", type=click.IntRange(2, WIDEST))
@default_option("--rank", 8, "Directions shown.", type=click.IntRange(1))
@default_option("--oversample", 5, "Spare directions.", type=click.IntRange(0))
@default_option("--report-every", "5m", "Interval of reports.", type=duration)
@default_option("--model-every", "1m", "Interval of models.", type=duration)
@default_option("--transport", "grpc", "Way to the parents.", type=click.Choice(["grpc", "mqtt"]))
@default_option("--busy", "50%", "Share of a core to plan with.", type=share)
@click.option(
    "--fan-in",
    type=click.IntRange(2),
    help="Children of an aggregator.  [default: as many as fit, 1000 at most]",
)
@default_option("--price-core", 0.0, "Price of a core for a month.", type=PRICE)
@default_option("--price-gib", 0.0, "Price of a GiB of memory for a month.", type=PRICE)
@default_option("--price-gb-up", 0.0, "Price of 10^9 bytes from clients.", type=PRICE)
@default_option("--price-gb-down", 0.0, "Price of 10^9 bytes to clients.", type=PRICE)
@flag_option("--measure", "Measure what a report costs on this machine, some seconds.")
@json_option()
@QUIET
def command(
    channels: int,
    rank: int,
    oversample: int,
    measure: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Say what a fleet needs: bytes, cores, brokers, and aggregators by level.

    Bytes are those of messages that are encoded here, without the headers of TCP and TLS. All other
    figures follow from unit costs: the output names what measured each of them. Prices are yours,
    in any currency. What runs on the devices is not in the plan.
    """
    _check(channels, rank, oversample, options)
    plan = FleetPlan(
        options["leaves"],
        options["report_every"],
        options["model_every"],
        cast(Transport, options["transport"]),
        options["busy"],
        options["fan_in"],
    )
    prices = Prices(*(options[f"price_{name}"] for name in ("core", "gib", "gb_up", "gb_down")))
    units = recorded(sizes(channels, rank, oversample), plan.transport)
    if measure:
        units = _measured(units, channels, rank, oversample, quiet=quiet)
    need = needs(plan, units)
    cost = monthly_cost(plan, need, prices)
    if as_json:
        shape = {"channels": channels, "rank": rank, "oversample": oversample}
        click.echo(json.dumps(_figures(plan, shape, units, need, cost)))
        return
    from submerge_lab.plan.command import print_plan

    print_plan(plan, units, need, cost, priced=any(prices))


def _measured(
    units: UnitCosts, channels: int, rank: int, oversample: int, *, quiet: bool
) -> UnitCosts:
    from submerge_lab.plan.measure import ROUNDS, measured

    if quiet:
        return remeasured(units, measured(channels, rank, oversample, lambda _: None))
    with advancing("measure", ROUNDS + 1) as advance:
        return remeasured(units, measured(channels, rank, oversample, advance))


def _plain(units: UnitCosts) -> dict[str, Any]:
    return {name: cost._asdict() for name, cost in units.named().items()}


def _check(channels: int, rank: int, oversample: int, options: dict[str, Any]) -> None:
    if rank + oversample > channels:
        raise UsageError(
            f"expected --rank and --oversample of at most {channels} together, got"
            f" {rank} + {oversample}: lower one of them, or add --channels"
        )
    for name in ("report_every", "model_every"):
        if options[name] < SHORTEST_S:
            raise UsageError(
                f"expected --{name.replace('_', '-')} of at least 1s, got {options[name]:g}s:"
                " choose a longer one"
            )
    if not options["busy"]:
        raise UsageError("expected --busy above 0, got 0: add --busy 50%")


def _figures(
    plan: FleetPlan, shape: dict[str, int], units: UnitCosts, need: FleetNeeds, cost: MonthlyCost
) -> dict[str, Any]:
    return {
        "plan": asdict(plan) | shape,
        "units": _plain(units),
        "levels": [level._asdict() for level in need.levels],
        "aggregators": need.aggregators,
        "cores": need.cores,
        "memory_bytes": need.memory_bytes,
        "bytes_day": {"up": need.up_bytes_day, "down": need.down_bytes_day},
        "broker": {
            "messages_s": need.broker_messages_s,
            "cores": need.broker_cores,
            "brokers": need.brokers,
        },
        "monthly_cost": cost._asdict() | {"total": cost.total},
    }
