"""Histories: rows that were recorded before there was a fleet, learnt in two passes.

Pass 1 makes summaries of spans of time (folds); pass 2 judges each fold by a model of the others.
"""
