"""Operators over the network: who they are, what each may do, and what is recorded of it."""
