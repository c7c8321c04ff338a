"""The orthogonality battery: bases stay orthonormal where transcribed algorithms fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from submerge import SAPCA, Schema, Subspace, _linalg, contributions, hotelling, spe
from submerge.errors import ValuesError
from submerge.features import Gaussian
from submerge.pca.missing import fill
from support import checks, oracle
from support.strategies import rows_of

BLOCKS, BLOCK, DIM = 100, 20, 80

SIZES = [BLOCK, 90]
"""Blocks for which the full eigenproblem is solved, and for which `pca.ritz` steps replace it."""


def noise(seed: int = 0) -> np.ndarray:
    return rows_of("noise", BLOCKS * BLOCK, DIM, seed=seed)


def low_rank() -> np.ndarray:
    return rows_of("noise", BLOCKS * BLOCK, 3, seed=1) @ rows_of("noise", 3, DIM, seed=2)


def constant_channels() -> np.ndarray:
    X = noise()
    X[:, 3:] = 7.0
    return X


def late_sensor() -> np.ndarray:
    X = low_rank()
    X[: len(X) // 2, 0] = 0.0
    X[len(X) // 2 :, 0] = noise()[len(X) // 2 :, 0] * 1e3
    return X


def steep(last: float) -> np.ndarray:
    return noise() * last ** (np.arange(DIM) / 9)


def huge_mean(mean: float) -> np.ndarray:
    return noise() + mean


def in_a_plane() -> np.ndarray:
    X = noise()
    X[:, 2:] = X[:, :1] - X[:, 1:2]
    return X


def one_row_repeated() -> np.ndarray:
    return np.repeat(noise()[:1], BLOCKS * BLOCK, axis=0)


def zeros_then_data() -> np.ndarray:
    X = noise()
    X[: len(X) // 2] = 0.0
    return X


def tiny() -> np.ndarray:
    return noise() * 1e-120


def vast() -> np.ndarray:
    return noise() * 1e120


def jumps() -> np.ndarray:
    X = noise()
    X[::BLOCK] += 1e8
    return X


BATTERY = {
    "noise": noise(),
    "rank 3 of 80": low_rank(),
    "constant channels": constant_channels(),
    "a sensor that starts late": late_sensor(),
    "s_r/s_1 = 1e-5": steep(1e-5),
    "s_r/s_1 = 1e-9": steep(1e-9),
    "s_r/s_1 = 1e-13": steep(1e-13),
    "mean 1e3": huge_mean(1e3),
    "mean 1e8": huge_mean(1e8),
    "a plane": in_a_plane(),
    "one row repeated": one_row_repeated(),
    "zeros, then data": zeros_then_data(),
    "as small as 1e-120": tiny(),
    "as large as 1e120": vast(),
    "outliers of 1e8": jumps(),
}

SINGLE = {name: X for name, X in BATTERY.items() if not name.startswith(("as small", "as large"))}
"""Float32 holds nothing of 1e-120 or 1e120; every other case applies to it."""


@pytest.mark.parametrize("factor", [1.0, 0.99])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("oversample", [0, 5])
@pytest.mark.parametrize("block", SIZES)
@pytest.mark.parametrize("name", BATTERY)
def test_double_precision_stays_orthonormal(name, block, oversample, center, factor):
    """||U'U - I|| <= 1e-12 after each block of 2000 rows, of which 20 make 100."""
    engine = SAPCA(
        10,
        oversample=oversample,
        block_size=block,
        exact="never",
        center=center,
        forgetting_factor=factor,
    )
    for start in range(0, BLOCKS * BLOCK, block):
        engine.partial_fit(BATTERY[name][start : start + block])
        checks.orthonormal(engine.subspace.basis, 1e-12)


