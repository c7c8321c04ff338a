"""One hostile participant among five costs a job that one, whatever it sends, in every kind."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from submerge.errors import PeerError
from submerge.jobs import roster
from submerge.jobs.arrays import MAGIC, pack, unpack
from submerge.jobs.envelopes import JobShare
from submerge.jobs.job import JobOutcome
from submerge.jobs.local_run import run_here
from submerge.jobs.points import MOST_HELD
from submerge_client.config.client_config import MOST_JOB_ROWS
from support.job_table import JobTable, job
from support.seeds import ALL

HOSTILE = "e"
POINTS = 30

Change = Callable[[str, dict[str, np.ndarray]], dict[str, np.ndarray]]

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "kmeans": ("kmeans", {"clusters": 2, "held_out": 0.2}),
    "cluster": ("cluster", {"clusters": 2, "features": 16, "held_out": 0.2, "sample": 40}),
    "moments": ("moments", {"held_out": 0.2}),
    "kpca": ("kpca", {"components": 2, "points": 9, "held_out": 0.2}),
    "kpca sketch": ("kpca", {"components": 2, "points": 9, "merge": "sketch", "held_out": 0.2}),
    "kpca steep": ("kpca", {"components": 2, "points": 9, "kernel": "polynomial", "degree": 9}),
    "nystrom": ("nystrom", {"components": 2, "points": 9, "held_out": 0.2}),
    "landmarks": ("landmarks", {"landmarks": 9, "scale": True}),
}


def rows_of(name: str, n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(ord(name))
    return rng.normal(size=(n, 2)) + 4.0 * rng.integers(0, 2, size=(n, 1))


FLEETS: dict[str, Any] = {
    "below the root": {name: rows_of(name) for name in "abcde"},
    "below a relay": {"hall": {name: rows_of(name) for name in "abcde"}, "f": rows_of("f")},
}


def honest_of(parts: Any) -> Any:
    """Return a fleet without its hostile member."""
    return {
        name: honest_of(part) if isinstance(part, dict) else part
        for name, part in parts.items()
        if name != HOSTILE
    }


@dataclass(frozen=True, slots=True, eq=False)
class Raw(JobShare):
    """A share whose bytes are what a test says."""

    body: bytes = b""

    def pack(self) -> bytes:
        return self.body


def attacked(fleet: str, of: str, change: Change) -> JobOutcome:
    """Run a job in which the hostile member changes what it contributes, or its bytes."""
    kind, settings = SETTINGS[of]
    table = JobTable(FLEETS[fleet], share_points=POINTS)
    member = table.roles[HOSTILE]
    share_of = member._share

    def hostile(part: Any, ask: Any, now: Any, effects: Any) -> JobShare:
        share = share_of(part, ask, now, effects)
        if not share.arrays:
            return share
        changed: Any = change(ask.phase, dict(share.arrays))
        if isinstance(changed, bytes):
            return Raw(share.place, share.left, {}, changed)
        return JobShare(share.place, share.left, changed)

    member._share = hostile
    return table.run(job(kind, settings=settings))


def phases_of(of: str) -> list[tuple[str, str]]:
    """Return the phases of a job, and the arrays that come up in each."""
    found: dict[tuple[str, str], None] = {}

    def look(phase: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found.update(dict.fromkeys((phase, name) for name in arrays))
        return arrays

    outcome = attacked("below the root", of, look)
    assert outcome.answer is not None, outcome.failure
    return list(found)


def filled(value: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.full_like(array, value) if array.dtype.kind == "f" else array


def first(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def changed(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        with np.errstate(over="ignore"):
            array.flat[:1] = value if array.dtype.kind == "f" else min(2**63, abs(int(value)))
        return array

    return changed


ABSURD = {
    "inf": filled(np.inf),
    "nan": filled(np.nan),
    "1e99": filled(1e99),
    "-1e99": filled(-1e99),
    "first 1e99": first(1e99),
    "1e60": filled(1e60),
    "wrong type": lambda array: array.astype(np.uint64 if array.dtype.kind == "f" else np.float64),
    "wrong precision": lambda array: array.astype(
        np.float32 if array.dtype == np.float64 else np.float64
    ),
    "more axes": lambda array: array[None],
}
"""What no rows lead to: it has to be refused, by name."""

STRANGE = {
    "-1": filled(-1.0),
    "zero": filled(0.0),
    "denormal": filled(5e-324),
    "2^51": filled(2.0**51),
    "first 2^51": first(2.0**51),
    "first 1e30": first(1e30),
    "half": lambda array: (array * 0.5).astype(array.dtype),
    "of length 0": lambda array: array[:0],
    "twice": lambda array: np.concatenate([array, array]),
    "backwards": lambda array: array[::-1].copy(),
}
"""What rows may lead to in some array: it is refused, or the answer is one."""


def check(fleet: str, of: str, outcome: JobOutcome, *, refused: bool, what: object) -> None:
    """Hold that the honest have an answer, that it is theirs, and that no one else is blamed."""
    assert outcome.answer is not None, (what, outcome.failure)
    assert not outcome.declined
    assert {*outcome.left} <= {HOSTILE}, (what, outcome.left)
    assert all(np.isfinite(array).all() for array in outcome.answer.values()), what
    if HOSTILE not in outcome.left:
        assert not refused, what
        return
    for name, array in without_it(fleet, of).items():
        assert array.tobytes() == outcome.answer[name].tobytes(), (what, name)


@cache
def without_it(fleet: str, of: str) -> dict[str, np.ndarray]:
    """Return the answer of the honest alone."""
    kind, settings = SETTINGS[of]
    return run_here(kind, settings, honest_of(FLEETS[fleet]), share_points=POINTS)


def changes(fleet: str, of: str, table: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return changes of every array: a sixth of those there are, in `make soak` all.

    Below a relay, which checks as a root does, there are a third as many.
    """
    step = (1 if ALL else 6) * (3 if fleet == "below a relay" else 1)
    every = itertools.product(enumerate(phases_of(of)), enumerate(table))
    return [(*array, how) for (i, array), (j, how) in every if not (i + j) % step]


