"""A group's rows: `ledger` decides which reports change them and remembers, `pool` merges."""
