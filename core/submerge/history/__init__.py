"""Histories: rows that were recorded before there was a fleet, learnt in two passes."""
