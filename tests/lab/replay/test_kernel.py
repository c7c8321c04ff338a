"""`submerge replay --kernel`: figures of features, held against exact PCA and exact kernel PCA."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema, Subspace, UsageError
from submerge.aggregator.group import GroupPlan
from submerge.features import (
    CountSketch,
    Gaussian,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from submerge.protocol.machine import Reading
from submerge.protocol.summaries import Subspaces
from submerge_lab import kernel_options
from submerge_lab.replay import exact, kernel
from submerge_lab.replay.kernel import excess, settle_gamma
from support import kernels, oracle
from support.commands import shell
from support.data import shared
from support.nodes import GROUP, Table
from support.strategies import rows_of

KERNEL = ["kernel", "gamma", "features", "map", "excess"]


@pytest.fixture
def submerge(monkeypatch, capsys):
    """Run the command as a shell would: exit status, standard output, standard error."""
    return shell(monkeypatch, capsys)


@pytest.fixture
def replay(submerge):
    """Replay with --json; the object it prints."""

    def run(*arguments: object) -> dict:
        ran = submerge("replay", *arguments, "--json")
        assert (0, "") == (ran.status, ran.err)
        return json.loads(ran.out)

    return run


def curved(n: int, *, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    """Rows (n, 5) about a closed curve, which no two directions hold."""
    rng = np.random.default_rng(seed)
    t = rng.random(n) * 2 * np.pi
    curve = np.stack([2 * np.cos(t), np.sin(t), np.cos(2 * t), 0.3 * np.sin(2 * t), 0 * t], axis=1)
    return curve + noise * rng.standard_normal((n, 5)) + 3


@pytest.fixture
def matrix(tmp_path) -> Path:
    path = tmp_path / "matrix.npy"
    np.save(path, curved(300))
    return path


# -- figures -----------------------------------------------------------------------


@pytest.mark.parametrize("center", ["stream", "none"])
@pytest.mark.parametrize("leaves", [1, 3])
def test_figures_are_of_the_features(replay, matrix, center, leaves):
    """Error and optimum are per row and of features, gamma is by the trace of the covariance."""
    options = ("--kernel", "gaussian", "--features", 128, "--center", center, "--leaves", leaves)
    found = replay(matrix, *options, "--rank", 4)

    X = np.load(matrix)
    gamma = 1 / (2 * X.var(axis=0).sum())
    truth = oracle.twin(RandomFourier(Gaussian(gamma), 128).lift(X), center=center == "stream")
    assert (300, 5, 4, "gaussian") == tuple(found[k] for k in ("rows", "dim", "rank", "kernel"))
    assert (128, "orthogonal") == (found["features"], found["map"])
    assert np.isclose(gamma, found["gamma"], rtol=1e-12)
    assert np.isclose(truth.eigenvalues[4:].sum() / 300, found["optimum"], rtol=1e-8)
    # Stored in float32.
    assert np.isclose(truth.energy / 300, found["energy"], rtol=1e-5)
    assert 1 - 1e-12 <= found["ratio"] <= 1.01
    assert found["error"] <= found["frobenius_bound"] + 1e-5 * found["energy"]


def test_a_linear_replay_says_nothing_of_kernels(replay, matrix):
    """Its keys are what they were; a kernel's come after them."""
    linear = list(replay(matrix, "--rank", 2))

    assert set(KERNEL).isdisjoint(linear)
    assert linear + KERNEL == list(replay(matrix, "--rank", 2, "--kernel", "laplace"))


def test_a_person_reads_of_the_kernel(submerge, matrix):
    """Which one, at what gamma, by how many features; and how far from exact it is."""
    ran = submerge("replay", matrix, "--kernel", "gaussian", "--gamma", 0.5, "--features", 64)

    lines = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
    assert "gaussian, gamma 0.5; 64 features, orthogonal" == lines["kernel"]
    assert lines["excess"].endswith("% over exact kernel PCA, on at most 2000 rows")


