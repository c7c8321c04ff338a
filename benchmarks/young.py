"""How soon young groups have limits, what rate these state, and what comes of it.

Histories without a fault: a machine that reads 400 rows at one a second, one that reads 500 rows at
one in three minutes, and 100 nodes that begin together with a row an hour. Rows are those of the
[generated plants](../docs/plants.md), whatever their own pace. Real `ClientNode`s report to a real
root, with the settings that a user has who sets nothing; the root makes a model with every report.

*First limit* counts a node's rows from the first model of its group to its first limit, in the
median and at worst; *none* are nodes that never had one. *Stated* is the rate of that limit, as one
false alarm in so many rows of a node; it is to be no higher than one in a third of the rows that
the group had read by then, which *a third* counts. *Expected* are the false alarms that provisional
limits state in all, *raised* those that were. The histories go on ten times as long for these two.
"""

from dataclasses import dataclass

import numpy as np

import measure
from fleet_in_time import Fleet
from page import page
from plants.plant import plant
from report import Table
from submerge.protocol.settings import AlarmSettings

WITHIN, TIMES = 100, 1.5
"""Rows to the first limit; most raised alarms for one that is expected."""

LONGER = 10

MIN_ROWS = 80
"""Rows of a group before its first model, as a root's configuration has it: ten a direction."""


@dataclass(frozen=True)
class History:
    """Nodes that begin together: `rows` each, one every `period_s`; a report every `step_s`."""

    plant: str
    nodes: int
    rows: int
    period_s: float
    step_s: float
    fleets: int


HISTORIES = {
    "400 rows, one a second": History("loop", 1, 400, 1.0, 10.0, 8),
    "500 rows, one in 3 min": History("loop", 1, 500, 180.0, 3600.0, 8),
    "100 nodes, one an hour": History("engines", 100, 40, 3600.0, 3600.0, 1),
}


@dataclass
class Seen:
    """What was seen of the nodes of a history: one entry each, but for the sums at the end."""

    after: list[float]
    stated: list[float]
    third: list[float]
    none: int = 0
    expected: float = 0.0
    raised: int = 0


def grown(history: History, seed: int, seen: Seen) -> None:
    """Let a group begin, and add what is seen of it."""
    rows = history.rows * LONGER
    days = -(-rows * plant(history.plant, nodes=1, days=1, faults=()).period_s // 86400)
    fleet_of = plant(history.plant, seed=seed, nodes=history.nodes, days=int(days), faults=())
    fleet_of.period_s = history.period_s
    fleet = Fleet(fleet_of, AlarmSettings(), seed=seed, step_s=history.step_s, min_rows=MIN_ROWS)
    each = history.step_s / history.period_s
    while fleet.hour * each < rows:
        fleet.passes()
    for member in fleet.members:
        hours = sorted({*member.provisional, *member.armed})
        if not hours or fleet.first_model is None:
            seen.none += 1
            continue
        seen.after.append((hours[0] - fleet.first_model) * each)
        if hours[0] in member.provisional:
            seen.stated.append(member.provisional[hours[0]])
            seen.third.append(hours[0] * each * history.nodes / 3)
        seen.expected += sum(each / rows for rows in member.provisional.values())
        seen.raised += len(member.by_limits()[1])


def room(quick: bool) -> list[Table]:
    """Let groups of every kind begin."""
    rows: list[tuple[object, ...]] = []
    for name, history in HISTORIES.items():
        seen = Seen([], [], [])
        for seed in measure.progress(range(2 if quick else history.fleets), name):
            grown(history, 500 + seed, seen)
        rows.append(
            (
                name,
                len(seen.after) + seen.none,
                seen.none,
                float(np.median(seen.after)) if seen.after else None,
                max(seen.after) if seen.after else None,
                float(np.median(seen.stated)) if seen.stated else None,
                float(np.median(seen.third)) if seen.third else None,
                seen.expected,
                seen.raised,
            )
        )
    columns = {"history": "", "nodes": "d", "none": "d"}
    columns |= dict.fromkeys(("first limit", "at worst", "stated: 1 in", "a third"), ".0f")
    columns |= {"expected": ".1f", "raised": "d"}
    notes = (
        f"A first limit is to come within {WITHIN} rows, and at most {TIMES} alarms are to be"
        " raised for one that is expected."
    )
    return [Table("Young groups", columns, rows, notes)]


if __name__ == "__main__":
    page(room)
