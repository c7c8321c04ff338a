"""Readings from files: any of the formats below becomes a `Table`, or a `Flow` of blocks.

Whitespace matrices, CSV, NumPy's `.npy` and the Intel Lab log, each plain or gzip, recognised by
their content. A file that is no table of readings is refused in one line with the place. The
table's notes say what was left out.
"""

from submerge_client.datasets.reading import Flow, read
from submerge_client.datasets.table import Table

__all__ = ["Flow", "Table", "read"]
