"""Numbers that are the same everywhere: what they are, and that they are what they should be."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.linalg import hadamard as scipys_hadamard

from submerge.features import Matern, RandomFourier, draws, hadamard
from submerge.features import weights as sobol
from support import feature_hashes

TINY = 2.0**-52

probabilities = (st.floats(TINY, 0.5) | st.floats(0.4, 36).map(lambda e: math.exp(-e))).flatmap(
    lambda p: st.sampled_from([p, 1 - p])
)


def test_streams_stay_what_they_are():
    """Philox at key (42, 1), and what is made of its first numbers."""
    assert [0x719965F2DEBB5C86, 0xD0FF12852BFEFAA0] == draws.words(42, 1, 2).tolist()
    uniform = [(0x719965F2DEBB5 + 0.5) / 2**52, (0xD0FF12852BFEF + 0.5) / 2**52]
    assert uniform == draws.uniforms(draws.words(42, 1, 2)).tolist()
    bits = f"{0x719965F2DEBB5C86:064b}"[::-1]
    assert [-1.0 if bit == "1" else 1.0 for bit in bits] == draws.signs(42, 1, 64).tolist()
    thirds = [0x719965F2 * 3 >> 32, 0xD0FF1285 * 3 >> 32]
    assert thirds == draws.below(draws.words(42, 1, 2), 3).tolist()


@pytest.mark.parametrize("case", [*feature_hashes.cases()], ids=lambda case: case.name)
def test_weights_never_change(case):
    """Equal to the last bit: older versions have drawn these."""
    assert feature_hashes.golden()[case.name] == feature_hashes.hashed(case)


def test_every_golden_hash_is_still_made():
    """The file holds no hash that no case checks."""
    assert {case.name for case in feature_hashes.cases()} == feature_hashes.golden().keys()


@pytest.mark.slow
def test_weights_do_not_depend_on_simd():
    """Without the vector units that NumPy would use, the bits are the same."""
    found = np._core._multiarray_umath.__cpu_features__
    disabled = [name for name in np._core._multiarray_umath.__cpu_dispatch__ if found[name]]
    env = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled), "PYTHONPATH": "core"}
    done = subprocess.run(
        [sys.executable, feature_hashes.__file__],
        cwd=Path(feature_hashes.__file__).parents[2],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 differ" in done.stdout


@given(probabilities)
@example(0.5)
@example(0.075)
@example(0.925)
@example(math.exp(-25))
def test_normal_quantiles_are_scipys(p):
    """To 2e-15 of their value, down to the smallest probability that is ever drawn."""
    found = float(draws.normal_quantiles(np.array([p]))[0])

    assert float(special.ndtri(p)) == pytest.approx(found, rel=2e-15, abs=1e-16)


@given(st.floats(1e-300, 1e300) | probabilities | st.floats(0.5, 2))
@example(1.0)
@example(2**-0.5)
@example(math.nextafter(1.0, 0.0))
def test_the_logarithm_is_the_platforms(x):
    """To two units in the last place, and exactly 0 at 1."""
    found = float(draws.logarithm(np.array([x]))[0])

    assert abs(math.log(x) - found) <= 2 * math.ulp(math.log(x))


@given(st.integers(0, 2**64 - 1))
@example(0)
@example(2**64 - 1)
def test_uniforms_are_neither_0_nor_1(word):
    """So that their quantiles and logarithms are finite; and both ends are equally far."""
    words = np.array([word, word ^ 2**64 - 1], dtype=np.uint64)
    low, high = draws.uniforms(words)

    assert 0 < low < 1
    assert low + high == 1


@pytest.mark.parametrize("stream", [1, 2])
def test_draws_follow_their_laws(stream):
    """Kolmogorov and Smirnov see nothing amiss with normals and chis; signs come out even."""
    normals = draws.normals(5, stream, 20_000)
    assert stats.kstest(normals, "norm").pvalue > 0.01
    for dof in (1, 3, 64, draws.SUMMED, draws.SUMMED + 1, 10**6):
        few = draws.chis(dof, 5, stream, 500)
        assert stats.kstest(few, "chi", args=(dof,)).pvalue > 0.01, dof
    assert abs(draws.signs(5, stream, 20_000).sum()) < 4 * 20_000**0.5
    counts = np.bincount(draws.below(draws.words(5, stream, 20_000), 7))
    assert stats.chisquare(counts).pvalue > 0.01


def test_asking_for_more_changes_none_of_the_first(monkeypatch):
    """A stream is read from its start, in whatever slices."""
    monkeypatch.setattr(draws, "SLICE", 4 * draws.SUMMED)
    for drawn in (draws.normals, draws.signs):
        assert np.array_equal(drawn(5, 1, 10), drawn(5, 1, 1000)[:10])
    for dof in (3, draws.SUMMED, draws.SUMMED + 1):
        long = draws.chis(dof, 5, 1, 11)
        assert np.array_equal(draws.chis(dof, 5, 1, 7), long[:7])
        if dof <= draws.SUMMED:
            squares = draws.normals(5, 1, 7 * dof).reshape(7, dof) ** 2
            np.testing.assert_allclose(np.sqrt(squares.sum(axis=1)), long[:7], rtol=1e-14)
    few, many = (RandomFourier(features=features).settled_at(1.0) for features in (64, 512))
    assert np.array_equal(few.weights(3), many.weights(3)[:32])


def test_weights_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    """Row by row, the same: orthogonal ones of two blocks, and independent ones."""
    maps = [RandomFourier(Matern(0.1), 260, kind) for kind in ("orthogonal", "fourier-pair")]
    whole = [map_.weights(100) for map_ in maps]
    monkeypatch.setattr(draws, "SLICE", draws.SUMMED)

    for weights, map_ in zip(whole, maps, strict=True):
        assert np.array_equal(weights, map_.weights(100))


@pytest.mark.parametrize("dimensions", range(1, len(sobol._JOE_KUO) + 2))
def test_sobol_points_are_scipys(dimensions):
    """Every bit of scipy's unscrambled points."""
    expected = stats.qmc.Sobol(dimensions, scramble=False).random_base2(11)

    assert np.array_equal(expected, sobol.points(2048, dimensions) * 2.0**-sobol.BITS)


