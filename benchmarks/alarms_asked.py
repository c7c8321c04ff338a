"""What `alarms.py` asks besides: a fault that stays, a channel times 1000, a young node."""

import numpy as np

from fleet_in_time import EPOCH, Fleet, Member, without_gate
from plants.plant import Injected, Plant, plant
from report import Table
from submerge import SAPCA, spe
from submerge.protocol.machine import Now, Reading, Received, Scored, Start
from submerge.protocol.messages import Model
from submerge.protocol.settings import AlarmSettings
from submerge.stats.node_mean import READY

SIGMAS = 10.0
STEADY_DAYS = 7
TIMES = 1000.0

CHOSEN = {"loop": "purge/D", "engines": "core speed", "room": "m3/humidity"}
"""A channel that nothing acts on."""

NEXT = 100
"""Rows of a young node that are judged."""


def steady(
    names: tuple[str, ...], nodes: int, days: int, seed: int, settings: AlarmSettings
) -> tuple[list[Table], object]:
    """One channel is 10 scales off for 7 days: is it alarmed at on the seventh, and who else is?"""
    printed, reported = [], []
    for name in names:
        for gated in (True, False):
            rows: list[tuple[object, ...]] = []
            for faulty in (1, 2, 4):
                days_of = _steady(name, nodes, days, seed, settings, faulty, gated=gated)
                rows += [(faulty, *each) for each in days_of]
            gate = "with the gate" if gated else "without it"
            columns = {"faulty": "d", "day": "d", "score / limit": ".2f", "hours in alarm": ".1f",
                       "in alarm": "d", "others in alarm": "d"}  # fmt: skip
            printed.append(Table(f"{name}: {SIGMAS:.0f} scales off, {gate}", columns, rows))
            reported.append({"plant": name, "gated": gated, "rows": rows})
    return printed, reported


def _steady(
    name: str,
    nodes: int,
    days: int,
    seed: int,
    settings: AlarmSettings,
    faulty: int,
    *,
    gated: bool,
) -> list[tuple[object, ...]]:
    """Return for each day of the fault: SPE over its limit, hours in alarm, who is, who else."""
    begin = max(5, days - STEADY_DAYS - 2)
    period = plant(name, nodes=1, days=1, faults=()).period_s
    start, end = (int(d * 86400 / period) for d in (begin, begin + STEADY_DAYS))
    kind = "offset" if name == "room" else "bias"
    faults = [
        Injected(node, kind, (CHOSEN[name],), start, end, SIGMAS * (-1) ** node)
        for node in range(faulty)
    ]
    fleet = Fleet(
        plant(name, seed=seed, nodes=nodes, days=begin + STEADY_DAYS + 1, faults=faults),
        settings,
        seed=seed,
    )
    if gated:
        return _days(fleet, faulty, begin)
    with without_gate():
        return _days(fleet, faulty, begin)


def _days(fleet: Fleet, faulty: int, begin: int) -> list[tuple[object, ...]]:
    reported = []
    for _ in fleet.run(24 * begin, label=f"{fleet.plant.name}: before"):
        pass
    for day in range(1, STEADY_DAYS + 1):
        over: list[float] = []
        hours, others = 0, set[str]()
        for _ in fleet.run(24, label=f"{fleet.plant.name}: day {day}"):
            for i, member in enumerate(fleet.members):
                if i < faulty:
                    over.append(_over(member))
                    hours += member.is_open
                elif member.is_open:
                    others.add(member.name)
        still = sum(member.is_open for member in fleet.members[:faulty])
        reported.append((day, float(np.nanmedian(over)), hours / faulty, still, len(others)))
    return reported


def _over(member: Member) -> float:
    """Return by how much the newest rows' SPE, the median, is over its limit."""
    most = member.detector.limits.known.get("spe", np.nan)
    scores = [each.scores.spe for each in member.scored]
    return float(np.median(np.concatenate(scores)) / most) if scores else float("nan")


