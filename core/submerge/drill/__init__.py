"""The drill: which faults would raise an alarm, tried on copies of rows."""