def exactly(kernel: str, X: np.ndarray) -> tuple[float, np.ndarray]:
    """Gamma for rows of no far-out ones, and their kernel matrix, entry by entry."""
    trace = X.var(axis=0).sum()
    gamma = {"laplace": (2 * trace) ** -0.5, "polynomial": 1 / trace}.get(kernel, 1 / (2 * trace))

    def k(x, y):
        outliers = np.sum((x - y) ** 2)
        if kernel == "laplace":
            return np.exp(-gamma * outliers**0.5)
        if kernel == "polynomial":
            return (gamma * x @ y + 1) ** 3
        r = (10 * gamma * outliers) ** 0.5
        return (
            np.exp(-gamma * outliers) if kernel == "gaussian" else (1 + r + r**2 / 3) * np.exp(-r)
        )

    return gamma, np.array([[k(x, y) for y in X] for x in X])


@pytest.mark.parametrize(
    ("options", "map_"),
    [
        (("gaussian", "--map", "fourier-pair"), RandomFourier(Gaussian(), 256, "fourier-pair")),
        (
            ("gaussian", "--map", "fourier-cos", "--features", 255),
            RandomFourier(Gaussian(), 255, "fourier-cos"),
        ),
        (("gaussian", "--map", "quasi"), RandomFourier(Gaussian(), 256, "quasi")),
        (("laplace", "--map", "countsketch"), CountSketch(Laplace(), 256)),
        (("matern", "--nu", 2.5), RandomFourier(Matern(nu=2.5), 256)),
        (
            ("polynomial", "--degree", 3, "--coef0", 1),
            TensorSketch(Polynomial(3, coef0=1.0), 256),
        ),
    ],
)
def test_every_kernel_and_map_comes_as_close_as_its_features_can(replay, tmp_path, options, map_):
    """Gamma, and the excess over exact kernel PCA, are those of a dense decomposition."""
    X = curved(120)
    np.save(tmp_path / "rows.npy", X)
    found = replay(tmp_path / "rows.npy", "--features", 256, "--rank", 3, "--kernel", *options)

    gamma, K = exactly(options[0], X)
    phi = map_.settled_at(gamma).lift(X)
    phi = phi - phi.mean(axis=0)
    expected = kernels.excess(K, phi @ np.linalg.svd(phi, full_matrices=False)[2][:3].T)
    assert (options[0], pytest.approx(gamma)) == (found["kernel"], found["gamma"])
    # What a stream misses beyond them is in the ratio, and small.
    assert expected == pytest.approx(found["excess"], abs=0.02)
    assert 0 < expected < 3
    assert 1 - 1e-9 <= found["ratio"] < 1.0001


def test_gaps_are_filled_before_features_are_made(replay, tmp_path):
    """By what the columns say of one another: next to nothing is lost by a gap."""
    X = rows_of("low rank", 200, 12, seed=1) + 9
    np.save(tmp_path / "whole.npy", X)
    X[105, 2] = X[117, 3] = X[117, 4] = np.nan
    np.save(tmp_path / "gaps.npy", X)
    options = ("--kernel", "gaussian", "--features", 128, "--gamma", 0.01, "--rank", 4)

    whole = replay(tmp_path / "whole.npy", *options)
    filled = replay(tmp_path / "gaps.npy", *options, "--missing", "impute")
    assert (0, 3) == (whole["filled"], filled["filled"])
    for name in ("energy", "optimum", "error"):
        assert np.isclose(whole[name], filled[name], rtol=1e-3)


