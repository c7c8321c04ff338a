"""What is true of a simulated fleet: oracles that know each reading, alarm and history, and checks.
`oracle.Oracle` follows the readings, and the others are called by it or stand beside it in `run`.
Each records the invariants of docs/protocol.md that a fleet violates.
"""
