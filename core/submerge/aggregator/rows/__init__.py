"""The rows of a group: what reports become, which may change them, and what they add up to.

`ledger` decides and remembers; `pool` merges. Nothing is sent from here, and nothing is ordered.
"""
