"""Recorded readings: read, fit, detect, score, drill, and the class `Model`."""
