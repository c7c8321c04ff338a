"""Generated rows do not depend on the processor's kernels of BLAS."""

from __future__ import annotations

import platform

import numpy as np
import pytest
import threadpoolctl

import core_types
from hard_streams import _orthogonal
from report import Table
from submerge_lab.plants.ordered import product


def chooses_at_run_time() -> bool:
    """Whether OPENBLAS_CORETYPE means something to this NumPy."""
    pools = threadpoolctl.threadpool_info()
    return platform.machine() in ("x86_64", "AMD64") and any(
        pool["internal_api"] == "openblas" and pool.get("architecture") for pool in pools
    )


@pytest.mark.slow
@pytest.mark.skipif(not chooses_at_run_time(), reason="needs x86-64 and OpenBLAS's core types")
def test_rows_are_equal_by_hash_under_two_core_types():
    """Each generator's first rows, in processes of their own."""
    both = core_types.both_hashes()
    if both[0][core_types.LOADED] == both[1][core_types.LOADED]:
        pytest.skip("this OpenBLAS has one core type")

    assert [] == core_types.differing(both)
    assert len(both[0]) > 30


def test_a_difference_has_the_generators_name():
    """The core types themselves are no rows."""
    one = {core_types.LOADED: "Haswell", "Room": "a", "loop": "b"}
    other = {core_types.LOADED: "Katmai", "Room": "a", "loop": "c"}

    assert ["loop"] == core_types.differing([one, other])


def test_columns_of_measured_memory_can_be_left_out():
    """By their names, wherever they stand."""
    table = Table("t", {"method": "", "peak kB": ".0f", "rank": "d"}, [("a", 1.0, 2)])

    assert [("a", 2)] == core_types.less(table, ("peak kB",)).rows


def test_a_product_is_that_of_blas_to_rounding():
    """Only the order of its sums is its own."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((40, 7)), rng.standard_normal((7, 30))

    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", [(12, 12), (12, 5)])
def test_reflections_are_those_of_lapack_to_rounding(shape):
    """So that streams are what they were, but for the last bits."""
    columns = np.random.default_rng(1).standard_normal(shape)
    theirs = np.linalg.qr(columns, mode="complete")[0]

    np.testing.assert_allclose(_orthogonal(columns), theirs, rtol=0, atol=1e-13)
