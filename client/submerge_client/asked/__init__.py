"""What a client says when operators ask: its settings without secrets, and what its machine knows
of its newest rows.

Who may ask is decided above it, and whether a question is taken in `submerge.client.node`.
"""
