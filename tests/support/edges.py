"""Names and numbers up to the edges of what is believed (docs/wire.md), drawn."""

from __future__ import annotations

from hypothesis import strategies as st

MOST, READINGS = 2**62, 2**53
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

names = st.text(LETTERS, min_size=1, max_size=64) | st.sampled_from(["A" * 64, ".", "-"])
numbers = st.integers(0, 1000) | st.integers(0, MOST) | st.just(MOST)
readings = st.integers(0, 1000) | st.integers(0, READINGS) | st.just(READINGS)
reals = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(0, allow_infinity=False)
versions = st.integers(0, 2**63 - 1)
clients = st.integers(0, 2**40)
scores_seen = st.lists(st.floats(0, 1e300), max_size=60)
"""Zero among them; and hundreds of orders of magnitude, so that a sketch has to be coarse."""
