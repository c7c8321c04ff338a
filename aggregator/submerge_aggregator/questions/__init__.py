"""Questions to an aggregator's machine, and the plain values that answer them.

They read the machine between two batches and change nothing.
"""
