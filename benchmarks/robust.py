"""Robust merging: what liars do to a model, with it and without.

The fleet has 60 nodes of 100 to 400 readings, d = 30 columns and r = 4 directions, with variances
4, 3, 2, 1 over noise of 0.04 each (tests/support/liars.py has the attacks; liars of one attack
collude). Angles are the largest principal angle between the model and the model of the honest
nodes alone, in degrees, for the worst of all seeds.
"""

import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import measure
from page import page
from report import Table
from submerge import Subspace
from submerge.robust.outliers import ENERGY, WEIGHT, Screening, screen

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import liars, oracle

NUMBERS = (0, 5, 10, 15, 20, 25)
ASKED = 20
"""Liars that have to be borne, for 3 degrees; for nobody, 0.1."""

Parts = dict[str, Subspace]


def applied(parts: Parts, verdict: Screening) -> Parts:
    """Return what is left to merge."""
    return {
        name: part.faded(verdict.factors.get(name, 1.0))
        for name, part in parts.items()
        if name not in verdict.outliers
    }


def attacks(quick: bool) -> list[Table]:
    """Let a number of nodes lie, in every way."""
    seeds = range(2 if quick else 20)
    every = liars.NAMED | liars.OTHERS | liars.CLEVER
    worst = {
        (how, number): np.array([0.0, 0.0, np.inf, 0.0]) for how in every for number in NUMBERS
    }
    for seed in measure.progress(seeds, "robust: attacks"):
        fleet = liars.fleet(seed)
        for how, attack in every.items():
            for number in NUMBERS:
                parts, who = fleet.lying(attack, number, seed)
                honest = liars.merged({k: p for k, p in parts.items() if k not in who})
                verdict = screen(parts, rank=liars.RANK)
                robust = liars.merged(applied(parts, verdict))
                figures = worst[how, number]
                figures[0] = max(figures[0], oracle.angle(honest, liars.merged(parts)))
                figures[1] = max(figures[1], oracle.angle(honest, robust))
                figures[2] = min(figures[2], len(who & verdict.outliers.keys()))
                figures[3] = max(figures[3], len(verdict.outliers.keys() - who))

    def table(title: str, cell: Callable[[np.ndarray], object], spec: str, notes: str) -> Table:
        columns = {"attack": ""} | {f"{number} liars": spec for number in NUMBERS}
        rows = [(how, *(cell(worst[how, number]) for number in NUMBERS)) for how in every]
        return Table(title, columns, rows, notes)

    asked = max(worst[how, n][1] for how in liars.NAMED for n in NUMBERS if n <= ASKED)
    return [
        table("Plain merge, degrees", lambda f: f[0], ".1f", ""),
        table(
            "Robust merge, degrees",
            lambda f: f[1],
            ".2f",
            f"Asked of the first three: at most 3 up to {ASKED} liars (worst: {asked:.2f}), and at"
            " most 0.1 without any. The last five stay below every limit; the next table but one is"
            " the worst of that kind.",
        ),
        table(
            "Who was left out: liars at least, and honest nodes at most",
            lambda f: f"{f[2]:.0f}, {f[3]:.0f}",
            "",
            f"Of {len(seeds)} seeds.",
        ),
    ]


def honest(quick: bool) -> Table:
    """Measure what it costs where nobody lies."""
    kinds: dict[str, dict[str, object]] = {
        "alike: 100 to 400 readings": {},
        "50 to 1000 readings": {"rows": _between(50, 1000)},
        "5 to 5000 readings": {"rows": _between(5, 5000)},
        "2 to 20 readings": {"rows": _between(2, 20)},
        "noise as large as the weakest direction": {"noise": 1.0},
        "variances 1, 1/2, ... 1/30: no gap": {"variances": 1 / np.arange(1, 31), "noise": 0.0},
        "no noise at all": {"noise": 0.0},
        "amplitudes that differ: log sd 0.7": {"louder": 0.7},
        "directions that differ by some 15 degrees": {"turned": 0.25},
        "directions that differ by some 35 degrees": {"turned": 0.6},
        "means that differ by some 3 deviations": {"shifted": 3 * liars.SIZE},
        "three nodes, 20 to 300 readings": {"nodes": 3, "rows": _between(20, 300)},
    }
    rows = []
    for kind, how in measure.progress(kinds.items(), "robust: honest"):
        found = []
        for seed in range(2 if quick else 20):
            fleet = liars.fleet(seed, **how)  # type: ignore[arg-type]
            verdict = screen(fleet.parts, rank=liars.RANK)
            plain = liars.merged(fleet.parts)
            robust = liars.merged(applied(fleet.parts, verdict))
            true = fleet.true[:, : liars.RANK]
            angles = [oracle.angle(*pair) for pair in ((plain, robust), (true, plain))]
            angles.append(oracle.angle(true, robust))
            found.append((*angles, len(verdict.factors), len(verdict.outliers)))
        worst = np.max(found, axis=0)
        rows.append((kind, *map(float, worst[:3]), int(worst[3]), int(worst[4])))
    return Table(
        "No node lies",
        {
            "fleet": "",
            "robust to plain": ".2f",
            "plain to the truth": ".2f",
            "robust to the truth": ".2f",
            "capped": "d",
            "left out": "d",
        },
        rows,
        "Angles in degrees and numbers of nodes, for the worst of the seeds. Caps:"
        f" {WEIGHT:g} times the usual weight, {ENERGY:g} times the usual energy per sample.",
    )


