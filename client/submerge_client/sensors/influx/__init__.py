"""Metrics of Telegraf as rows: Influx line protocol, names, rows by timestamp, and the way on.

`line_protocol` (what a line means), `readings` (which channel a field is), `readings` (lines of one
timestamp) and `readings` (all of that together) do no I/O. `outlet` lets metrics go on to standard
output, and `readings` reads standard input.
"""
