"""JobPlan: a simulated fleet, the jobs that its root opens, and the failures meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.jobs.job import Job
from submerge.jobs.masks import FEWEST_NODES
from submerge_lab.simulator.faults import NETWORK, Faults
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.plan import Plan

FINGERPRINT = "5b" * 32
"""Of the rows of all clients."""

WIDTH, BANK, GROWS_EVERY_S = 3, 400, 20.0
"""Channels; most rows of a client; how often it has one more."""

FIRST_ROWS = 8
"""Rows that a client has from the beginning."""

MOST = Faults(
    loss=0.3,
    duplicate=0.3,
    reorder=0.1,
    delay_s=2.0,
    broker=1.0,
    partition=12.0,
    outage_s=120.0,
    slow=3.0,
    slow_s=40.0,
    kill=15.0,
    down_s=200.0,
    kill_between=0.002,
    failed_write=0.05,
    move=6.0,
)
"""Highest rates that jobs-1 draws: a job takes a minute or two, and has to meet some of them."""

LENGTHS = ("delay_s", "outage_s", "slow_s", "down_s")
KILLS = ("kill", "down_s", "kill_between", "failed_write")


def _draw(rng: np.random.Generator, names: tuple[str, ...]) -> Faults:
    """Draw each rate: with one third each absent, up to a fifth of `MOST`, or up to all of it."""
    drawn: dict[str, float] = {}
    for name in names:
        kind = rng.integers(3)
        share = 0.0 if kind == 0 else rng.random() * (0.2 if kind == 1 else 1.0)
        share = 0.05 + rng.random() if name in LENGTHS else share
        drawn[name] = share * float(getattr(MOST, name))
    return Faults(**drawn)


_NETWORK = tuple(name for name in NETWORK if name not in ("redeliver", "late"))

JOB_PRESETS: Mapping[str, Callable[[np.random.Generator], Faults]] = {
    "none": lambda _: Faults(),
    "network": lambda rng: _draw(rng, _NETWORK),
    "kills": lambda rng: _draw(rng, (*_NETWORK, *KILLS)),
    "jobs-1": lambda rng: _draw(rng, (*_NETWORK, *KILLS, "move")),
}


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A fleet and its jobs.

    nodes, fan_in, depth : As in `Plan`; a depth of 0 is drawn for each seed, 1 to 3.
    hours : Time with failures, in which `jobs` jobs begin; two more begin when all is healed, the
        second while messages are lost.
    beside : The fleet streams meanwhile, and its invariants are checked as well.
    """

    nodes: int = 8
    fan_in: int = 2
    depth: int = 0
    hours: float = 2.0
    jobs: int = 3
    beside: bool = False
    faults: str = "jobs-1"

    def fleet(self, faults: Faults, rng: np.random.Generator) -> Plan:
        """Return the plan of the fleet itself."""
        depth = self.depth or int(rng.integers(1, 4))
        return Plan(self.nodes, self.fan_in, depth, self.hours, faults=faults)

    def draw_faults(self, rng: np.random.Generator) -> Faults:
        """Return the rates of one seed."""
        return JOB_PRESETS[self.faults](rng)


def draw_job(name: str, rng: np.random.Generator, nodes: int) -> Job:
    """Return a job of any kind, size and strictness, in pieces small or large."""
    kinds, chances = (
        ("kmeans", "moments", "cluster", "kpca", "nystrom"),
        (0.35, 0.15, 0.15, 0.25, 0.1),
    )
    kind = str(rng.choice(kinds, p=chances))
    settings: dict[str, Any] = {"seed": int(rng.integers(2**31))}
    if rng.random() < 0.5:
        settings["held_out"] = float(rng.choice([0.1, 0.3]))
    if kind == "kmeans":
        settings |= {"clusters": int(rng.integers(1, 5)), "steps": 6, "sample": 64}
    elif kind in ("kpca", "nystrom"):
        settings |= {"clusters": settings["seed"] % 3} | _draw_kernel(kind, rng)
        if kind == "nystrom" and settings["seed"] % 2:
            kind, settings = "landmarks", _of_landmarks(settings)
    elif kind == "cluster":
        settings |= {"clusters": int(rng.integers(1, 4)), "steps": 4, "features": 32}
        settings |= {"gamma": 0.1} if rng.random() < 0.3 else {}
    masked = kind in ("kmeans", "moments") and settings["seed"] % 3 == 0 and nodes >= FEWEST_NODES
    settings |= {"masked": True} if masked else {}
    return Job(
        *(name, kind, settings, GROUP, FINGERPRINT, WIDTH),
        open_s=float(rng.choice([60.0, 120.0])),
        round_s=float(rng.choice([40.0, 120.0, 300.0])),
        job_s=float(rng.choice([900.0, 2400.0])),
        exact=bool(rng.random() < 0.7) or masked,
        attempts=int(rng.choice([1, 3, 8])),
        least=int(rng.choice([0, 1, 3])),
        piece_bytes=int(rng.choice([256, 1024, 65536])),
    )


def _draw_kernel(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return settings of kernel PCA, with all kinds of rounds."""
    k = int(rng.integers(1, 4))
    settings: dict[str, Any] = {"components": k, "points": k + int(rng.integers(12))}
    if rng.random() < 0.5:
        settings |= {"kernel": "polynomial", "degree": 2, "gamma": 0.1}
    if rng.random() < 0.5:
        settings["center"] = False
    if kind == "kpca":
        settings |= {
            "sample": str(rng.choice(["residual", "residual", "leverage", "uniform"])),
            "merge": str(rng.choice(["ranks", "ranks", "sketch", "exact"])),
            "features": 64,
            "sketch": 8,
        }
    return settings


def _of_landmarks(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a choice of landmarks in place of those of NY-KPCA."""
    known = ("seed", "kernel", "degree", "gamma")
    kept = {name: settings[name] for name in known if name in settings}
    return kept | {"landmarks": settings["points"], "scale": settings["seed"] % 4 == 1}


def bank_of(name: str, seed: int) -> Array:
    """Return all rows (n, width) that a client will ever have."""
    rng = np.random.Generator(np.random.PCG64([seed, *name.encode()]))
    clouds = 5.0 * rng.integers(3, size=BANK)[:, None]
    return np.asarray(rng.standard_normal((BANK, WIDTH)) + clouds)


def rows_at(bank: Array, time: float) -> Array:
    """Return the rows that a client has at a time."""
    return bank[: min(len(bank), FIRST_ROWS + int(time / GROWS_EVERY_S))]
