"""Random numbers of the system: in their bounds, and never twice the same."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import UsageError
from submerge.protocol.names import RandomSource
from submerge_client import memory
from submerge_client.memory import SystemEntropy


@pytest.mark.parametrize("source", [SystemEntropy(), np.random.default_rng(0)])
def test_a_source_draws_within_its_bounds(source: RandomSource) -> None:
    """The system's and NumPy's alike: a node may have either."""
    fractions = [source.random() for _ in range(200)]
    wholes = [source.integers(2**63) for _ in range(200)]

    assert all(0.0 <= each < 1.0 for each in fractions)
    assert 0.2 < sum(fractions) / 200 < 0.8
    assert all(0 <= each < 2**63 for each in wholes)
    assert max(wholes) > 2**60
    assert 200 == len(set(fractions)) == len(set(wholes))
    assert 24 == len(source.bytes(24))


@pytest.mark.parametrize(("drawn", "expected"), [(b"\x00", 0.0), (b"\xff", 1.0 - 2.0**-53)])
def test_the_ends_of_the_range_are_exact(monkeypatch, drawn, expected) -> None:
    """A wait is never its ceiling itself."""
    monkeypatch.setattr(memory.os, "urandom", lambda n: drawn * n)

    assert expected == SystemEntropy().random()


@pytest.mark.parametrize("source", [SystemEntropy(), np.random.default_rng(0)])
@pytest.mark.parametrize("high", [1, 2, 3, 5, 8])
def test_each_number_below_a_bound_is_drawn(source: RandomSource, high) -> None:
    """And none else, whether the bound is a power of two or not."""
    assert set(range(high)) == {source.integers(high) for _ in range(1000)}


def test_a_number_that_is_too_large_is_drawn_again(monkeypatch) -> None:
    """All numbers are as likely: 3, of [0, 4), is not made 0 of [0, 3)."""
    drawn = iter([3, 255, 2])
    monkeypatch.setattr(memory.os, "urandom", lambda n: next(drawn).to_bytes(n, "little"))

    assert 2 == SystemEntropy().integers(3)


@pytest.mark.parametrize("high", [-1, 0, 2**63 + 1])
def test_a_bound_outside_its_range_is_refused(high) -> None:
    """There is no number to draw, or eight bytes may not do."""
    with pytest.raises(UsageError, match=r"expected a bound of 1 to 2\*\*63"):
        SystemEntropy().integers(high)
