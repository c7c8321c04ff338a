"""Alarms of one node: how scores become an alarm, and what is withheld from learning.

`detector.AlarmDetector` is the state, a frozen value; `detect.detect` takes it from block to block.
Limits come from the highest scores of the group's blocks (`limits`, `blocks`), an alarm is an entry
of `log`, and `blame` says which channels it is about.
"""
