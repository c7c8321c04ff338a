"""Jobs: what a fleet computes in rounds, beside its streams; no ledger and no model changes.

A root asks its children for contributions, aggregators merge them, clients hold the points.
"""
