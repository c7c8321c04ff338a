"""Random numbers of the system: in their bounds, and never twice the same."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import UsageError
from submerge.protocol.randomness import RandomSource
from submerge_client.memory import entropy
from submerge_client.memory.entropy import SystemEntropy


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
    monkeypatch.setattr(entropy.os, "urandom", lambda n: drawn * n)

    assert expected == SystemEntropy().random()


@pytest.mark.parametrize("high", [0, 3, 2**64])
def test_only_powers_of_two_are_drawn_without_bias(high) -> None:
    """Any other bound needs another way to draw."""
    with pytest.raises(UsageError, match="a power of two up to"):
        SystemEntropy().integers(high)
