"""Readings from files, for a device: CSV and other text, and NumPy's `.npy`, each plain or gzip."""

from submerge_client.datasets.table import Flow

__all__ = ["Flow"]
