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

*Breaks* happen in that time at one node, one after another: a sensor reads too much, by 3 of its
channel's scales at the plants (12 in the room), by 6 degrees in the household (its messages, held
from minute to minute), by 6 l/min at one of six pumps. Each is *found* if an alarm is open in it
that has the sensor among its channels. *Short*: 40 rows, then 40 as before, another sensor for 40
rows, 120 as before, and the first again. *At once*: the same ten rows after the first limit.
*While*: the first stays for 240 rows, from the 80th of them another joins it for 40; 40 rows after
both the first is off again. *Stays*: the first is off for 1,500 rows; 40 later another, 40 later
the first again. *Drift*: the first grows for 400 rows to twice as much, and is then repaired; then
as before. *False* are provisional alarms a day and node without a break, in such a time.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import measure
from fleet_in_time import Fleet, Member
from page import page
from plants.plant import plant
from report import Table
from submerge import Array, Channel, Schema
from submerge.protocol.settings import AlarmSettings
from support.zigbee import BASE, Household
from support.zigbee_box import channels

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


# -- breaks ------------------------------------------------------------------------

EACH = 8
"""Rows that are read at once."""

DAYS = {"engines": 30, "loop": 9, "room": 3, "household": 4, "pumps": 1}
"""Days of each plant at its own pace: at `PLANT_S` and below, all are less than three."""

PLANT_S = 30.0
"""From row to row of a generated plant, whatever its own pace."""

SIZES = {"room": 12.0}
"""How far a sensor is off, in scales: light after the first night is the highest that was seen."""

PUMP_S, PUMPS = 10.0, ("flow", "pressure", "current", "temperature")
PUMP_NOISE = np.array([0.4, 0.02, 0.1, 0.3])


@dataclass(frozen=True)
class Breaks:
    """Breaks of a node that begin `after` rows after its first limit: spans of sensors a and b.

    a, b : (from, to) after that, where each is off
    judged : the three spans in which one is to be found, and its sensor
    """

    after: int
    a: tuple[tuple[int, int], ...]
    b: tuple[int, int]
    judged: tuple[tuple[str, int, int], ...]
    drifts: bool = False


def _three(last: int, *, after: int = 400, drifts: bool = False) -> Breaks:
    b, again = (last + 40, last + 80), (last + 120, last + 160)
    judged = (("a", 0, last), ("b", *b), ("a", *again))
    return Breaks(after, ((0, last), again), b, judged, drifts)


SHORT = Breaks(
    400, ((0, 40), (240, 280)), (80, 120), (("a", 0, 40), ("b", 80, 120), ("a", 240, 280))
)
BREAKS = {
    "short": SHORT,
    "at once": Breaks(10, SHORT.a, SHORT.b, SHORT.judged),
    "while": Breaks(
        *(400, ((0, 240), (280, 320)), (80, 120)),
        (("a", 0, 40), ("b", 80, 120), ("a", 280, 320)),
    ),
    "stays": _three(1500),
    "drift": _three(400, drifts=True),
}


