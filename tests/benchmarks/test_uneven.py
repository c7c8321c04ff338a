"""The generated rows of uneven leverage: the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np

from plants.uneven import uneven


def test_rows_have_the_same_bits_everywhere():
    """What was measured on some machine can be measured again on any other."""
    digest = hashlib.blake2b(uneven().tobytes(), digest_size=8).hexdigest()

    assert "1f3b11a8d4512842" == digest


def test_few_rows_hold_most_of_a_polynomial_kernel():
    """One row in a hundred has nine tenths of the energy of features of degree 4."""
    energy = np.sort((uneven() ** 2).sum(axis=1) ** 4)[::-1]

    assert energy[: len(energy) // 100].sum() > 0.9 * energy.sum()


def test_most_rows_have_a_steep_spectrum():
    """The ninth channel is some 27 times weaker than the first, as j^-3/2 says."""
    spread = np.median(np.abs(uneven()), axis=0)

    assert 10 < spread[0] / spread[-1] < 27
