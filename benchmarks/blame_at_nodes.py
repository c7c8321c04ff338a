"""Whether the right channel comes first when a node raises an alarm, by how well another tells it.

Nodes of each generated plant run for eight days without faults. Then a bias, a drift, a noise (of
5 typical errors, and of 10 and 20 expected ones) and a stuck value are put into each channel of
the rows of an hour. r2 is a channel's largest squared partial correlation with another: from .5 on
each is told by the other. First right is at the onset; of twins: named with its twin.
"""

from itertools import pairwise

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from drill import Tried
from fleet_in_time import Fleet
from plants.plant import PLANTS, plant
from report import Table
from submerge import Array
from submerge.drill.drill import SIZED, shape
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.settings import AlarmSettings


def raised(node: Tried, before: Array, rows: Array) -> Alarm | None:
    """Return the alarm that rows raise, ten at a time; the node stays as it is."""
    monitor, at, new = node.monitor, node._fleet.now, None
    kept = monitor.detector, monitor._reference, monitor._held_for
    known = {alarm.number for alarm in monitor.detector.log.alarms}
    for part in (before, *(rows[i : i + 10] for i in range(0, len(rows), 10))):
        monitor.judge(node._block(part), node._model, at)
        passed_s = len(part) * node._fleet.plant.period_s
        at = at._replace(steady=at.steady + passed_s, wall=at.wall + passed_s)
        found = [each for each in monitor.detector.log.alarms if each.number not in known]
        new = found[-1] if found else new
    monitor.detector, monitor._reference, monitor._held_for = kept
    return new


def blamed(node: Tried, draw: np.random.Generator):
    """Yield r2 of a faulty channel, whether it came first, and whether it was one of twins."""
    at, recall = node._fleet.plant, node._scoring.scorer._recall
    r2, typical = np.zeros(len(at.channels)), node.monitor.channels.residual_scale.typical
    np.maximum.at(r2, recall.pairs.one, recall.pairs.alike**2)
    ages, scale = np.arange(1, node.within + 1) / node.within, np.array(at.schema.scaling.scale)
    ((before, rows),) = node.fresh(int(172800 / at.period_s), 1)
    if raised(node, before, rows):
        return  # without a fault
    for c, kind in ((c, kind) for c in range(len(r2)) for kind in (*SIZED, "stuck")):
        unit = np.sqrt(recall.expected[c])
        sizes = 5 * np.sqrt(typical[c] or recall.expected[c]), 10 * unit, 20 * unit
        for size in sizes if kind in SIZED else (0.0,):
            bad, one = rows.copy(), shape(kind, ages, draw.standard_normal(node.within))
            wrong = before[-1, c] - rows[:, c] if one is None else size * scale[c] * one
            bad[:, c] += wrong * draw.choice((-1, 1)) if one is not None else wrong
            if alarm := raised(node, before, bad):
                name = at.channels[c].name
                yield r2[c], next(iter(alarm.first), ("",))[0] == name, name in alarm.twins


@click.command(help=__doc__)
@click.option("--nodes", default=6, show_default=True)
def main(nodes: int) -> None:
    lines, draw = [], np.random.default_rng(1)
    for name in PLANTS:
        at = plant(name, seed=0, nodes=nodes, days=11, faults=())
        fleet = Fleet(at, AlarmSettings(at_most_per_s=1 / 604800))
        for _ in fleet.run(24 * 8, label=name):
            pass
        within = max(int(3600 / at.period_s), 24)
        tried = [Tried(fleet, i, each, 256, within) for i, each in enumerate(fleet.members)]
        found = [each for node in tried for each in blamed(node, draw)]
        for low, high in pairwise((0.0, 0.25, 0.5, 1.01)):
            some = [each[1:] for each in found if low <= each[0] < high]
            if some:
                lines.append((name, low, len(some), *np.array(some, float).mean(axis=0).tolist()))
    columns = {"plant": "", "r2 from": ".2f", "alarms": "d", "first right": ".1%"}
    click.echo(Table("Blame at nodes", columns | {"of twins": ".1%"}, lines).markdown)


if __name__ == "__main__":
    main()