def clever(quick: bool) -> Table:
    """Find what liars can do who know every limit: turn by as much as is not seen."""
    rows = []
    fleets = [liars.fleet(seed) for seed in range(1 if quick else 5)]
    for number in measure.progress(NUMBERS[1:], "robust: clever"):
        best = {1.0: (0.0, 0.0), 3.0: (0.0, 0.0)}
        for times, degrees in itertools.product(best, range(2, 45, 2 if quick else 1)):
            worst = max(_turned(fleet, number, degrees, times) for fleet in fleets)
            best[times] = max(best[times], (worst, float(degrees)))
        rows.append((number, *best[1.0], *best[3.0]))
    return Table(
        "Liars who know the limits: how far they turn the model, degrees",
        {
            "liars": "d",
            "in bounds": ".1f",
            "turned by": ".0f",
            "at the caps": ".1f",
            "turned by ": ".0f",
        },
        rows,
        "All four directions are turned alike, by the angle that does most harm.",
    )


def _turned(fleet: liars.Fleet, number: int, degrees: float, times: float) -> float:
    """The model's angle, where some turn their directions, and claim `times` as much of both."""
    basis = liars.turned(fleet, degrees)
    parts, who = fleet.lying(
        lambda part, *_: liars.message(part, basis, times * liars.VARIANCES, times=times), number
    )
    alone = liars.merged({name: part for name, part in parts.items() if name not in who})
    return oracle.angle(alone, liars.merged(applied(parts, screen(parts, rank=liars.RANK))))


def small(quick: bool) -> Table:
    """Look at fleets of few nodes: one third lie, or nobody."""
    rows = []
    fleets = 20 if quick else 200
    for nodes in measure.progress((3, 4, 5, 8, 12, 20), "robust: small"):
        number, found, wrong, alone = max(1, (nodes - 1) // 3), 0, 0, 0
        for seed in range(fleets):
            fleet = liars.fleet(seed, _between(20, 300), nodes=nodes)
            alone += bool(screen(fleet.parts, rank=liars.RANK).outliers)
            parts, who = fleet.lying(liars.NAMED["huge sigma"], number, seed)
            outliers = screen(parts, rank=liars.RANK).outliers.keys()
            found, wrong = found + (who <= outliers), wrong + bool(outliers - who)
        rows.append((nodes, number, found, wrong, alone))
    return Table(
        f"Small fleets of 20 to 300 readings a node: of {fleets}, in how many",
        {
            "nodes": "d",
            "liars, huge sigma": "d",
            "all were found": "d",
            "others left out": "d",
            "left out where no node lies": "d",
        },
        rows,
    )


def chance(quick: bool) -> Table:
    """Draw honest fleets of all sorts, and count those that lose somebody."""
    fleets, rng, out = 200 if quick else 4000, np.random.default_rng(0), [0, 0, 0]
    for _ in measure.progress(range(fleets), "robust: chance"):
        rows = [(2, 20), (20, 300), (300, 301), (5, 2000)][rng.integers(4)]
        fleet = liars.fleet(
            int(rng.integers(2**30)),
            _between(*rows),
            nodes=int(rng.integers(3, 26)),
            noise=float(rng.choice([0.0, 0.05, 0.3, 1.0])),
            turned=float(rng.choice([0.0, 0.3])),
            shifted=float(rng.choice([0.0, 10.0])),
        )
        out[min(2, len(screen(fleet.parts, rank=liars.RANK).outliers))] += 1
    return Table(
        "Honest fleets by chance, and how many nodes they lose",
        {"fleets": "d", "none": "d", "one": "d", "more": "d"},
        [(fleets, *out)],
        "Fleets of 3 to 25 nodes; 2 to 20, 20 to 300, 300, or 5 to 2000 readings each; noise of"
        " 0 to 1; directions that differ by some 17 degrees, or not; means that differ by 3"
        " deviations, or not.",
    )


def _between(least: int, most: int) -> Callable[[np.random.Generator], int]:
    """So many readings, drawn evenly by their logarithm."""
    return lambda rng: int(np.exp(rng.uniform(np.log(least), np.log(most))))


def times(quick: bool) -> Table:
    """Measure what judging takes."""
    rows = []
    for n, dim, rank in ((60, 30, 4), (1000, 48, 10), (1000, 512, 10)):
        fleet = liars.fleet(
            0,
            lambda _: 100,
            nodes=min(n, 100),
            dim=dim,
            variances=10 * 0.5 ** np.arange(rank),
            noise=0.05,
        )
        some = list(fleet.parts.values())
        parts = {f"node-{i}": some[i % len(some)] for i in range(n)}

        def run(parts: Parts = parts, rank: int = rank) -> float:
            start = time.perf_counter()
            screen(parts, rank=rank)
            return time.perf_counter() - start

        timing = measure.repeated(run, budget_s=0.1 if quick else 3.0)
        rows.append((n, dim, rank, timing.least * 1e3))
    return Table(
        "Time of the comparison",
        {"nodes": "d", "d": "d", "r": "d", "ms": ".0f"},
        rows,
        "The shortest of some runs, for all nodes, after one of them has changed; one thread.",
    )


def room(quick: bool) -> list[Table]:
    """Measure all."""
    return [
        *attacks(quick),
        clever(quick),
        small(quick),
        honest(quick),
        chance(quick),
        times(quick),
    ]


if __name__ == "__main__":
    page(room)