def household(seed: int, days: int) -> SimpleNamespace:
    """Return the household as a plant of one node: what its devices said last, each minute."""
    names = channels()
    places = {name: i for i, name in enumerate(names)}
    rows = np.full((1440 * days, len(names)), np.nan)
    for message in Household(seed, days).messages():
        device = message.topic.removeprefix(f"{BASE}/")
        if message.payload[:1] != b"{":
            continue
        for field, value in json.loads(message.payload).items():
            i = places.get(f"{device}/{field}")
            if i is not None and isinstance(value, int | float):
                rows[int(message.time // 60) + 1 :, i] = value
    return _made(names, 60.0, rows[None])


def pumps(seed: int, days: int) -> SimpleNamespace:
    """Return six pumps like those of examples/pump.py as a plant: a row in ten seconds."""
    rng, n = np.random.default_rng(seed), round(86400 * days / PUMP_S)
    load = 1 + 0.3 * np.sin(np.arange(n) / 200 + 6 * rng.random((6, 1)))
    load += rng.normal(0, 0.05, (6, n))
    rows = np.stack([40 * load, 3 + 1.5 * load**2, 4 + 6 * load, 45 + 8 * load], axis=2)
    return _made(PUMPS, PUMP_S, rows + PUMP_NOISE * rng.standard_normal(rows.shape))


def _made(names: list[str] | tuple[str, ...], period_s: float, rows: Array) -> SimpleNamespace:
    schema = Schema(tuple(Channel(name) for name in names), center="own")
    nodes, n_rows = rows.shape[:2]
    made = SimpleNamespace(schema=schema, nodes=nodes, n_rows=n_rows, period_s=period_s)
    made.rows = lambda node, start, stop: rows[node, start:stop]
    return made


def _drawn(name: str, seed: int, days: int) -> tuple[SimpleNamespace, tuple[float, float], list]:
    """Return a plant, how far its sensors a and b are off, and pairs of these."""
    if name == "household":
        temperatures = ["bedroom/temperature", "kitchen/temperature", "study/temperature"]
        return household(seed, days), (6.0, 6.0), [channels().index(each) for each in temperatures]
    if name == "pumps":
        return pumps(seed, days), (6.0, 1.0), [0, 1, 2]
    made = plant(name, seed=seed, nodes=2 if name == "engines" else 6, days=days, faults=())
    made.period_s = PLANT_S
    rng = np.random.default_rng(seed)
    which = rng.permutation(len(made.schema.scaling.scale))[:2].tolist()
    size = SIZES.get(name, 3.0)
    return made, tuple(size * made.schema.scaling.scale[i] for i in which), which


def _lived(name: str, seed: int, days: int, breaks: Breaks | None) -> Iterator[tuple[Fleet, int]]:
    """Let a group live, with the breaks of its first node; yield it with its newest row."""
    made, sizes, which = _drawn(name, seed, days)
    began = sys.maxsize

    def rows(node: int, start: int, stop: int) -> Array:
        found, at = made.rows(node, start, stop).copy(), np.arange(start, stop) - began
        if breaks is None or node:
            return found
        for first, last in breaks.a:
            off = sizes[0] * ((at >= first) & (at < last))
            if breaks.drifts and not first:
                off = off * 2 * at / last
            found[:, which[0]] += off
        found[:, which[1]] += sizes[1] * ((at >= breaks.b[0]) & (at < breaks.b[1]))
        return found

    fleet = Fleet(
        *(made, AlarmSettings()),
        seed=seed,
        rows=rows,
        learns_scaling=name in ("household", "pumps"),
        step_s=EACH * made.period_s,
        min_rows=10 * len(made.schema.channels),
    )
    for _ in range(fleet.hours):
        fleet.passes()
        detector = fleet.members[0].detector
        if began == sys.maxsize and breaks and detector is not None and detector.limits.known:
            began = fleet.hour * EACH + breaks.after
        yield fleet, fleet.hour * EACH - began


def _names(member: Member, channel: str) -> bool:
    """Whether its open alarm names a channel."""
    alarm = member.detector and member.detector.log.open
    return alarm is not None and any(name == channel for name, _ in alarm.top)


def broken(name: str, seed: int, days: int, breaks: Breaks) -> list[bool]:
    """Return whether each of three breaks is found."""
    made, _, which = _drawn(name, seed, 1)
    names = dict(zip("ab", (made.schema.names[i] for i in which), strict=False))
    found = [False] * 3
    for fleet, at in _lived(name, seed, days, breaks):
        for i, (sensor, first, last) in enumerate(breaks.judged):
            # The rows that were read last are of the break, or most of them.
            if first < at <= last + EACH // 2:
                found[i] |= _names(fleet.members[0], names[sensor])
        if at > breaks.judged[-1][2] + EACH:
            break
    return found


def false_a_day(name: str, seed: int, days: int) -> tuple[int, float]:
    """Return the provisional alarms without a break, and the days of nodes in which they came."""
    fleet = [each for each, _ in _lived(name, seed, days, None)][-1]
    raised = sum(len(member.by_limits()[1]) for member in fleet.members)
    hours = sum(len(member.provisional) for member in fleet.members)
    return raised, hours * fleet.step_s / 86400


def all_breaks(quick: bool) -> Table:
    """Return the breaks that are found, and the alarms that are false."""
    rows: list[tuple[object, ...]] = []
    for name in DAYS:
        seeds = range(700, 701 if quick else 704)
        days = DAYS[name]
        raised, lived = 0, 0.0
        for seed in seeds:
            each = false_a_day(name, seed, days)
            raised, lived = raised + each[0], lived + each[1]
        for kind, breaks in BREAKS.items():
            found = [broken(name, seed, days, breaks) for seed in measure.progress(seeds, name)]
            shares = np.mean(found, axis=0)
            rows.append((name, kind, len(found), *shares, raised / lived if lived else None))
    columns = {"plant": "", "breaks": "", "runs": "d"}
    columns |= dict.fromkeys(("first", "second", "third"), ".0%") | {"false a day": ".2f"}
    return Table("Breaks in the provisional time", columns, rows)


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
    return [Table("Young groups", columns, rows, notes), all_breaks(quick)]


if __name__ == "__main__":
    page(room)
