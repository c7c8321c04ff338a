"""`submerge detect`: the alarms that a client would have raised on recorded readings."""
