"""What a client says when operators ask: its settings, and what its machine knows of its newest
rows.
"""
