"""The aggregator as a machine without I/O: `node.AggregatorNode` and its parts.

It takes reports and operators' orders in `step(event, now)` and returns effects. It opens nothing
and reads no clock; `submerge_aggregator` drives it.
"""
