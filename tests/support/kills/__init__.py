"""Kills: real processes are killed as by a power cut, and every reading is counted once.

A fleet of a root, two aggregators and four clients reads, reports and merges. One after the
other, and often several at a time, its processes die by `kill -9`: at random moments, and at
those that matter (`support.failing`). Each is started again on what its disk holds. In the
end the fleet comes to rest and stops, and its stores are held against what was read and what
was acknowledged (`judging`).

    print(run(OverGrpc.on_free_ports(), seed=1, kills=20).text())
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from support.kills.configs import OverGrpc, OverMqtt, Way
from support.kills.fleet import Fleet
from support.kills.judging import Findings, complaints, judge
from support.kills.plan import (
    AGGREGATORS,
    ANYWHERE,
    AS_IT_STARTS,
    CLIENTS,
    Kill,
    most_lives,
    plan,
)
from support.programs import Programs

__all__ = ["OverGrpc", "OverMqtt", "Result", "Way", "run"]

ROWS_PER_S = 200.0

NODES = (*AGGREGATORS, *CLIENTS)


class Death(NamedTuple):
    """One `kill -9` that was done.

    where : the point, or ANYWHERE if it did not come there in time
    recovered_s : None if it was killed again before
    """

    victim: str
    where: str
    recovered_s: float | None = None


@dataclass
class Result:
    """What a run has shown.

    Attributes
    ----------
    findings : Findings
    deaths : list of Death
    """

    findings: Findings = field(default_factory=Findings)
    deaths: list[Death] = field(default_factory=list)

    def text(self) -> str:
        """Say it, a line each."""
        found = self.findings
        where = sorted(Counter(death.where for death in self.deaths).items())
        seconds = {
            kind: [each.recovered_s for each in self.deaths if each.victim in nodes]
            for kind, nodes in (("clients", CLIENTS), ("aggregators", AGGREGATORS), ("all", NODES))
        }
        gone = found.fed - found.counted
        return "\n".join(
            [
                f"kills: {len(self.deaths)} ({', '.join(f'{n} {name}' for name, n in where)})",
                f"readings fed: {found.fed}, acknowledged: {found.acknowledged}",
                f"readings counted: {found.counted}, gone with their process: {gone}",
                f"acknowledged but missing: {len(found.missing)}",
                f"counted twice: {len(found.twice)}",
                f"other violations: {len(found.other)}",
                *(_recovery(kind, each) for kind, each in seconds.items()),
                *found.all,
            ]
        )


def run(way: Way, *, seed: int, kills: int, tell: Callable[[str], None] = lambda _: None) -> Result:
    """Run a fleet, kill, let it come to rest, and judge.

    Parameters
    ----------
    way : Way
    seed : int
        Of the plan.
    kills : int
    tell : callable
        Told of each kill and each recovery as it comes.
    """
    plans, result = plan(seed, kills), Result()
    with Programs() as programs:
        fleet = Fleet(programs, way, most_lives=most_lives(plans), rows_per_s=ROWS_PER_S)
        wrong: list[str] = []
        try:
            result.deaths = _lived(fleet, plans, tell)
            fleet.settle()
            wrong += fleet.end()
        except AssertionError as error:
            wrong.append(str(error))
        for _, program in fleet.all:
            program.kill()
        result.findings = judge(fleet.stores, fleet.incarnations, fleet.most_lives)
        result.findings.other += wrong + complaints(fleet.all)
    return result


def _lived(fleet: Fleet, plans: list[Kill], tell: Callable[[str], None]) -> list[Death]:
    """Start all; then kill and start again, as planned, several at a time."""
    ends = {node: [each for each in plans if each.victim == node] for node in NODES}
    for node in NODES:
        _start(fleet, node, ends[node])
    for node in NODES:
        fleet.recovered(node)
    struck: list[Future[list[Death]]] = []
    newest: dict[str, Future[list[Death]]] = {}
    with ThreadPoolExecutor(len(NODES)) as hands:
        for each in plans:
            time.sleep(each.gap_s)
            if each.victim in newest:
                newest[each.victim].result()
            future = hands.submit(_struck, fleet, each, ends[each.victim], tell)
            newest[each.victim] = future
            struck.append(future)
    return [death for future in struck for death in future.result()]


def _struck(fleet: Fleet, each: Kill, ends: list[Kill], tell: Callable[[str], None]) -> list[Death]:
    """Kill one, start it again, and time how long it is of no use."""
    ends.pop(0)
    deaths = [Death(each.victim, fleet.strike(each.victim, each.point))]
    tell(f"{each.victim} died {deaths[0].where}")
    time.sleep(each.down_s)
    _start(fleet, each.victim, ends)
    if each.again_s is not None:
        time.sleep(each.again_s)
        fleet.strike(each.victim, ANYWHERE)
        deaths.append(Death(each.victim, AS_IT_STARTS))
        tell(f"{each.victim} died {AS_IT_STARTS}")
        _start(fleet, each.victim, ends)
    seconds = fleet.recovered(each.victim)
    tell(f"{each.victim} is back after {seconds:.2f} s")
    deaths[-1] = deaths[-1]._replace(recovered_s=seconds)
    return deaths


def _start(fleet: Fleet, node: str, ends: list[Kill]) -> None:
    """Start a node with the failpoint that is planned for its next end."""
    if ends:
        fleet.start(node, ends[0].point, ends[0].calls)
    else:
        fleet.start(node)


def _recovery(kind: str, times: Iterable[float | None]) -> str:
    seconds = [each for each in times if each is not None]
    p50, p99, most = np.percentile(seconds or [np.nan], (50, 99, 100))
    return (
        f"recovery of {kind}: p50 {p50:.2f} s, p99 {p99:.2f} s, max {most:.2f} s"
        f" ({len(seconds)} times)"
    )