def fleets_gamma(X: np.ndarray) -> float:
    """What a root settles on that hears of these rows, from two clients."""
    open_ = Schema(X.shape[1], features=RandomFourier(features=8))
    table = Table(Subspaces(2), open_)
    table.root("r", plans={GROUP: GroupPlan(Subspaces(2), open_)}, scaling_rows=len(X) // 2)
    for i in range(2):
        table.client(f"c{i}", under="r")
        table.step(f"c{i}", Reading(X[i::2]))
        table.run()
    table.passes(3000)
    return table.hosts["r"].ledger.schema.features.kernel.gamma


@pytest.mark.parametrize("width", [5, 12])
def test_gamma_is_the_fleets(width):
    """By the moments of rows without a gap, which are all that nodes measure."""
    X = np.random.default_rng(0).normal(5, np.arange(1, width + 1), (400, width))
    X[::7, 1] = np.nan
    X[3, 0] = 1e13  # no node takes it

    gamma = settle_gamma(RandomFourier(features=8), X).kernel.gamma
    assert fleets_gamma(X) == pytest.approx(gamma, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_few_rows_far_out_do_not_settle_gamma(seed):
    """Nor do they at the fleet's root: moments alone would be off by thousands."""
    X = np.random.default_rng(seed).standard_normal((1000, 8))
    usual = 1 / (2 * X.var(axis=0).sum())
    X[::50] *= 1000

    gamma = settle_gamma(RandomFourier(features=8), X).kernel.gamma
    # Two samples of 64 rows each.
    assert usual == pytest.approx(gamma, rel=0.5)
    assert fleets_gamma(X) == pytest.approx(gamma, rel=0.5)
    assert gamma == settle_gamma(RandomFourier(features=8), X).kernel.gamma


def test_gamma_of_a_replay_is_that_of_its_whole_rows(replay, tmp_path):
    """Also where gaps are filled before anything is learnt."""
    X = curved(100)
    X[::7, 1] = np.nan
    np.save(tmp_path / "gaps.npy", X)
    options = ("--kernel", "gaussian", "--features", 64, "--missing", "impute", "--rank", 3)

    spread = np.delete(X, np.s_[::7], axis=0).var(axis=0).sum()
    assert np.isclose(1 / (2 * spread), replay(tmp_path / "gaps.npy", *options)["gamma"])


def test_no_gamma_comes_of_rows_that_all_have_gaps(submerge, tmp_path):
    """Their fleet would wait for ever; a number helps, and a line says so."""
    X = curved(20)
    X[::2, 1] = X[1::2, 2] = np.nan
    np.save(tmp_path / "gaps.npy", X)
    options = (tmp_path / "gaps.npy", "--kernel", "gaussian", "--features", 64)

    ran = submerge("replay", *options, "--missing", "impute")
    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "got none among 20: give a --gamma" in ran.err
    ran = submerge("replay", *options, "--missing", "impute", "--gamma", 0.1)
    assert (0, "") == (ran.status, ran.err)


def test_the_rank_moves_between_limits_of_its_own(replay, matrix):
    """Shares of features are small: the paper's limits would only ever shrink it."""
    options = ("--kernel", "gaussian", "--rank-rule", "sapca", "--rank", 4, "--block", 20)
    credentials = replay(matrix, *options, "--alpha", 0.01, "--beta", 0.1, "--features", 256)
    own = replay(matrix, *options, "--features", 256)
    named = replay(matrix, *options, "--alpha", 0.005, "--beta", 0.03, "--features", 256)

    assert own["rank"] == named["rank"] > credentials["rank"]


def test_rows_that_are_all_alike_have_no_excess(replay, tmp_path):
    """Nothing varies: rank 0, no error, and nothing that exact kernel PCA would miss."""
    path = tmp_path / "flat.csv"
    path.write_text("1,2\n" * 30)

    found = replay(path, "--kernel", "gaussian", "--features", 64, "--gamma", 0.5)
    assert (0, 1.0, None) == (found["rank"], found["ratio"], found["excess"])


@pytest.mark.parametrize("leaves", [1, 4])
def test_forgetting_is_held_to_the_same_account(replay, matrix, leaves):
    """Rows weigh in the optimum what they weighed in the stream."""
    options = ("--kernel", "gaussian", "--features", 64, "--rank", 4, "--leaves", leaves)
    found = replay(matrix, *options, "--forgetting-factor", 0.98)

    assert 1 - 1e-6 <= found["ratio"] <= 1.05


@pytest.mark.slow
def test_the_picture_is_drawn(submerge, matrix, tmp_path):
    """Error and rank over time, and the spectrum, of features."""
    path = tmp_path / "kernel.png"
    ran = submerge("replay", matrix, "--kernel", "gaussian", "--features", 64, "--plot", path)

    assert (0, "") == (ran.status, ran.err)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_features_are_made_a_few_rows_at_a_time(replay, matrix, monkeypatch):
    """A block to learn, a chunk to judge by: never of the whole table."""
    monkeypatch.setattr(exact, "CHUNK", 70)
    lifted, lift = [], RandomFourier.lift
    monkeypatch.setattr(
        RandomFourier, "lift", lambda map_, X: lifted.append(len(X)) or lift(map_, X)
    )
    monkeypatch.setattr(kernel, "MOST_ROWS", 60)
    replay(matrix, "--kernel", "gaussian", "--rank", 4)

    assert 70 == max(lifted)
    assert 64 == max(lifted[:5])


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [1, 8])
def test_light_by_512_features(replay, leaves):
    """Within 2 % of exact kernel PCA, in a tree of eight as well."""
    light = shared("motes/light.dat.gz")
    # 1 / (2 tr C). These rows vary along few directions, where a sample of 64, projected, says by
    # its draw alone anything from a tenth of tr C to all of it: that is not what is tested.
    gamma = 4.1933e-8
    found = replay(light, "--kernel", "gaussian", "--gamma", gamma, "--leaves", leaves)

    assert 0 <= found["excess"] <= 2
    assert found["ratio"] <= 1.01


# -- what they are held against ----------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
def test_excess_is_that_of_the_twin(center):
    """tr(K) - tr(Q'KQ) over the eigenvalues beyond r, K formed entry by entry."""
    X, map_ = curved(80), RandomFourier(Gaussian(0.1), 64)
    schema = Schema(5, features=map_, center="fleet" if center else "none")
    learnt = Subspace.of(X, schema, rank=3)

    scores = (map_.lift(X) - learnt.mean) @ learnt.basis
    scores = scores - scores.mean(axis=0) if center else scores
    expected = kernels.excess(kernels.gaussian(X, X, 0.1), scores, center=center)
    assert expected > 1
    assert np.isclose(expected, excess(X, map_, learnt, center=center), rtol=1e-6)


def test_excess_is_of_rows_evenly_taken(monkeypatch):
    """Of many rows as many as a matrix has room for, the first and the last among them."""
    monkeypatch.setattr(kernel, "MOST_ROWS", 40)
    X, map_ = curved(157), RandomFourier(Gaussian(0.1), 64)
    learnt = Subspace.of(X, Schema(5, features=map_), rank=3)

    assert excess(X, map_, learnt, center=True) == excess(X[::4], map_, learnt, center=True)


def test_features_are_accounted_for_in_chunks_as_at_once(monkeypatch):
    """Each row by its weight, whatever was lifted with it."""
    X, map_ = curved(100), RandomFourier(Gaussian(0.1), 32)
    weights = 0.97 ** np.arange(100.0)
    learnt = Subspace.of(X, Schema(5, features=map_), rank=3)
    monkeypatch.setattr(exact, "CHUNK", 7)

    for center in (True, False):
        whole = exact.of_rows(map_.lift(X), weights, learnt, center=center)
        chunks = exact.of_features(X, weights, learnt, map_, center=center)
        assert np.isclose(whole.error, chunks.error, rtol=1e-12)
        assert np.allclose(whole.spectrum, chunks.spectrum, rtol=0, atol=1e-12 * whole.total)
        assert whole.total == chunks.total


def test_a_gamma_that_was_given_stays():
    """Whatever the rows are."""
    map_ = RandomFourier(Gaussian(0.7), 64)

    assert map_ == settle_gamma(map_, curved(10))


# -- what is asked -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--gamma", 3], "--gamma has an effect with --kernel only"),
        (["--map-seed", 0], "--map-seed has an effect with --kernel only"),
        (["--kernel", "gaussian", "--features", 511], "expected an even number, got 511"),
        (["--kernel", "gaussian", "--features", 1], "'--features': 1 is not in the range"),
        (["--kernel", "gaussian", "--features", 4098], "--features must be at most 4096, got 4098"),
        (["--kernel", "gaussian", "--gamma", 0], "'--gamma': expected a number above 0, or auto"),
        (["--kernel", "gaussian", "--gamma", "inf"], "got 'inf'"),
        (["--kernel", "gaussian", "--gamma", "much"], "got 'much'"),
        (["--kernel", "polynomial", "--degree", 0], "'--degree': 0 is not in the range"),
        (["--kernel", "polynomial", "--coef0", "inf"], "--coef0 must be a finite number"),
        (["--kernel", "gaussian", "--degree", 2], "an effect with --kernel polynomial only"),
        (["--kernel", "gaussian", "--nu", 1.5], "--nu has an effect with --kernel matern only"),
        (["--kernel", "matern", "--nu", 2], "'--nu': '2' is not one of"),
        (["--kernel", "cosine"], "'cosine'"),
        (["--kernel", "gaussian", "--map", "tensorsketch"], "--map tensorsketch is not for"),
        (["--kernel", "polynomial", "--map", "quasi"], "--map quasi is not for --kernel poly"),
        (["--kernel", "gaussian", "--rank", 513], "from 1 to the 512 features, got 513"),
        (["--kernel", "gaussian", "--center", "offline"], "--center offline is for rows as they"),
        (["--kernel", "gaussian", "--paper"], "--paper is for rows as they are"),
        (["--kernel", "polynomial", "--gamma", 1e30, "--degree", 9], "lower --gamma or --degree"),
    ],
)
def test_a_bad_option_is_one_line(submerge, matrix, options, words):
    """Exit status 2 and one line: what was expected, what came."""
    status, out, err = submerge("replay", matrix, *options)

    assert (2, "") == (status, out)
    assert 1 == err.count("\n")
    assert words in err


