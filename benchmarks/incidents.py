"""Incidents: when alarms of several machines are one, how often by chance, and who was first.

Alarms are made from distances alone: a machine has a row each three minutes at a phase of its own,
with a squared distance of 20 channels, and raises an alarm where the moving average (weight 0.1)
exceeds a limit that normal rows exceed once a week. No rows of sensors, no reports, no losses.

- upstream: a fault of the first of the machines in a row reaches each next one after a lag, half as
  long to one and a half times, and 1 % weaker. Its size is in the noise of a channel, at least.
  Clocks are off by seconds (normal, 2 s).
- independent: six or twelve machines have a fault of their own within one day.
- chance: no faults; each machine raises false alarms at random (Poisson), for many years. With
  `grid` all onsets fall on rows that all machines read at the same moment.

`one incident` is exactly one, `whole` has nine of ten alarms of the fault, `first` names the first
machine, `at best` is how often that one has the first row with the fault, and `by flow` names it
where the order of machines is known. Each run has false alarms of all machines as well, one a week
each, for three days.
"""

from __future__ import annotations

import sys
from itertools import product

import click
import numpy as np

import blas
from page import document
from report import Table
from submerge.aggregator.alarms.incidents import AlarmRates, incidents
from submerge.protocol.alarm_status import Alarm
from submerge.stats.smoothing import ewma

DAY_S, WEEK_S, YEAR_S = 86_400.0, 604_800.0, 365.25 * 86_400.0
ROW_S, CHANNELS, ROWS, SKEW_S = 180.0, 20, 480, 2.0
SIZES, SPREAD = (3.5, 7.0), 0.35
"""Least size of a fault in the noise of a channel, faint or plain, and of its logarithm above."""

WEEKS = 52
"""For which a fleet has been watched as it is asked; it raised as many alarms as promised."""

Draw = np.random.Generator


def limit(draw: Draw) -> float:
    """Return what the average of normal rows exceeds once a week: its highest of a week, mostly."""
    weeks = draw.chisquare(CHANNELS, (40, int(WEEK_S / ROW_S)))
    return float(np.median([ewma(week, float(CHANNELS), np.inf).max() for week in weeks]))


def onset(draw: Draw, size: float, most: float) -> float | None:
    """Return seconds from a fault to its alarm at a machine; None if a day does not show it."""
    rows = draw.normal(size=(ROWS, CHANNELS))
    rows[:, 0] += size
    over = np.flatnonzero(ewma(np.square(rows).sum(axis=1), float(CHANNELS), np.inf) > most)
    return float(ROW_S * (over[0] + draw.random())) if len(over) else None


def alarm(node: int, at: float, channel: str = "flow") -> Alarm:
    """Return an alarm that began at a time of its node's clock."""
    top = ((channel, 1.0),)
    return Alarm(f"m{node:03}", int(at * 1000), at, at, 0.0, 2.0, "ewma", top, 1, 0, "", top)


def by_chance(draw: Draw, nodes: int, seconds: float, weekly: float = 1.0) -> list[Alarm]:
    """Return false alarms of machines, each at a rate a week."""
    number = draw.poisson(nodes * weekly * seconds / WEEK_S)
    at, who = draw.uniform(0.0, seconds, number), draw.integers(nodes, size=number)
    return [alarm(int(node), float(when)) for node, when in zip(who, at, strict=True)]


def rates(nodes: int, weekly: float = 1.0) -> AlarmRates:
    """Return what a root knows of a fleet that raised as many alarms as it was allowed."""
    watched_s = nodes * WEEKS * WEEK_S
    return AlarmRates(nodes, weekly / WEEK_S, round(nodes * WEEKS * weekly), watched_s)


