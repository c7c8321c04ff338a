"""The kinds kpca and nystrom: whole jobs against one machine with all rows, and their checks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from plants.uneven import GAMMA, uneven
from submerge import PeerError, UsageError
from submerge.features import Polynomial
from submerge.jobs.kind import JobAnswer, PhaseDown
from submerge.jobs.kinds import KINDS
from submerge.jobs.kinds.kpca import remainder
from submerge.jobs.kinds.kpca.answer import coefficients_of, kernel_of, map_of
from submerge.jobs.kinds.kpca.job import KernelPcaJob
from submerge.jobs.local_run import run_here, split_here
from submerge.jobs.points import NO_ONE_SHARES, JobPoints, check_nodes, node_id
from support import kernels, oracle_kpca
from support.job_table import JobTable, job

POLYNOMIAL = {"kernel": "polynomial", "degree": 4, "gamma": GAMMA, "center": False}
SMALL = {"components": 3, "points": 16, "gamma": 0.3, "node_share": 1.0}


def dealt(X: np.ndarray, servers: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return rows by server, sizes by a power law."""
    parts = kernels.power_law(X, servers, np.random.default_rng(seed))
    return {f"server-{i:03}": part for i, part in enumerate(parts)}


def clouds(n: int = 200, dim: int = 3) -> np.ndarray:
    return kernels.clustered(n, dim).astype(np.float32).astype(np.float64)


def error(answer: dict, X: np.ndarray, k: int) -> float:
    """Return what the answer's directions miss, over the best."""
    map_ = map_of(answer)
    K = map_.kernel(X, X)
    held = float(np.square(map_.lift(X) @ answer["axes"]).sum())
    return (float(np.trace(K)) - held) / kernels.optimum(K, k, center=False)


# -- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_points_are_those_that_one_machine_chooses(seed):
    """By k(x, x), then by what is missed, as least squares finds it: row for row."""
    parts = dealt(clouds(dim=6), 4)
    settings = {**SMALL, "kernel": "polynomial", "degree": 2, "seed": seed}

    answer = run_here("kpca", settings, parts)

    twin = oracle_kpca.chosen(parts, Polynomial(2, 0.3), (4, 12), seed)
    rows = {tuple(parts[name][i]) for name, i in twin}
    assert {tuple(row) for row in answer["points"].astype(np.float64)} == rows


