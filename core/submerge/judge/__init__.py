"""How a row is judged, in one way for all: `prepare`, then `score`; `Decision` is what follows.

`prepare` makes a block of rows: scaled, filled, lifted into features, with the reason of each row
that cannot be scored. `score` holds a block against a model: each statistic, the limit that it is
over, and the channels to blame. `decision` is what an alarm detector says of the rows of a block
(`client.detect` makes it). `clock` is how much time the rows stand for.

A client, `submerge score` and whatever else judges rows call these. Nothing here remembers a row,
learns one, raises an alarm, or reads a clock.
"""