def test_sobol_points_are_for_few_columns(submerge, tmp_path):
    """A map that does not take so many columns says so by its option."""
    np.save(tmp_path / "wide.npy", rows_of("noise", 20, 9, seed=0))
    ran = submerge("replay", tmp_path / "wide.npy", "--kernel", "gaussian", "--map", "quasi")

    assert 2 == ran.status
    assert "--map quasi: kind 'quasi' is for at most 8 dimensions, got 9" in ran.err


@given(
    kernel=st.sampled_from(["gaussian", "laplace", "matern", "polynomial"]),
    gamma=st.none() | st.floats(1e-9, 1e9),
    features=st.integers(1, 500).map(lambda n: 2 * n),
    seed=st.integers(0, 2**63 - 1),
    degree=st.integers(1, 9),
    nu=st.sampled_from(["1.5", "2.5"]),
)
def test_a_map_that_is_written_as_options_comes_back(kernel, gamma, features, seed, degree, nu):
    """To the last bit."""
    given_ = {"kernel": kernel, "gamma": "auto" if gamma is None else gamma, "map_seed": seed}
    given_ |= {"matern": {"nu": nu}, "polynomial": {"degree": degree, "coef0": 0.25}}.get(
        kernel, {}
    )
    map_ = kernel_options.feature_map(given_ | {"features": features}, width=3, features=64)

    words = kernel_options.written(map_).split()
    again = dict(zip([word[2:].replace("-", "_") for word in words[::2]], words[1::2], strict=True))
    again["gamma"] = kernel_options.positive_or_auto(again["gamma"])
    for name, read in {"features": int, "map_seed": int, "degree": int, "coef0": float}.items():
        if name in again:
            again[name] = read(again[name])
    assert map_ == kernel_options.feature_map(again, width=3, features=64)


