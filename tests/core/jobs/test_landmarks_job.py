"""Landmarks chosen by the fleet: the law, the limits of a node, opt-in, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import PeerError, UsageError
from submerge.features import Gaussian, Landmarks
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca.stages import stage_of
from submerge.jobs.kinds.landmark_job import LandmarkSettings, LandmarksJob
from submerge.jobs.local_run import run_here
from submerge.jobs.points import JobPoints, node_id
from support import kernels, oracle_kpca

SETTINGS = {"landmarks": 12, "kernel": "gaussian", "gamma": 0.5, "seed": 3}


def fleet(nodes: int = 6, rows: int = 30, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {f"pump-{i}": rng.standard_normal((rows, 3)) for i in range(nodes)}
    return {name: part.astype(np.float32).astype(float) for name, part in made.items()}


def sets(points: np.ndarray) -> set[tuple[float, ...]]:
    return {tuple(row) for row in points.tolist()}


def test_landmarks_are_those_of_a_choice_on_one_machine():
    """Uniform rows first, then by what these miss, three times: a twin sorts all keys."""
    parts, chosen = fleet(), []
    for stage, size in enumerate(LandmarkSettings.of(SETTINGS).stages, start=1):
        points = np.array([parts[name][i] for name, i in chosen])
        scores = {}
        for name, rows in parts.items():
            if stage == 1:
                scores[name] = np.ones(len(rows))
            else:
                K = Gaussian(0.5)
                scores[name] = kernels.off_span(K(points, points), K(rows, points), np.ones(30))
            scores[name][[i for of, i in chosen if of == name]] = 0.0
        chosen += oracle_kpca.smallest(parts, scores, stage, size, 3)
    twin = {tuple(parts[name][i]) for name, i in chosen}

    found = run_here("landmarks", {**SETTINGS, "node_share": 1.0}, parts)["points"]

    assert twin == sets(found)


def test_the_tree_leaves_no_trace():
    """The same landmarks, in the same order, with aggregators in between."""
    parts = fleet()
    names = sorted(parts)
    tree = {
        "north": {name: parts[name] for name in names[:2]},
        "south": {name: parts[name] for name in names[2:]},
    }

    flat, deep = (run_here("landmarks", SETTINGS, each) for each in (parts, tree))

    np.testing.assert_array_equal(flat["points"], deep["points"])


def test_rare_rows_become_landmarks():
    """Three rows far from a thousand: uniform rows miss them, the later choices do not."""
    parts = {name: 0.1 * rows for name, rows in fleet(rows=170).items()}
    far = np.array([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]])
    parts["pump-0"] = np.concatenate([parts["pump-0"], far])

    found = run_here("landmarks", {**SETTINGS, "node_share": 0.5}, parts)["points"]

    assert sets(far) <= sets(found)


def test_a_node_supplies_at_most_its_share_of_a_choice():
    """One node has nearly all of what is missed, and does not choose all landmarks."""
    parts = {name: 0.1 * rows for name, rows in fleet().items()}
    parts["pump-0"] = 30.0 * fleet(1, 200, 8)["pump-0"]

    found = run_here("landmarks", {**SETTINGS, "node_share": 0.25}, parts)["points"]

    of_one = len(sets(found) & sets(parts["pump-0"]))
    assert of_one <= 4  # one of three, in four choices


def test_no_node_gives_more_than_it_may_share():
    """A budget of one reading is one reading, over all choices of a job."""
    parts = fleet()

    found = run_here("landmarks", SETTINGS, parts, share_points=1)["points"]

    assert [1] * 6 >= [len(sets(found) & sets(rows)) for rows in parts.values()]
    assert 6 == len(found)


def test_a_fleet_that_shares_nothing_has_no_landmarks():
    """The failure says which setting is missing."""
    with pytest.raises(UsageError, match="set share_points at clients"):
        run_here("landmarks", SETTINGS, fleet(), share_points=0)


def test_rows_in_the_channels_own_units_are_scaled_before_the_kernel():
    """A channel in thousandths, about 7: the same rows are chosen as without."""
    parts = fleet()
    every = np.concatenate(list(parts.values()))
    scaled = {name: (rows - every.mean(axis=0)) / every.std(axis=0) for name, rows in parts.items()}
    settings = {**SETTINGS, "gamma": 0.25}
    exact = run_here("landmarks", settings, scaled)["points"] * every.std(axis=0) + every.mean(
        axis=0
    )

    found = run_here("landmarks", {**settings, "scale": True}, parts)["points"]

    np.testing.assert_allclose(exact, found, rtol=1e-4, atol=1e-5)


def test_gamma_follows_from_the_spread_of_all_rows():
    """As the root of a stream settles it, from merged sums."""
    parts = fleet()
    every = np.concatenate(list(parts.values()))
    settings = {name: value for name, value in SETTINGS.items() if name != "gamma"}

    found = run_here("landmarks", settings, parts)["kernel"]

    assert Gaussian().auto(float(every.var(axis=0).sum())) == pytest.approx(found[1])


def asked(*, largest: float = 1.0) -> tuple[LandmarksJob, PhaseDown, dict]:
    """Return a parent that has seen all of a second choice, its phase, and an honest answer."""
    parent, client, rows = LandmarksJob(SETTINGS, 3), LandmarksJob(SETTINGS, 3), fleet(1)["pump-0"]
    settled = {"gamma": np.array([0.5]), "offset": np.zeros(3), "scale": np.ones(3)}
    downs = [
        PhaseDown("count", {}),
        PhaseDown("keys-1", {**settled, "limit": np.array([3.0])}),
        PhaseDown("points-1", {"largest": np.array([1e9])}),
        PhaseDown("keys-2", {"limit": np.array([3.0]), "points": rows[:3].astype(np.float32)}),
    ]
    memory, points = None, JobPoints(rows, rows[:0], 100)
    for down in downs:
        parent.check_down(down)
        memory, up = client.contribute(memory, down, points, "pump-0")
        parent.check_up(down, up)
    last = PhaseDown("points-2", {"largest": up["keys"][-1:] * largest})
    parent.check_down(last)
    honest = client.contribute(
        memory, PhaseDown("points-2", {"largest": up["keys"][-1:]}), points, "pump-0"
    )[1]
    return parent, last, dict(honest)


def test_a_parent_takes_honest_landmarks():
    """It computes score, u and key again, and finds the same."""
    parent, down, up = asked()

    parent.check_up(down, up)

    assert 3 == parent.points_in(down, up)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda up: up | {"rows": up["rows"] + np.uint64(50)}, "its key would choose"),
        (lambda up: up | {"points": up["points"] * 0}, "its key would choose"),
        (lambda up: up | {"nodes": np.array([node_id("pump-9")], np.uint64)}, "its key would"),
        (lambda up: up | {"supplied": np.array([4], np.uint64)}, "supplies at most 3"),
    ],
    ids=["another number", "another row", "another node", "too many"],
)
def test_a_parent_refuses_what_the_draw_has_not_chosen(change, why):
    """A kit cannot push in rows of its own."""
    parent, down, up = asked(largest=0.999999)
    parent2, down2, up2 = asked()

    with pytest.raises(PeerError, match=why):
        parent2.check_up(down2, change(up2))
    with pytest.raises(PeerError, match="its key would choose"):
        parent.check_up(down, up)


@pytest.mark.parametrize(
    "phase", ["keys-0", "keys-9", "keys-\u0661", "points", "rows-1", "keys--1"]
)
def test_other_phases_are_refused(phase):
    """There are as many choices as the settings say."""
    with pytest.raises(PeerError, match="no phase"):
        LandmarksJob(SETTINGS, 3).check_down(PhaseDown(phase, {}))
    assert stage_of(phase) in (0, 9)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "needs the setting landmarks"),
        ({"landmarks": 0}, "landmarks must be"),
        ({"landmarks": 5, "uniform": 2}, "uniform must be"),
        ({"landmarks": 5, "steps": 17}, "steps must be"),
        ({"landmarks": 5, "components": 3}, "settings are"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, why):
    """With one line that names the setting."""
    with pytest.raises(UsageError, match=why):
        LandmarksJob(settings, 3)


@pytest.mark.parametrize("landmarks", [1, 2, 7, 300])
@pytest.mark.parametrize("uniform", [0.0, 0.25, 1.0])
def test_choices_add_up(landmarks, uniform):
    """To the landmarks that are asked for; none of them is empty."""
    stages = LandmarkSettings.of({"landmarks": landmarks, "uniform": uniform}).stages

    assert landmarks == sum(stages)
    assert min(stages) > 0


def test_landmarks_make_a_map():
    """The answer is what a schema needs: rows, and a kernel with its gamma."""
    found = run_here("landmarks", SETTINGS, fleet())

    assert 12 == Landmarks(Gaussian(float(found["kernel"][1])), found["points"].astype(float)).dim(
        3
    )
