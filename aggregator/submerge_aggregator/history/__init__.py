"""The history of an aggregator, for people: how close nodes came to alarms, past alarms, versions.

It has a file of its own beside the store, of bounded size. Nothing is decided by it, and losing it
costs nothing else.
"""
