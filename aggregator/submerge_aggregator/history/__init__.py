"""The history of an aggregator, for people: how close nodes came to alarms, past alarms, versions.

Nothing is decided by it, and losing it costs nothing else.
"""