def upstream(
    seed: int, nodes: int, most: float, lag_s: float, least: float
) -> tuple[bool, bool, bool, bool, bool, float, float]:
    """Return if it is one incident, whole, with the first, at best, by flow; delay; others in."""
    draw = np.random.default_rng(seed)
    size, reached, alarms = least * np.exp(SPREAD * abs(draw.normal())), DAY_S, []
    read = list[float]()
    for node in range(nodes):
        delay = onset(draw, size * 0.99**node, most)
        if delay is not None:
            alarms.append(alarm(node, reached + delay + SKEW_S * draw.normal()))
        read.append(reached + ROW_S * draw.random())
        reached += lag_s * draw.uniform(0.5, 1.5)
    others = by_chance(draw, nodes, 3 * DAY_S)
    found = incidents((*alarms, *others), rates(nodes))
    names = {each.name for each in alarms}
    parts = [{part.name for part in each.parts} for each in found]
    most_of = max(parts, key=lambda each: len(each & names), default=set())
    whole = len(most_of & names) >= 0.9 * len(alarms)
    first = any(each.node == "m000" for each in found if each.parts[0].name in most_of)
    flow = (tuple(f"m{node:03}" for node in range(nodes)),)
    led = incidents((*alarms, *others), rates(nodes)._replace(flow=flow))
    by_flow = any(each.node == "m000" for each in led if each.parts[0].name in most_of)
    delay_h = (min(each.began for each in alarms) - DAY_S) / 3600 if alarms else np.nan
    known = first, min(read) == read[0], by_flow
    return len(found) == 1, whole, *known, delay_h, len(most_of - names)


def independent(seed: int, nodes: int, faults: int) -> int:
    """Return the incidents among faults that have nothing to do with one another."""
    draw = np.random.default_rng(seed)
    who = draw.permutation(nodes)[:faults]
    alarms = [alarm(int(node), DAY_S * (1 + draw.random())) for node in who]
    return len(incidents((*alarms, *by_chance(draw, nodes, 3 * DAY_S)), rates(nodes)))


def chance(seed: int, nodes: int, weekly: float, years: int, grid_s: float = 0.0) -> float:
    """Return incidents a year where no machine has a fault."""
    draw, found = np.random.default_rng(seed), 0
    for _ in range(years):
        alarms = by_chance(draw, nodes, YEAR_S, weekly)
        if grid_s:
            alarms = [alarm(int(a.node[1:]), grid_s * np.floor(a.began / grid_s)) for a in alarms]
        found += len(incidents(alarms, rates(nodes, weekly)))
    return found / years


@click.command(help=__doc__)
@click.option("--seeds", default=100, show_default=True, help="Fleets with faults.")
@click.option("--years", default=200, show_default=True, help="Of fleets without any.")
def main(seeds: int, years: int) -> None:
    """Run it, and print the page."""
    pools, most, shares = blas.check(), limit(np.random.default_rng(0)), []
    cases = [(3, 60.0), (10, 60.0), (40, 15.0), (40, 60.0), (40, 120.0)]
    cases += [(40, 300.0), (40, 900.0)]
    for least, (nodes, lag_s) in product(SIZES, cases):
        runs = np.array([upstream(seed, nodes, most, lag_s, least) for seed in range(seeds)])
        late = np.nanmedian(runs[:, 5]), runs[:, 6].mean()
        shares.append((least, nodes, lag_s / 60, *runs[:, :5].mean(axis=0), *late))
    columns = {
        "size": ".1f",
        "machines": "d",
        "lag min": ".2f",
        "one incident": ".0%",
        "whole": ".0%",
    }
    columns |= {
        "first": ".0%",
        "at best": ".0%",
        "by flow": ".0%",
        "first alarm h": ".2f",
        "other alarms in it": ".2f",
    }
    apart = [
        (nodes, faults, np.mean([not independent(seed, nodes, faults) for seed in range(seeds)]))
        for nodes, faults in ((10, 6), (40, 6), (40, 12))
    ]
    rows = []
    for nodes in (3, 10, 40):
        known = rates(nodes)
        fewest = (known.least(300.0), known.least(3600.0))
        by = [chance(1, nodes, 1.0, years), chance(1, nodes, 7.0, years // 10)]
        grids = [chance(1, nodes, 1.0, years // 2, grid_s) for grid_s in (300.0, 900.0)]
        rows.append((nodes, *fewest, *by, *grids))
    rare = {"machines": "d", "of 5 min": "d", "of 1 h": "d", "once a week": ".2f"}
    rare |= {"once a day": ".2f", "rows each 5 min": ".2f", "rows each 15 min": ".2f"}
    tables = [
        Table(f"One upstream fault, {seeds} fleets of each", columns, shares),
        Table(
            f"Independent faults of one day, {seeds} fleets of each",
            {"machines": "d", "faults": "d", "not joined": ".0%"},
            apart,
        ),
        Table(f"Incidents a year by chance, in {years} years, and fewest alarms", rare, rows),
    ]
    click.echo(document(sys.modules[__name__], " ".join(sys.argv[1:]), tables, pools))


if __name__ == "__main__":
    main()
