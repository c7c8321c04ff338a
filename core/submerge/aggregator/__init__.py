"""The aggregator as a machine without I/O, in its parts; `submerge_aggregator` drives it."""
