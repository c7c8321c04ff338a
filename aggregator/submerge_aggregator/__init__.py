"""The aggregator as a program: it serves children, keeps a store, and publishes models.

The decisions are made in `submerge.aggregator`, which does no input or output. Uplinks, log lines,
clocks and configuration tools are those of `submerge_client`.
"""
