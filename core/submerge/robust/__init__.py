"""Outliers among subspaces, and the geometric median of the rest.

These are pure functions of values. `submerge.aggregator` decides which children of an aggregator
are left out, and when they come back.
"""
