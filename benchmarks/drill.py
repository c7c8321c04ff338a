"""Whether a drill is right: detection that it predicts, and detection that is found.

Nodes of a generated plant (docs/plants.md) run for some days without faults: real `ClientNode`s
below a real root. Then each node drills on its newest rows. What it predicts is compared with what
its own monitor finds when the same faults are put into the rows of the following days, which no
model was learnt from. Five sizes of each channel: .5, .7, .85, 1 and 1.2 times the smallest bias
that is predicted to be found in nine of ten tries.
"""

import json
from dataclasses import dataclass

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from fleet_in_time import Fleet, Member
from plants.plant import PLANTS, Plant, plant
from report import Table
from submerge import Array
from submerge.drill.detection import spans
from submerge.drill.drill import Drill, shape
from submerge.drill.response import NodeScorer
from submerge.judge.prepare import RowTime, prepare
from submerge.protocol.settings import AlarmSettings

WEEK_S = 7 * 86400.0
TIMES = (0.5, 0.7, 0.85, 1.0, 1.2)
KINDS = ("bias", "drift", "noise")


@dataclass
class Cell:
    """One channel and size: the share that was predicted, and the share that was found."""

    kind: str
    channel: str
    size: float
    predicted: float
    found: float


class Tried:
    """One node at a run's end with its drill on the newest rows, and its monitor to try faults on.

    within : Rows in which a fault has to be found.
    """

    def __init__(self, fleet: Fleet, number: int, member: Member, rows: int, within: int) -> None:
        self._fleet, self._number, self._member = fleet, number, member
        self.within = within
        self.monitor, self._model = member.node._ingest.monitor, member.node.model
        self._stop = fleet.bounds(fleet.hour)[0]
        self._scoring = self.monitor._scoring_model(self._model)
        detector = self.monitor.detector
        self._limits = {kind: detector.limit(kind, settled=True) for kind in detector.limits.known}
        block = self._block(fleet.plant.rows(number, self._stop - rows, self._stop))
        recent = block.rows if block.gaps is None else np.where(block.gaps, np.nan, block.rows)
        self.drill = Drill(
            NodeScorer(
                self._scoring,
                member.node.current.schema,
                self.monitor.own,
                self.monitor.channels.residual_scale,
            ),
            recent,
            self._limits,
            after=fleet.alarms.after,
            of=fleet.alarms.of,
            tried=spans(len(recent), within),
            noise=np.random.default_rng(number).standard_normal(8192),
        )

    def _block(self, rows: Array):
        return prepare(
            rows,
            self._member.node.current.schema,
            fill=lambda gappy: self.monitor.filled(gappy, self._model),
            time=RowTime(self._fleet.plant.period_s),
        )

    def fresh(self, day_rows: int, tries: int) -> list[tuple[Array, Array]]:
        """Return rows before a fault, and rows that it is put into, at some places."""
        last = min(self._stop + day_rows, self._fleet.plant.n_rows) - self.within
        starts = np.linspace(self._stop + 40, last, tries).astype(int)
        return [
            (
                self._fleet.plant.rows(self._number, start - 40, start),
                self._fleet.plant.rows(self._number, start, start + self.within),
            )
            for start in starts.tolist()
        ]

    def alarmed(self, before: Array, rows: Array) -> bool:
        """Return whether the node raises an alarm in these rows; it is then as it was."""
        monitor = self.monitor
        kept = monitor.detector, monitor._reference, monitor._held_for
        try:
            for part in (before, rows):
                judged = monitor.judge(self._block(part), self._model, self._fleet.now)
            return bool(judged.decision.alarmed.any())
        finally:
            monitor.detector, monitor._reference, monitor._held_for = kept