@pytest.mark.parametrize("factor", [1.0, 0.99])
@pytest.mark.parametrize("oversample", [0, 5])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("block", SIZES)
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_stays_orthonormal(name, block, center, oversample, factor):
    """||U'U - I|| <= 1e-5 after each block of 2000 rows, of which 20 make 100."""
    engine = SAPCA(
        10,
        oversample=oversample,
        block_size=block,
        exact="never",
        center=center,
        forgetting_factor=factor,
        dtype=np.float32,
    )
    for start in range(0, BLOCKS * BLOCK, block):
        engine.partial_fit(SINGLE[name][start : start + block])
        checks.orthonormal(engine.subspace.basis)


@pytest.mark.parametrize("name", ["rank 3 of 80", "constant channels", "s_r/s_1 = 1e-9"])
def test_deficient_rows_take_the_guarded_way_and_are_counted(name):
    """Where squaring loses the digits, QR has them; sigma is right either way."""
    engine = SAPCA(10, block_size=BLOCK, exact="never").partial_fit(BATTERY[name])

    assert engine.fallbacks > 0
    truth = oracle.twin(BATTERY[name])
    held = min(3, engine.rank)
    np.testing.assert_allclose(
        engine.subspace.sigma[:held] ** 2, truth.eigenvalues[:held], rtol=1e-9
    )


def test_sound_rows_take_the_fast_way():
    """No block of plain noise needs the guard."""
    assert SAPCA(10, block_size=BLOCK, exact="never").partial_fit(BATTERY["noise"]).fallbacks == 0


def test_no_direction_is_invented():
    """Three directions in the data are three in the model, whatever was asked for."""
    engine = SAPCA(10, block_size=BLOCK, exact="never", center=False).partial_fit(low_rank())

    assert engine.subspace.rank == 3
    assert engine.rank == 3
    assert SAPCA(10, block_size=BLOCK).partial_fit(one_row_repeated()).rank == 0


