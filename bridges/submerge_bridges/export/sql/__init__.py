"""A recipe as SQL: one view that scores the rows of a table, and one that checks it.

`script.py` writes the whole text, `scores.py` and `alarms.py` the queries in it, `expressions.py`
and `column_names.py` their parts. Nothing here opens a database.
"""