def test_without_a_kernel_there_is_no_map():
    """And what goes with one is refused."""
    assert None is kernel_options.feature_map({}, width=3, features=64)
    with pytest.raises(UsageError, match="--nu has an effect with --kernel only"):
        kernel_options.feature_map({"nu": "1.5"}, width=3, features=64)


def test_a_column_that_drowns_the_others_is_said(submerge, tmp_path):
    """A kernel sees distances: in mixed units it sees one column."""
    rows = np.random.default_rng(0).standard_normal((200, 3)) * [1.0, 1000.0, 1.0]
    np.savetxt(tmp_path / "mixed.csv", rows, delimiter=",", header="flow,speed,heat", comments="")
    options = ("--kernel", "gaussian", "--features", 32, "--rank", 2, "--json")
    loud = json.loads(submerge("replay", tmp_path / "mixed.csv", *options).out)
    np.savetxt(tmp_path / "even.csv", rows / rows.std(axis=0), delimiter=",")
    even = json.loads(submerge("replay", tmp_path / "even.csv", *options).out)

    assert any("speed makes up 100% of all distances" in note for note in loud["notes"])
    assert not any("distances" in note for note in even["notes"])


def test_rows_that_are_all_equal_have_no_gamma(submerge, tmp_path):
    """Refused in one line, as the estimators do."""
    np.savetxt(tmp_path / "still.csv", np.full((50, 3), 4.0), delimiter=",")
    ran = submerge("replay", tmp_path / "still.csv", "--kernel", "gaussian")

    assert 2 == ran.status
    assert "expected rows that differ to settle gamma by, got 50 that are equal" in ran.err
