"""Streaming PCA, linear algebra alone: nothing here knows nodes, messages, limits or alarms."""
