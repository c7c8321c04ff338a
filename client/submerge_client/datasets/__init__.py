"""Readings from files, for a device: CSV and other text, and NumPy's `.npy`, each plain or gzip.

`submerge_files.reader` reads these and more, with times. A file that is no table is refused in one
line with the place.
"""

from submerge_client.datasets.table import Flow

__all__ = ["Flow"]
