"""The one way to judge a row: `prepare`, then `score`, then a `Decision` (`client.alarms.detect`).

Nothing here remembers or learns a row, raises an alarm, or reads a clock.
"""
