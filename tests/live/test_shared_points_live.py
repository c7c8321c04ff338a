"""Readings that clients share as points, over real processes: which they are, and how many."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("grpc")

from support.job_programs import ROOT, ROWS, SITES, JobPrograms, rows_of
from support.kills.configs import OverGrpc
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow

SETTINGS = {"components": 2, "points": 12, "gamma": 0.1, "seed": 3, "held_out": 0.2}
SHARES = {"a": 0, "b": 2} | dict.fromkeys("cdefgh", 100)


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as programs:
        yield programs


def fleet_of(programs: Programs, **more: str) -> JobPrograms:
    """Eight clients, of which `a` shares no reading and `b` two a day."""
    settings = {name: f"share_points = {n}\n" for name, n in SHARES.items()}
    ports = {node: free_port() for node in (ROOT, *SITES)}
    return JobPrograms(OverGrpc(ports), programs, **more, **settings)


def owners(points: set[tuple[float, ...]]) -> list[str]:
    """Whose rows the points are, one name for each point."""
    of = {tuple(row): name for name in SHARES for row in rows_of(name).astype(np.float32)}
    return [of[point] for point in points]


def spent(programs: Programs, name: str) -> int:
    """How many readings of a client have left, by its file."""
    path = programs.folder / f"{name}.state.shared"
    return sum(n for n, _ in json.loads(path.read_text())) if path.exists() else 0


def test_points_are_of_those_who_share_and_within_their_budgets(programs):
    """All take part in two jobs; a client whose budget is spent supplies no more points."""
    fleet = fleet_of(programs)
    fleet.has_all()
    supplied = []
    for job in ("job-1", "job-2"):
        seed = 3 if job == "job-1" else 4
        fleet.order(id=job, kind="kpca", settings={**SETTINGS, "seed": seed})
        outcome = fleet.event("ended", job=job)
        points = np.frombuffer(bytes.fromhex(outcome["answer"]["points"]), "<f4").reshape(-1, 3)
        supplied += owners({tuple(row) for row in points})

        assert "" == outcome["failure"]
        assert list("abcdefgh") == outcome["opened"]
        assert not outcome["left"]
    assert "a" not in supplied
    assert supplied.count("b") <= 2
    for name in SHARES:
        assert supplied.count(name) <= spent(programs, name) <= SHARES[name]
    fleet.counts(8 * ROWS)


def test_a_fleet_chooses_its_landmarks(programs):
    """Of a group that leaves them open: then its clients score, and each reading counts once."""
    fleet = fleet_of(programs, features='map = "nystrom"\nlandmarks = "fleet"\nfeatures = 16\n')
    fleet.running["a"].until("scoring begins: a model is here")
    fleet.counts(8 * ROWS)

    assert 0 == spent(programs, "a")
    assert spent(programs, "b") <= 2
    # Few of them may have had rows by then, and each supplies a share at most: perhaps not all 16.
    assert 0 < sum(spent(programs, name) for name in SHARES)
    # Again, at an operator's order, among the rows that have come since.
    fleet.feed(*SHARES)
    fleet.counts(16 * ROWS)
    before = sum(spent(programs, name) for name in SHARES)
    fleet.order(landmarks=1)
    outcome = fleet.event("ended", job=fleet.event("chooses", number=1)["job"])

    assert "" == outcome["failure"]
    assert 16 == sum(spent(programs, name) for name in SHARES) - before
    assert spent(programs, "b") <= 2
