"""The page of an aggregator: what a browser shows of a fleet, and the orders that it sends.

It reads what the admin API answers, and gives orders through it; it holds no rows and decides
nothing. Everything that a browser asks passes `gate.PageGate` first.
"""