@pytest.mark.parametrize("kind", ["kpca", "nystrom"])
@pytest.mark.parametrize("center", [True, False])
def test_directions_are_the_best_in_the_span_of_the_points(kind, center):
    """With all ranks kept: eigenvalues of one machine with all rows, to 1e-8."""
    X = clouds()
    settings = {**SMALL, "center": center, "components": 8}

    answer = run_here(kind, settings, dealt(X, 5))

    map_ = map_of(answer)
    best, _ = oracle_kpca.captured(X, map_.points, map_.kernel, 8, center=center)
    np.testing.assert_allclose(best, answer["eigenvalues"].sum(), rtol=1e-8)
    assert [200, 0, 5, 5] == answer["counts"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("servers", [5, 20, 100, 200])
def test_uneven_leverage_costs_at_most_one_percent_over_batch(servers):
    """Polynomial 4, 200 points; uniform points miss several times as much as batch does."""
    X = uneven()[:2000]
    settings = {**POLYNOMIAL, "components": 10, "points": 200, "seed": servers}
    chosen, uniform = (
        run_here("kpca", {**settings, "sample": sample}, dealt(X, servers))
        for sample in ("residual", "uniform")
    )

    assert error(chosen, X, 10) <= 1.01
    assert error(uniform, X, 10) >= 2


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_tree():
    """The same points to the bit, and the same directions to rounding, however deep."""
    parts = dealt(uneven()[:1500], 12)
    names = sorted(parts)
    tree = {
        "north": {"hall": {n: parts[n] for n in names[:3]}, **{n: parts[n] for n in names[3:5]}},
        "south": {n: parts[n] for n in names[5:]},
    }
    settings = {**POLYNOMIAL, "components": 5, "points": 60, "merge": "exact"}

    star, other = (run_here("kpca", settings, each) for each in (parts, tree))

    np.testing.assert_array_equal(star["points"], other["points"])
    np.testing.assert_allclose(star["eigenvalues"], other["eigenvalues"], rtol=1e-9)


@pytest.mark.slow
def test_merged_ranks_depend_on_the_tree_by_less_than_a_point():
    """2k ranks: 1 server or 200, errors over batch differ by at most 0.01."""
    X = uneven()[:2000]
    settings = {**POLYNOMIAL, "components": 10, "points": 100, "node_share": 1.0}

    errors = [error(run_here("kpca", settings, dealt(X, s)), X, 10) for s in (1, 20, 200)]

    assert max(errors) - min(errors) <= 0.01


@pytest.mark.parametrize("sample", ["residual", "leverage", "uniform"])
@pytest.mark.parametrize("merge", ["ranks", "sketch", "exact"])
def test_the_same_job_gives_the_same_bytes(sample, merge):
    """Each time, with every way to choose and to merge."""
    settings = {**SMALL, "sample": sample, "merge": merge, "features": 64, "sketch": 8}
    settings |= {"held_out": 0.2, "columns": 20}

    one, other = (run_here("kpca", settings, dealt(clouds(), 5)) for _ in range(2))

    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_gamma_follows_from_the_spread_of_all_rows():
    """Without one set, it is 1 / (2 tr C) of the pooled rows."""
    X = clouds()
    settings = {name: value for name, value in SMALL.items() if name != "gamma"}

    answer = run_here("kpca", settings, dealt(X, 5))

    spread = float(X.var(axis=0).sum())
    np.testing.assert_allclose(1 / (2 * spread), kernel_of(answer["kernel"]).gamma, rtol=1e-12)


@pytest.mark.parametrize(
    "of",
    [
        {"kernel": "laplace"},
        {"kernel": "matern", "nu": 2.5},
        {"kernel": "polynomial", "degree": 3, "coef0": 1.0},
    ],
)
def test_an_answer_names_its_kernel(of):
    """Kernel and directions can be used without the job's settings."""
    X = clouds(80)
    answer = run_here("kpca", {**SMALL, **of}, {"pump-1": X})
    map_ = map_of(answer)

    assert of["kernel"] == map_.kernel.spec()["kernel"]
    # Each direction has length 1 in feature space.
    C = coefficients_of(answer)
    lengths = np.einsum("ij,jk,ik->i", C, map_.kernel(map_.points, map_.points), C)
    np.testing.assert_allclose(1, lengths, rtol=1e-6)


def test_limits_are_quantiles_of_rows_held_out():
    """Within a bucket of the sketch, 2 %, of those that one machine measures."""
    X, settings = clouds(3000), {**SMALL, "held_out": 0.4}
    parts = dealt(X, 5)

    answer = run_here("kpca", settings, parts)

    held_out = np.concatenate(
        [split_here(name, rows, settings).held_out for name, rows in parts.items()]
    )
    map_ = map_of(answer)
    off = map_.lift(held_out) - answer["mean"]
    outside = 1 - np.square(map_.lift(held_out)).sum(axis=1)
    spe = outside + np.square(off - off @ answer["axes"] @ answer["axes"].T).sum(axis=1)
    expected = np.quantile(spe, answer["limit_shares"], method="inverted_cdf")
    assert len(held_out) == answer["counts"][1]
    np.testing.assert_allclose(expected, answer["spe_limits"], rtol=0.05)


@pytest.mark.parametrize(
    ("held_out", "shares"),
    [(0, None), (9, None), (10, [0.5, 0.9]), (99, [0.5, 0.9, 0.95]), (100, [0.5, 0.9, 0.95, 0.99])],
)
def test_a_limit_leaves_a_row_or_more_beyond(held_out, shares):
    """Of ten rows there is no 99 % limit: the largest one is none."""
    values = np.arange(1.0, 1.0 + held_out)
    found = remainder.limits(remainder.sketches_up(dict.fromkeys(remainder.STATISTICS, values)))

    assert shares == (found["limit_shares"].tolist() if found else None)
    for name in found.keys() - {"limit_shares"}:
        assert (found[name] < values[-1]).all()


# -- who shares --------------------------------------------------------------------------------


def test_only_points_leave_a_node_and_no_more_than_it_shares():
    """A node that may share two rows supplies two at most; one that may share none takes part."""
    parts, kind = dealt(clouds(), 3), KernelPcaJob(SMALL, 3)
    may_share = {"server-000": 2, "server-001": 100, "server-002": 0}
    left = dict(may_share)
    memory: dict[str, Any] = dict.fromkeys(parts)
    state, down = kind.first()
    while not isinstance(state, JobAnswer):
        ups = []
        for name, rows in parts.items():
            points = JobPoints(rows, rows[:0], left[name])
            memory[name], up = kind.contribute(memory[name], down, points, name)
            kind.check_up(down, up)
            left[name] -= kind.points_in(down, up)
            ups.append(up)
        merged = kind.merge(down, ups)
        kind.check_up(down, merged)
        result = kind.next(state, down, merged)
        state, down = result if isinstance(result, tuple) and len(result) == 2 else (result, down)

    points = {tuple(row) for row in state.arrays["points"]}
    supplied = {n: sum(tuple(row) in points for row in rows) for n, rows in parts.items()}
    assert {n: may_share[n] - left[n] for n in parts} == supplied
    assert supplied["server-000"] <= 2
    assert supplied["server-002"] == 0
    assert state.arrays["counts"].tolist() == [200, 0, 3, 2]


def test_where_no_one_may_share_the_root_says_what_to_do():
    """There is no job without points."""
    with pytest.raises(UsageError, match=NO_ONE_SHARES):
        run_here("kpca", SMALL, dealt(clouds(), 3), share_points=0)


def test_one_node_does_not_choose_all_points():
    """Its share is a quarter, though it has most of all rows."""
    parts = {f"pump-{i}": clouds(20) + i for i in range(8)} | {"pump-9": clouds(2000)}
    settings = {"components": 2, "points": 40, "gamma": 0.3}

    answer = run_here("nystrom", settings, parts)

    own = {tuple(row) for row in parts["pump-9"].astype(np.float32)}
    assert 10 == sum(tuple(row) in own for row in answer["points"])


# -- over the machine, and what is refused ---------------------------------------------------


def test_over_the_machine_the_answer_has_the_same_bytes():
    """Roles that send each other pieces, with an aggregator between: as in one process."""
    X = clouds(90, 2)
    parts = {"hall": {"a": X[:40], "b": X[40:60]}, "c": X[60:]}
    settings = {"components": 2, "points": 9, "held_out": 0.2}
    table = JobTable(parts, share_points=50)

    outcome = table.run(job("kpca", settings=settings))

    expected = run_here("kpca", settings, parts, share_points=50)
    assert outcome.answer is not None, outcome.failure
    assert all(expected[name].tobytes() == outcome.answer[name].tobytes() for name in expected)


def test_rows_of_a_node_that_does_not_take_part_are_refused():
    """Points say whose they are, and a parent knows who is below."""
    arrays = {"nodes": np.array([node_id("pump-1")], dtype=np.uint64)}

    check_nodes(arrays, ["pump-1", "pump-2"])
    with pytest.raises(PeerError, match="do not take part"):
        check_nodes(arrays, ["pump-2"])


def bins(count: float, level: float = -2.0) -> dict[str, np.ndarray]:
    """Return sketches of one score each."""
    names = ("spe", "inside", "t2")
    found = {f"{name}_bins": np.array([[1.0, count]]) for name in names}
    return found | {f"{name}_level": np.array([level]) for name in names}


@pytest.mark.parametrize(
    ("phase", "arrays"),
    [
        ("count", {"counts": np.array([1.5, 0, 1, 1])}),
        ("count", {"counts": np.array([-1.0, 0, 1, 1])}),
        ("project", {"factor": np.ones((2, 3)), "mean": np.zeros(3), "sums": np.ones(4)}),
        ("project", {"factor": np.zeros((1, 3)), "mean": np.zeros(3), "sums": np.ones(4)}),
        ("project", {"factor": np.eye(3), "mean": np.zeros(3), "sums": -np.ones(4)}),
        ("measure", bins(-1.0)),
        ("measure", bins(1.0, level=0.5)),
        ("measure", bins(1.0, level=9.0)),
        ("measure", {"spe_bins": np.ones((1, 2)), "spe_level": np.full(1, -2.0)}),
    ],
)
def test_foreign_arrays_are_refused(phase, arrays):
    """Counts that are none, factors that are none, sketches that are none."""
    down = PhaseDown(phase, {"size": np.array([3.0])} if phase == "project" else {})

    kind = KernelPcaJob({**SMALL, "readings": False}, 3)
    with pytest.raises(PeerError):
        kind.check_up(down, arrays)


def test_honest_arrays_of_these_phases_pass():
    """What the test above refuses is refused for what is wrong with it."""
    kind = KernelPcaJob({**SMALL, "readings": False}, 3)
    factor = {"factor": np.eye(3), "mean": np.zeros(3), "sums": np.array([3.0, 4, 1, 1])}

    kind.check_up(PhaseDown("count", {}), {"counts": np.array([5.0, 0, 1, 1])})
    kind.check_up(PhaseDown("project", {"size": np.array([3.0])}), factor)
    kind.check_up(PhaseDown("measure", {}), bins(1.0))


def test_sums_of_no_rows_are_refused():
    """A child that says so, and sends sums all the same, does not end the job."""
    kind = KernelPcaJob({**SMALL, "merge": "sketch", "readings": False}, 3)
    down = PhaseDown("project", {"points": np.ones((2, 3), np.float32), "size": np.full(1, 2.0)})
    up = {"triangle": np.ones(6), "mean": np.zeros(2), "sums": np.zeros(3)}

    with pytest.raises(PeerError, match="than so many rows lead to"):
        kind.check_up(down, up)


PHASES_UP = {
    "count": {"counts": np.array([5.0, 0, 1, 1])},
    "keys-1": {"keys": np.array([1.0, 2.0])},
    "points-1": {
        "nodes": np.array([7], np.uint64),
        "supplied": np.array([1], np.uint64),
        "rows": np.array([3], np.uint64),
        "points": np.ones((1, 3), np.float32),
    },
    "project": {"factor": np.eye(3), "mean": np.zeros(3), "sums": np.ones(4)},
    "measure": bins(1.0),
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("asked", "sent"), [*itertools.permutations(PHASES_UP, 2)])
def test_what_another_phase_asks_is_refused(asked, sent, restarted):
    """A late share of any other phase is an error of its sender, at a new parent, too."""
    kind = KernelPcaJob({**SMALL, "readings": False}, 3)
    arrays = {"largest": np.ones(1), "size": np.full(1, 3.0)}
    if not restarted:
        kind.check_down(PhaseDown("count", {}))
        kind.check_down(PhaseDown("keys-1", {"gamma": np.ones(1), "limit": np.full(1, 4.0)}))

    with pytest.raises(PeerError):
        kind.check_up(PhaseDown(asked, arrays), PHASES_UP[sent])


@pytest.mark.parametrize(
    "down",
    [
        PhaseDown("points", {}),
        PhaseDown("keys-1", {"gamma": np.array([-1.0]), "limit": np.array([4.0])}),
        PhaseDown("keys-1", {"gamma": np.array([1.0]), "limit": np.array([0.0])}),
        PhaseDown("project", {"points": np.zeros((4, 3)), "size": np.array([4.0])}),
        PhaseDown(
            "measure",
            {
                "axes": np.eye(3),
                "mean": np.zeros(2),
                "variances": np.ones(3),
                "readings_axes": np.ones((3, 1)),
                "readings_mean": np.ones(3),
            },
        ),
    ],
)
def test_what_no_root_asks_is_refused(down):
    """Phases and arrays of another form."""
    with pytest.raises(PeerError):
        KernelPcaJob(SMALL, 3).check_down(down)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "needs the setting components"),
        ({"components": 5, "points": 4}, "points must be"),
        ({"components": 5, "kernel": "sigmoid"}, "kernel must be one of"),
        ({"components": 5, "degree": 3}, "not a setting of the gaussian kernel"),
        ({"components": 5, "sample": "all"}, "sample must be one of"),
        ({"components": 5, "merge": "all"}, "merge must be one of"),
        ({"components": 5, "center": 1}, "center must be true or false"),
        ({"components": 5, "node_share": 1.5}, "node_share must be"),
        ({"components": 5, "gamma": -1.0}, "gamma must be"),
        ({"components": 5, "kernel": "matern", "nu": 7}, "nu must be 1.5 or 2.5, got 7"),
        ({"components": 5, "points_": 9}, "settings are"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, why):
    """With one line that says what to do."""
    with pytest.raises(UsageError, match=why):
        KINDS["kpca"](settings, 3)


def test_rows_that_are_all_alike_have_no_kernel_pca():
    """Neither gamma nor directions: the root says so."""
    alike = {"a": np.ones((9, 2)), "b": np.ones((5, 2))}

    with pytest.raises(UsageError, match="all are alike"):
        run_here("kpca", {"components": 2}, alike)
    with pytest.raises(UsageError, match="all rows are alike"):
        run_here("kpca", {"components": 2, "gamma": 1.0}, alike)


def test_a_kernel_that_overflows_is_an_error_in_one_line():
    """And no infinite answer."""
    steep = {"components": 2, "kernel": "polynomial", "degree": 64, "gamma": 1.0}

    with pytest.raises(UsageError, match="too steep"):
        run_here("kpca", steep, {"a": 1e10 * clouds()})
