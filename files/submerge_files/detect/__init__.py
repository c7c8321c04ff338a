"""`submerge detect`: the alarms that a client would have raised on recorded readings. Rows are
judged by `submerge.history.detection`, which is the client's own monitor.
"""
