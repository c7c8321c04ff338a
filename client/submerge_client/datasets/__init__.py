"""Readings from files: any of the formats below becomes a `Table`, or a `Flow` of blocks.

Whitespace matrices, CSV, NumPy's `.npy` and the Intel Lab log, each plain or gzip,
recognised by what is in them. What cannot be a table of readings is refused in one
line that says where; what is merely left out is said in the table's notes. No row is scaled,
filled or scored here.
"""

from submerge_client.datasets.flow import Flow
from submerge_client.datasets.reading import read
from submerge_client.datasets.table import Table

__all__ = ["Flow", "Table", "read"]
