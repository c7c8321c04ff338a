"""`submerge.Model`: the commands `fit`, `score` and `detect` for Python, on files and on frames."""

from submerge_files.python.model import HistoryModel

__all__ = ["HistoryModel"]
