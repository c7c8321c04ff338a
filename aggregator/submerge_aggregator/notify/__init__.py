"""Notifications: alarms of all nodes below an aggregator, sent to people."""