def tried(fleet: str, of: str, phase: str, name: str, how: str, table: dict[str, Any]) -> None:
    """Try one change."""
    changed = False

    def change(at: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        nonlocal changed
        if at != phase or name not in arrays:
            return arrays
        with np.errstate(over="ignore"):
            new = table[how](arrays[name])
        changed |= (new.shape, new.dtype) != (arrays[name].shape, arrays[name].dtype)
        changed |= new.tobytes() != arrays[name].tobytes()
        return {**arrays, name: new}

    outcome = attacked(fleet, of, change)
    # A key is large where a row counts little, and a steep kernel of rows is large.
    may_be = name == "keys" or (how == "1e60" and of == "kpca steep")
    refused = changed and table is ABSURD and not (may_be and "1e" in how)
    check(fleet, of, outcome, refused=refused, what=(phase, name, how))


@pytest.mark.parametrize("of", SETTINGS)
@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.slow
def test_what_no_rows_lead_to_costs_its_sender(fleet, of):
    """Every array of every phase: the answer of the others is that of a job without it."""
    for each in changes(fleet, of, ABSURD):
        tried(fleet, of, *each, ABSURD)


@pytest.mark.parametrize("of", SETTINGS)
@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.slow
def test_what_rows_might_lead_to_ends_no_job(fleet, of):
    """It is refused, or it counts; the honest stay, and have an answer of numbers."""
    for each in changes(fleet, of, STRANGE):
        tried(fleet, of, *each, STRANGE)


@pytest.mark.parametrize("fleet", FLEETS)
def test_sums_that_no_rows_have_cost_one_share(fleet):
    """They were refused at all others, whose squares about that mean were too large."""

    def change(_: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {**arrays, "sums": np.full(2, 1e99)} if "sums" in arrays else arrays

    outcome = attacked(fleet, "moments", change)
    check(fleet, "moments", outcome, refused=True, what="sums")
    assert "what it contributed was refused" == outcome.left[HOSTILE].why


def body_of(shape: list[int], place: Any) -> bytes:
    """Return a payload whose header lists an array of a shape, which has no numbers."""
    header = {"place": roster.written(place), "left": {}}
    content = {"arrays": [["counts", "f8", shape]], "header": header}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text


HUGE = ([2147483647, 0, 2147483647], [0, 2147483647, 2147483647], [2147483647, 2147483647, 0])


@pytest.mark.parametrize("shape", HUGE)
def test_a_shape_that_numpy_cannot_bear_is_a_peers_mistake(shape):
    with pytest.raises(PeerError):
        unpack(body_of(shape, None))


@pytest.mark.parametrize("fleet", FLEETS)
def test_a_shape_that_numpy_cannot_bear_costs_one_share(fleet):
    """It ended the job for everybody, and the others of that process."""
    table = JobTable(FLEETS[fleet])
    place = table.roles[HOSTILE].incarnation

    outcome = attacked(fleet, "moments", lambda *_: body_of(HUGE[0], place))
    check(fleet, "moments", outcome, refused=True, what="shape")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fleet", FLEETS)
def test_bytes_at_random_cost_one_share(fleet, seed):
    """Bytes of a true payload, some of them changed: the header, too."""
    rng = np.random.default_rng(seed)
    place = JobTable(FLEETS[fleet]).roles[HOSTILE].incarnation

    def change(phase: str, arrays: dict[str, np.ndarray]) -> bytes:
        header = {"place": roster.written(place), "left": {}}
        body = bytearray(pack(header, arrays))
        for at in rng.integers(0, len(body), size=1 + zlib.crc32(phase.encode()) % 4):
            body[at] = int(rng.integers(0, 256))
        return bytes(body)

    for of in SETTINGS:
        check(fleet, of, attacked(fleet, of, change), refused=False, what=(of, seed))


def test_an_error_in_computing_costs_one_share(monkeypatch):
    """Of any type: at the parent that checks, at the one that merges, and at the root."""
    from submerge.jobs.kinds.moments import MomentsJob

    check_up, merge, following = MomentsJob.check_up, MomentsJob.merge, MomentsJob.next
    marked = rows_of(HOSTILE).shape[0] + 1

    def breaks(up: Any) -> None:
        if "counts" in up and up["counts"].sum() % 1000 == marked % 1000:
            raise IndexError("no such thing")

    def count(_: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if "counts" in arrays:
            arrays["counts"] = np.array([marked + 1000.0, 0.0])
        return arrays

    def checked(self: Any, down: Any, up: Any, clients: int = 1) -> None:
        breaks(up)
        check_up(self, down, up, clients)

    def merged(self: Any, down: Any, ups: Any) -> Any:
        for up in ups:
            breaks(up)
        return merge(self, down, ups)

    def next_(self: Any, state: Any, down: Any, up: Any) -> Any:
        if "counts" in up and up["counts"].sum() > 1000:
            raise IndexError("no such thing")
        return following(self, state, down, up)

    for name, broken in (("check_up", checked), ("merge", merged), ("next", next_)):
        with monkeypatch.context() as patch:
            patch.setattr(MomentsJob, name, broken)
            outcome = attacked("below the root", "moments", count)
        check("below the root", "moments", outcome, refused=True, what=name)


def test_no_child_takes_the_place_of_another_by_naming_it_below_itself():
    """A hostile child that says it is an aggregator with all others below."""
    own, foreign = (JobTable(FLEETS["below the root"]).roles[n].incarnation for n in "be")
    claimed = {"a-evil": {"b": foreign}, "b": own}

    assert {"b": own} == roster.without_repeats(claimed)


def test_a_client_holds_no_more_rows_than_a_parent_believes():
    assert MOST_JOB_ROWS == MOST_HELD
