"""Histories: what a root merges beside the rows of nodes, at an operator's order."""