def drilled(
    at: Plant, settings: AlarmSettings, hours: int, rows: int, tries: int, kinds: tuple[str, ...]
) -> list[Cell]:
    """Run a plant's nodes, and compare what drills predict with what is found."""
    fleet = Fleet(at, settings)
    for _ in fleet.run(hours, label=at.name):
        pass
    within = max(int(3600 / at.period_s), 2 * settings.of)
    nodes = [Tried(fleet, i, member, rows, within) for i, member in enumerate(fleet.members)]
    fresh = [
        [
            (before, after)
            for before, after in node.fresh(int(48 * 3600 / at.period_s), tries)
            if not node.alarmed(before, after)
        ]
        for node in nodes
    ]
    scale, cells, rng = np.array(at.schema.scaling.scale), [], np.random.default_rng(0)
    ages = np.arange(1, within + 1) / within
    with click.progressbar(range(len(nodes[0].drill)), label=f"{at.name} faults") as bar:
        for channel in bar:
            for kind in kinds:
                smallest = float(np.median([n.drill.smallest(kind, channel) for n in nodes]))
                if not np.isfinite(smallest):
                    smallest = 16 * float(nodes[0].drill.deviations[channel])
                for times in TIMES:
                    size = times * smallest
                    predicted = [n.drill.share(kind, channel, size) for n in nodes]
                    found = []
                    for node, pairs in zip(nodes, fresh, strict=True):
                        for before, after in pairs:
                            for sign in (1, -1):
                                spoilt = after.copy()
                                one = shape(kind, ages, rng.standard_normal(within))
                                spoilt[:, channel] += sign * size * scale[channel] * one
                                found.append(node.alarmed(before, spoilt))
                    cells.append(
                        Cell(
                            kind,
                            at.channels[channel].name,
                            size,
                            float(np.mean(predicted)),
                            float(np.mean(found)),
                        )
                    )
    return cells


def table(name: str, cells: list[Cell]) -> Table:
    """Return the differences in points, by kind and size."""
    rows: list[tuple[object, ...]] = []
    for kind in dict.fromkeys(cell.kind for cell in cells):
        of = [cell for cell in cells if cell.kind == kind]
        for i, times in enumerate(TIMES):
            at = of[i :: len(TIMES)]
            apart = 100 * np.array([cell.found - cell.predicted for cell in at])
            rows.append(
                (
                    kind,
                    times,
                    len(at),
                    float(np.mean([cell.predicted for cell in at])),
                    float(np.mean([cell.found for cell in at])),
                    float(apart.mean()),
                    float(np.abs(apart).mean()),
                    float(np.abs(apart).max()),
                    float((np.abs(apart) <= 10).mean()),
                )
            )
    return Table(
        f"{name}: detection predicted by drills, and found later (differences in points)",
        {"kind": "", "size": ".2f", "channels": "d", "predicted": ".2f", "found": ".2f",
         "mean": "+.1f", "mean size": ".1f", "largest": ".1f", "within 10": ".0%"},
        rows,
    )  # fmt: skip


@click.command(help=__doc__)
@click.option("--plant", "names", type=click.Choice([*PLANTS]), multiple=True)
@click.option("--nodes", default=8, show_default=True)
@click.option("--days", default=10, show_default=True, help="Before the drill.")
@click.option("--rows", default=256, show_default=True, help="Newest rows for the drill.")
@click.option("--tries", default=16, show_default=True, help="At each node, with both signs.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, default=("bias",))
@click.option("--at-most", default=1.0, show_default=True, help="False alarms a node and week.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, every channel and size in it.")
def main(
    names: tuple[str, ...],
    nodes: int,
    days: int,
    rows: int,
    tries: int,
    kinds: tuple[str, ...],
    at_most: float,
    seed: int,
    as_json: bool,
) -> None:
    """Run it, and print the tables."""
    settings, printed, reported = AlarmSettings(at_most_per_s=at_most / WEEK_S), [], {}
    for name in names or PLANTS:
        at = plant(name, seed=seed, nodes=nodes, days=days + 3, faults=())
        cells = drilled(at, settings, 24 * days, rows, tries, kinds)
        printed.append(table(name, cells))
        reported[name] = [vars(cell) for cell in cells]
    if as_json:
        click.echo(json.dumps(reported))
    else:
        click.echo("\n\n".join(each.markdown for each in printed))


if __name__ == "__main__":
    main()
