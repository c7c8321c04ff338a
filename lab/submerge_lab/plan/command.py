"""`submerge lab plan`: what a fleet of any size needs, from unit costs that were measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, cast

import click

from submerge import UsageError
from submerge_files.console.options import QUIET, default_option, flag_option, json_option
from submerge_files.console.progress import advancing
from submerge_files.console.units import duration, share
from submerge_lab.plan.levels import (
    FleetNeeds,
    FleetPlan,
    MonthlyCost,
    Prices,
    monthly_cost,
    needs,
)
from submerge_lab.plan.messages import sizes
from submerge_lab.plan.units import Transport, UnitCosts, recorded, remeasured

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
    from submerge_lab.plan.report import print_plan

    print_plan(plan, units, need, cost, priced=any(prices))


def _measured(
    units: UnitCosts, channels: int, rank: int, oversample: int, *, quiet: bool
) -> UnitCosts:
    """Return unit costs of this machine."""
    from submerge_lab.plan.measure import ROUNDS, measured

    if quiet:
        return remeasured(units, measured(channels, rank, oversample, lambda _: None))
    with advancing("measure", ROUNDS + 1) as advance:
        return remeasured(units, measured(channels, rank, oversample, advance))


def _plain(units: UnitCosts) -> dict[str, Any]:
    return {name: cost._asdict() for name, cost in units.named().items()}


def _check(channels: int, rank: int, oversample: int, options: dict[str, Any]) -> None:
    """Refuse what makes no plan."""
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
    """Return a plan for JSON."""
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
