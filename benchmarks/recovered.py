"""What others can compute of single rows.

*parent*: from successive reports of a client; *orders*: a parent that gives an order after each
row; *members*: anybody in the group, from successive models; *before*: without floors. A row counts
as recovered if two successive states differ by the weight of one row, and the difference is that
row to .001 of the spread. By jobs: rows that follow from sums of `moments` and `kmeans`, with any
shares and centers. 12 channels, 60 rows of each client, a report every 300 s, a model every 60 s,
and one mean for all.
"""

import heapq
import itertools

import numpy as np

import measure
from page import page
from report import Table
from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.jobs.points import split
from submerge.jobs.row_groups import RowSets
from submerge.protocol.machine import (
    Now,
    Publish,
    Reading,
    Received,
    Send,
    SetDesired,
    Start,
    Tick,
)
from submerge.protocol.messages import Model, Report
from submerge.protocol.settings import AggregatorSettings, ClientSettings
from submerge.protocol.summaries import Subspaces

EPOCH, GROUP, ROOT, D = 1_700_000_000.0, "pumps", "root", 12
ROWS = 60  # of each client

Floors = tuple[int, bool | None]
WITHOUT, WITH = (1, False), (8, None)


class Fleet:
    """A root and its clients, and what they say: states by node, (weight, mean)."""

    def __init__(self, clients: int, every_s: float, floors: Floors, *, orders: bool) -> None:
        together, floor = floors
        schema, summaries = Schema.anonymous(D), Subspaces(4)
        plan = GroupPlan(summaries, schema, min_rows=40, floor=floor)
        rng = np.random.default_rng(1)
        self.nodes: dict[str, ClientNode | AggregatorNode] = {
            ROOT: AggregatorNode(AggregatorSettings(ROOT, None), {GROUP: plan}, rng)
        }
        for i in range(clients):
            settings = ClientSettings(f"c{i}", GROUP, ROOT, together=together, alarms=None)
            self.nodes[f"c{i}"] = ClientNode(settings, schema, summaries, rng)
        self.orders, self.now = orders, Now(0.0, EPOCH)
        self.rows = rng.normal(size=(clients, ROWS, D)) @ rng.normal(size=(D, D))
        self.told: dict[str, list[tuple[float, np.ndarray]]] = {name: [] for name in self.nodes}
        self._do([(name, Start({})) for name in self.nodes])
        self._run(every_s)

    def _run(self, every_s: float) -> None:
        clients = list(self.nodes)[1:]
        due = [(every_s * (1 + i / len(clients)), i, 0) for i in range(len(clients))]
        while due:
            at, i, row = heapq.heappop(due)
            self._wait(at)
            self._step(clients[i], Reading(self.rows[i, row][None]))
            if self.orders:
                self._step(ROOT, SetDesired(GROUP, clients[i], paused=False))
                self._step(ROOT, SetDesired(GROUP, clients[i], drill=True))
            if row + 1 < ROWS:
                heapq.heappush(due, (at + every_s, i, row + 1))

    def _wait(self, until: float) -> None:
        while True:
            wakes, name = min((node.wakes_at, name) for name, node in self.nodes.items())
            if wakes > until:
                break
            at = max(self.now.steady, wakes)
            self.now = Now(at, EPOCH + at)
            self._step(name, Tick())
        self.now = Now(until, EPOCH + until)

    def _step(self, name: str, event: object) -> None:
        self._do([(name, event)])

    def _do(self, todo: list[tuple[str, object]]) -> None:
        while todo:
            name, event = todo.pop(0)
            for effect in self.nodes[name].step(event, self.now):
                match effect:
                    case Send(to, message):
                        self._note(name, message)
                        todo.append((to, Received(message)))
                    case Publish(message):
                        self._note(name, message)
                        todo += [(each, Received(message)) for each in self.nodes if each != ROOT]

    def _note(self, name: str, message: object) -> None:
        if isinstance(message, Report | Model) and message.summary is not None:
            piece = message.summary.pieces[0]
            told = self.told[name if isinstance(message, Report) else ROOT]
            if not told or told[-1][0] != piece.weight:
                told.append((piece.weight, piece.mean))


def recovered(fleet: Fleet, names: list[str]) -> int:
    """Return how many rows are the difference of two successive states."""
    rows = fleet.rows.reshape(-1, D)
    spread = rows.std(axis=0)
    found = set[int]()
    for name in names:
        for (n, mean), (m, later) in itertools.pairwise(fleet.told[name]):
            if round(m - n) == 1:
                off = np.abs((m * later - n * mean - rows) / spread).max(axis=1)
                found |= {*np.flatnonzero(off < 1e-3).tolist()}
    return len(found)


def by_jobs(jobs: int) -> tuple[int, int]:
    """Return the rows that follow from sums of jobs with any shares and centers, and all rows."""
    rng = np.random.default_rng(2)
    sets, seen = RowSets(64, 1, rng), 0
    sums = set[tuple[int, ...]]()
    for _ in range(jobs):
        new = int(rng.integers(0, 12))
        sets.add(np.arange(seen, seen + new, dtype=float)[:, None])
        seen += new
        rows, order, _ = sets.draw(8)
        points = split(rows, {"held_out": float(rng.uniform(0, 0.9))}, order)
        told = (points.rows, points.groups), (points.held_out, points.groups_out)
        for part, groups in told:
            sums |= {tuple(part[groups == i, 0].astype(int)) for i in {*groups.tolist()}}
    members = np.array([np.bincount(each, minlength=seen) for each in sorted(sums)], dtype=float)
    _, sigma, vt = np.linalg.svd(members, full_matrices=False)
    span = vt[sigma > 1e-9 * sigma[0]]
    # A row follows if its own sum is a combination of those that were told.
    alone = np.isclose(np.square(span).sum(axis=0), 1.0)
    return int(alone.sum()), seen


WAYS = ("parent", "orders", "members")


def room(quick: bool) -> list[Table]:
    """Run every fleet without floors and with them; `quick`: four of them."""
    sizes = [(n, every) for n in (1, 3, 10, 40) for every in (30, 60, 300, 600)]
    rows = []
    for clients, every_s in measure.progress(sizes[::5] if quick else sizes, "fleets"):
        found: list[int | None] = []
        for floors in (WITHOUT, WITH):
            plain = Fleet(clients, every_s, floors, orders=False)
            names = [name for name in plain.nodes if name != ROOT]
            ordered = Fleet(clients, every_s, floors, orders=True) if clients <= 3 else None
            by_orders = None if ordered is None else recovered(ordered, names)
            found += [recovered(plain, names), by_orders, recovered(plain, [ROOT])]
        rows.append((clients, every_s, clients * ROWS, *found))
    counts = {"clients": "d", "seconds a row": "d", "rows": ",d"}
    counts |= {f"{way}{when}": ",d" for when in (", before", "") for way in WAYS}
    jobs = {"jobs": "d", "rows that came": ",d", "rows recovered": "d"}
    alone, came = by_jobs(400)
    return [Table("Rows recovered", counts, rows), Table("By jobs", jobs, [(400, came, alone)])]


if __name__ == "__main__":
    page(room)
