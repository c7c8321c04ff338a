"""Alarms of one node: `detect` takes an `AlarmDetector`, a frozen value, from block to block."""
