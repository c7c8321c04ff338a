"""Which of many subspaces lie far from the others, and the middle of the rest.

Values only. Which children of an aggregator are left out, and when they come back, is decided
in `submerge.aggregator`.
"""
