"""What children may say is answered above: bounds hold for the merge of all that is within them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from submerge.errors import PeerError
from submerge.jobs.envelopes import JobAsk, JobShare
from submerge.jobs.kind import JobKind, PhaseDown
from submerge.jobs.kinds import kind_of
from support.job_table import JobTable, job
from support.seeds import ALL

ROWS = 40
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "kmeans": ("kmeans", {"clusters": 2, "held_out": 0.2}),
    "cluster": ("cluster", {"clusters": 3, "features": 16, "held_out": 0.2, "sample": 40}),
    "moments": ("moments", {"held_out": 0.2}),
    "kpca": ("kpca", {"components": 2, "points": 9, "held_out": 0.2}),
    "kpca sketch": ("kpca", {"components": 2, "points": 9, "merge": "sketch"}),
    "kpca steep": ("kpca", {"components": 2, "points": 9, "kernel": "polynomial", "degree": 9}),
    "nystrom": ("nystrom", {"components": 2, "points": 9}),
    "landmarks": ("landmarks", {"landmarks": 9, "scale": True}),
}

Turn = tuple[PhaseDown, dict[str, np.ndarray]]


def rows_of(name: str) -> np.ndarray:
    return np.random.default_rng(ord(name)).normal(size=(ROWS, 2))


@cache
def turns_of(of: str) -> list[Turn]:
    """Return what one participant of a job was asked, and what it contributed."""
    name, settings = SETTINGS[of]
    table, found = JobTable({each: rows_of(each) for each in "abcde"}, share_points=ROWS), []
    share_of = table.roles["a"]._share

    def look(part: Any, ask: JobAsk, *rest: Any) -> JobShare:
        share: JobShare = share_of(part, ask, *rest)
        if share.arrays:
            found.append((ask.down, dict(share.arrays)))
        return share

    table.roles["a"]._share = look
    outcome = table.run(job(name, settings=settings))
    assert outcome.answer is not None, outcome.failure
    return found


def parent_of(of: str, turn: int) -> JobKind:
    """Return the kind at a parent that has heard all asks up to a turn's."""
    name, settings = SETTINGS[of]
    kind = kind_of(job(name, settings=settings))
    for down, _ in turns_of(of)[: turn + 1]:
        kind.check_down(down)
    return kind


def largest(fits: Callable[[float], bool], size: float) -> float:
    """Return the largest number up to `size` for which it fits; 0 if none is found."""
    if fits(size):
        return size
    low, high = -300.0, np.log10(size)
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(10.0**middle) else (low, middle)
    return 10.0**low if fits(10.0**low) else 0.0


def extreme(kind: JobKind, turn: Turn, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a share that is as large as one client's may be: array by array, in any order."""
    down, honest = turn
    up = dict(honest)
    first = [name for name in up if name in ("count", "counts", "sums") and up[name].size < 5]
    for name in (*first, *rng.permutation(sorted(up.keys() - set(first)))):
        array = up[name]
        if array.dtype != np.float64 or not array.size:
            continue
        shapes = (np.ones(array.shape), rng.choice([-1.0, 1.0], array.shape), np.sign(array))
        shapes += (array / max(1e-300, np.abs(array).max()), rng.normal(size=array.shape))
        one = np.zeros(array.shape)
        one.flat[rng.integers(array.size)] = 1.0
        for shape in (*shapes, one)[rng.integers(6) :]:
            at = partial(_sized, up, name, shape)
            size = largest(lambda size, at=at: _fits(kind, down, at(size)), 1e100)
            if size:
                up = at(size)
                break
    return up


def _sized(up: dict[str, Any], name: str, shape: np.ndarray, size: float) -> dict[str, Any]:
    whole = np.rint if "count" in name and size < 2.0**53 else np.asarray
    return {**up, name: whole(shape * size)}


def _fits(kind: JobKind, down: PhaseDown, up: dict[str, Any], clients: int = 1) -> bool:
    try:
        with np.errstate(all="ignore"):
            kind.check_up(down, up, clients)
    except PeerError:
        return False
    return True


@pytest.mark.parametrize("of", SETTINGS)
@pytest.mark.parametrize("seed", range(20 if ALL else 3))
def test_what_a_parent_takes_its_parent_takes_as_well(of, seed):
    """Two liars below an aggregator cost their whole site: 1e100 passed below, 2e100 not above."""
    rng = np.random.default_rng(seed)
    for number, turn in enumerate(turns_of(of)):
        down, honest = turn
        if down.phase.startswith("points"):
            continue  # rows are put together, and none of them is changed
        kind = parent_of(of, number)
        ups = [honest, *(extreme(kind, turn, rng) for _ in range(3))]
        with np.errstate(all="ignore"):
            sites = [kind.merge(down, ups[:2]), kind.merge(down, ups[2:])]
            for site in sites:
                kind.check_up(down, site, 2)
            kind.check_up(down, kind.merge(down, sites), 4)


@pytest.mark.parametrize("of", SETTINGS)
@pytest.mark.parametrize("seed", range(20 if ALL else 2))
@pytest.mark.slow
def test_nobody_is_evicted_for_answering_what_the_largest_lie_leads_to(of, seed):
    """Its sums count, or it is the one that leaves; what goes down, the honest can answer."""
    name, settings = SETTINGS[of]
    for phase in range(len(turns_of(of))):
        # Of five and more a parent finds the one that moves a scale; of fewer their site goes.
        parts = {"hall": {each: rows_of(each) for each in "abcde"}, "f": rows_of("f")}
        table, rng = JobTable(parts, share_points=ROWS), np.random.default_rng(seed)
        share_of, heard = table.roles["a"]._share, list[PhaseDown]()

        def lies(part: Any, ask: JobAsk, *more: Any) -> JobShare:
            share: JobShare = share_of(part, ask, *more)  # noqa: B023
            if not share.arrays:
                return share
            heard.append(ask.down)  # noqa: B023
            if len(heard) != phase + 1 or ask.phase.startswith("points"):  # noqa: B023
                return share
            kind = kind_of(ask.job)
            for down in heard:  # noqa: B023
                kind.check_down(down)
            up = extreme(kind, (ask.down, dict(share.arrays)), rng)  # noqa: B023
            return JobShare(share.place, share.left, up)

        table.roles["a"]._share = lies
        outcome = table.run(job(name, settings=settings))

        assert outcome.answer is not None, (phase, outcome.failure)
        assert {*outcome.left} <= {"a"}, (phase, outcome.left)
        assert all(np.isfinite(array).all() for array in outcome.answer.values())
