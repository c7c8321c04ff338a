"""Histories: what a root merges beside the rows of nodes, at an operator's order.

They are model files of recordings, or of other fleets. No node reports them, so nothing of the
protocol's numbers, ages and bounds applies to them.
"""