def test_shifted_points_are_as_even():
    """Each cell of a grid that Sobol points fill evenly still holds as many; each seed's differ."""
    shifted = draws.uniforms(sobol.shifted(256, 2, seed=3, stream=1))
    cells = np.floor(shifted * 16).astype(int) @ [16, 1]

    assert [1] * 256 == np.bincount(cells).tolist()
    assert not np.array_equal(shifted, draws.uniforms(sobol.shifted(256, 2, seed=4, stream=1)))


@pytest.mark.parametrize("p", [1, 2, 64, 128, 1024])
def test_transforms_multiply_by_hadamards_matrix(p):
    """Both: exactly where numbers are whole, whatever the order of the sums."""
    X = np.random.default_rng(p).integers(-(2**30), 2**30, (3, p)).astype(float)
    expected = X @ scipys_hadamard(p)

    assert np.array_equal(expected, hadamard.butterflies(X))
    assert np.array_equal(expected, hadamard.transform(X))
    assert np.array_equal(
        scipys_hadamard(p)[: p // 2 + 1], hadamard.sylvester(range(p // 2 + 1), p)
    )


@pytest.mark.parametrize(("p", "blocks", "n"), [(64, 1, 64), (64, 3, 150), (256, 1, 9)])
def test_products_with_signs_are_those_with_their_rows(p, blocks, n):
    """Forth and back, several blocks and few rows of one; the rows are orthogonal."""
    rng = np.random.default_rng(n)
    signs = rng.choice([-1.0, 1.0], (blocks, 3, p))
    rows = [hadamard.rows_of(D, range(min(p, n - p * b))) for b, D in enumerate(signs)]
    for block in rows:
        assert np.array_equal(p**3 * np.eye(len(block)), block @ block.T)
    M, X, Y = np.vstack(rows), rng.standard_normal((5, p)), rng.standard_normal((5, n))

    np.testing.assert_allclose(X @ M.T, hadamard.multiply(X, signs, n), atol=1e-12 * p**2)
    np.testing.assert_allclose(Y @ M, hadamard.multiply_back(Y, signs), atol=1e-12 * p**2)


def test_padding_is_never_small():
    """A power of two, at least 64: fewer signs are too few choices."""
    assert [64, 64, 64, 128, 2048] == [hadamard.padded_size(n) for n in (1, 63, 64, 65, 2048)]


def test_golden_hashes_are_readable():
    """JSON, a line for each: a diff shows which map changed."""
    text = feature_hashes.PATH.read_text()
    assert len(json.loads(text)) == len(text.splitlines()) - 2
