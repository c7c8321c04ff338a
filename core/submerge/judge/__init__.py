"""The one way to judge a row: `prepare`, then `score`, then a `Decision`.

`prepare` makes a block of rows: scaled, filled, lifted into features, with the reason of each row
that cannot be scored. `score` compares a block with a model: each statistic, the limit that it is
over, and the channels to blame. `decision` holds which rows of a block are alarmed and which are
learnt (`client.alarms.detect` makes it). `prepare` measures how much time the rows stand for.

A client, `submerge score` and everything else that judges rows call these. Nothing here remembers
or learns a row, raises an alarm, or reads a clock.
"""
