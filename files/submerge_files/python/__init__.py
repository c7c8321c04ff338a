"""`submerge.Model`: the commands `fit`, `score` and `detect` for Python, on files and on frames. A
frame of pandas or polars becomes `Recorded` rows, and what comes back is a frame again. Rows are
learnt by `submerge.history` and judged as the commands judge them; nothing here decides.
"""

from submerge_files.python.model import HistoryModel

__all__ = ["HistoryModel"]