@pytest.mark.parametrize("dim", [1, 255, 1024, 1025, 3000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slices_are_seamless(dim, dtype):
    """However wide, the Gram matrix and products are those of the whole."""
    rows = rows_of("noise", 7, dim, seed=0).astype(dtype)
    exact = rows.astype(np.float64)
    left = rows_of("noise", 3, 7, seed=1)
    out = rows.copy()

    _linalg.multiply(left, rows, out=out[:3])

    # Sums are float64 for float32 rows too; only what is stored is rounded.
    np.testing.assert_allclose(_linalg.inner(rows), exact @ exact.T, rtol=1e-12, atol=1e-11)
    stored = 1e-13 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(out[:3], left @ exact, rtol=stored, atol=stored)


def test_the_guarded_way_and_the_fast_way_agree(monkeypatch):
    """On sound rows, forcing the guard changes nothing but rounding."""
    stack = rows_of("decaying", 30, 200, seed=0)
    fast = _linalg.leading(stack, 8)
    monkeypatch.setattr(_linalg, "GUARD", 10.0)

    guarded = _linalg.leading(stack, 8)

    assert (False, True) == (fast.guarded, guarded.guarded)
    np.testing.assert_allclose(fast.sigma, guarded.sigma, rtol=1e-12)
    assert np.isclose(fast.dropped, guarded.dropped, rtol=1e-10)
    assert oracle.angle(fast.rows.T, guarded.rows.T) < 1e-10


@pytest.mark.parametrize("last", [1e-2, 1e-4, 1e-5, 1e-6, 1e-8])
def test_small_singular_values_keep_their_digits(last):
    """Squaring must not cost them: seven digits down to 1e-8 of the largest."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((n, 10)))[0] for n in (30, 200))
    sigma = np.geomspace(1, last, 10)

    found = _linalg.leading((left * sigma) @ right.T, 10)

    np.testing.assert_allclose(found.sigma, sigma, rtol=1e-7)


def test_equal_singular_values_stay_in_order():
    """Descending, though the Cholesky step moves equal values by a rounding error."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        left, right = (np.linalg.qr(rng.standard_normal((n, 8)))[0] for n in (8, 60))
        found = _linalg.leading((left * [1.0, *[1e-3] * 7]) @ right.T, 8)

        assert (np.diff(found.sigma) <= 0).all()


def test_the_sign_rule():
    """The entry of largest size in each row becomes positive."""
    rows = np.array([[1.0, -3.0, 2.0], [4.0, -1.0, 0.0]])

    assert [-1.0, 1.0] == list(_linalg.signs(rows))
    # Of equals the first decides, so that a row and its opposite become the same.
    ties = np.array([[0.0, -2.0, 2.0], [0.0, 2.0, -2.0], [0.0, 0.0, 0.0]])
    assert [-1.0, 1.0, 1.0] == list(_linalg.signs(ties))
    assert len(_linalg.signs(np.empty((0, 3)))) == 0


def masked_rows(seed: int, fill: float = -9999.0) -> tuple[np.ndarray, np.ma.MaskedArray]:
    """Rows with gaps as NaN, and the same as netCDF4 has them: a fill value under a mask."""
    rows = rows_of("noise", 600, 4, seed=seed) @ rows_of("noise", 4, 4, seed=seed + 1) + 20
    mask = np.zeros(rows.shape, dtype=bool)
    mask[::20, 1] = True
    return np.where(mask, np.nan, rows), np.ma.masked_array(np.where(mask, fill, rows), mask)


class Variable:
    """A variable of a file, which becomes an array only when it is asked for one."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self._rows


FORMS = {
    "array": lambda rows: rows,
    "single": lambda rows: rows.astype(np.float32),
    "list": list,
    "variable": Variable,
    "objects": lambda rows: np.ma.masked_array(rows.data.astype(object), rows.mask),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_under_a_mask_is_a_gap(form: str) -> None:
    """Masked values are NaN in whatever form they come, and their type stays a float's."""
    gaps, masked = masked_rows(3)

    found = np.asarray(_linalg.unmasked(FORMS[form](masked)))

    assert np.allclose(gaps, found.astype(float), rtol=1e-6, equal_nan=True)
    assert not isinstance(_linalg.unmasked(FORMS[form](masked)), np.ma.MaskedArray)


def test_whole_numbers_under_a_mask_become_gaps_too() -> None:
    """A mask over integers gives floats; without a mask they stay integers, -9999 as well."""
    masked = np.ma.masked_equal(np.array([[1, -9999], [3, 4]]), -9999)

    assert np.array_equal([[1, np.nan], [3, 4]], _linalg.unmasked(masked), equal_nan=True)
    plain = masked.data
    assert _linalg.unmasked(plain) is plain
    assert "i" == _linalg.unmasked(np.ma.masked_array(masked.data)).dtype.kind


MODEL = SAPCA(rank=2).partial_fit(rows_of("noise", 100, 4, seed=9) + 20)


@pytest.mark.parametrize(
    "take",
    [
        SAPCA(rank=2).partial_fit,
        MODEL.transform,
        MODEL.score_samples,
        lambda rows: Subspace.of(rows, Schema(4), rank=2),
        lambda rows: Subspace.of(list(rows), Schema(4), rank=2),
    ],
)
def test_masked_rows_are_refused_where_gaps_are(take: Callable[[object], object]) -> None:
    """An engine without gaps refuses a masked array as it refuses NaN; it learnt fill values."""
    with pytest.raises(ValuesError, match="got nan in row 0, column 1"):
        take(masked_rows(5)[1])


@pytest.mark.parametrize("statistic", [spe, hotelling, contributions, fill, Gaussian(0.1)])
def test_masked_rows_are_computed_as_gaps(statistic: Callable[..., object]) -> None:
    """Statistics and kernels of masked rows are those of the same rows with NaN."""
    gaps, masked = masked_rows(7)
    of = np.ones((2, 4)) if isinstance(statistic, Gaussian) else MODEL.shown

    expected, found = statistic(gaps, of), statistic(masked, of)

    assert np.array_equal(first(expected), first(found), equal_nan=True)
    assert not isinstance(first(found), np.ma.MaskedArray)


def first(found: object) -> object:
    return found[0] if isinstance(found, tuple) else found
