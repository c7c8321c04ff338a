"""Jobs: what a fleet computes in rounds, beside its streams; no ledger and no model changes.

A root asks its children for contributions, aggregators merge them, clients hold the points. Roles
are machines without I/O: `effects = role.step(event, now)`. docs/decisions/0057 says who leaves.
"""