def thousand(plants: list[Plant], settings: AlarmSettings, seed: int) -> tuple[list[Table], object]:
    """One channel times 1000 at every node, scaling left to the fleet."""
    rows, reported = [], []
    for each in plants:
        column = [channel.name for channel in each.channels].index(CHOSEN[each.name])

        def louder(node: int, start: int, stop: int, each=each, column=column) -> np.ndarray:
            read = each.rows(node, start, stop).copy()
            read[:, column] *= TIMES
            return read

        fleets = [
            Fleet(each, settings, seed=seed, learns_scaling=True, rows=reading)
            for reading in (each.rows, louder)
        ]
        for fleet in fleets:
            for _ in fleet.run(label=each.name):
                pass
            fleet.ends()
        one, other = ([_seen(member) for member in fleet.members] for fleet in fleets)
        same = sum(a == b for a, b in zip(one, other, strict=True))
        alarms = [sum(map(len, each)) for each in (one, other)]
        rows.append((each.name, CHOSEN[each.name], *alarms, same, each.nodes))
        reported.append({"plant": each.name, "alarms": one, "times 1000": other})
    columns = {"plant": "", "channel": "", "alarms": "d", "times 1000": "d",
               "nodes alike": "d", "of": "d"}  # fmt: skip
    return [Table("One channel times 1000 at every node", columns, rows)], reported


def _seen(member: Member) -> list[tuple[object, ...]]:
    return [
        (alarm.began - EPOCH, alarm.ended and alarm.ended - EPOCH, alarm.cause,
         [name for name, _ in alarm.top])
        for alarm in sorted(member.alarms.values(), key=lambda alarm: alarm.began)
    ]  # fmt: skip


def young(plants: list[Plant], settings: AlarmSettings, seed: int) -> tuple[list[Table], object]:
    """Ten readings of its own and the fleet's scatter, against a model of those ten alone.

    A quarter of the nodes is no part of the fleet. Once its limits are known, each of them begins
    anew every so often, with the fleet's model and nothing of its own.
    """
    rows, reported = [], []
    for each in plants:
        fleet = Fleet(each, settings, seed=seed)
        known = each.nodes * 3 // 4
        while fleet.hour < fleet.hours // 2:
            fleet.passes(only=range(known))
        model = fleet.members[0].node.model
        limits = fleet.members[0].detector.limits.known
        rates: dict[str, list[float]] = {"in alarm": [], "raised": [], "SPE": [], "alone": []}
        scaling, last = each.schema.scaling, each.n_rows - NEXT - READY
        for guest in range(known, each.nodes):
            for begin in range(fleet.bounds(fleet.hour)[0], last, max(1, each.n_rows // 40)):
                read = each.rows(guest, begin, begin + NEXT + READY)
                scored = _begun(fleet, f"g{guest}", read, model)
                alarmed = np.concatenate([part.decision.alarmed for part in scored])
                rates["in alarm"].append(float(alarmed.mean()))
                rates["raised"].append(float(alarmed.any()))
                over = np.concatenate([part.scores.spe for part in scored]) > limits["spe"]
                rates["SPE"].append(float(over.mean()))
                read = (read - scaling.offset) / scaling.scale
                read = read[~np.isnan(read).any(axis=1)]
                mine = SAPCA(min(each.rank, READY - 2)).partial_fit(read[:READY]).subspace
                most = spe(read[:READY], mine).max()
                rates["alone"].append(float(np.mean(spe(read[READY:], mine) > most)))
        rows.append((each.name, len(rates["SPE"]), *(float(np.mean(r)) for r in rates.values())))
        reported.append({"plant": each.name, "rates": rates})
    columns = {"plant": "", "begun": "d", "in alarm": ".3f", "raised": ".3f",
               "SPE over limit": ".3f", "alone: SPE over limit": ".3f"}  # fmt: skip
    note = (
        f"Of the {NEXT} rows after the first {READY}, the share that was in alarm, and over the"
        f" limit; of those that began, the share that raised one. Alone, the limit is the highest"
        f" of the {READY}."
    )
    return [Table("Ten readings of its own", columns, rows, note)], reported


def _begun(fleet: Fleet, name: str, read: np.ndarray, model: Model) -> list[Scored]:
    """Return what a node says of its rows after the first ten, ten at a time."""
    node = fleet._member(name, np.random.default_rng(0)).node
    scored: list[Scored] = []
    events = [Start({}), Received(model)]
    events += [Reading(read[first : first + READY]) for first in range(0, len(read), READY)]
    for i, event in enumerate(events):
        passed = max(0, i - 1) * READY * fleet.plant.period_s
        now = Now(fleet.now.steady + passed, fleet.now.wall + passed)
        scored += [each for each in node.step(event, now) if isinstance(each, Scored)]
    return scored[1:]
