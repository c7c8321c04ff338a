"""Outliers among subspaces, and the geometric median of the rest: pure functions of values."""
