"""Recorded readings with times, from files of many formats, as a stream of `Recorded`.

| format | known by | times | read |
|---|---|---|---|
| CSV (`,` or `;`), TSV, whitespace | UTF-8 | a column of text or numbers | block by block |
| Parquet | `PAR1` | a column of a time type, or as in text | block by block |
| Arrow IPC, Feather 2 | `ARROW1`, or a stream | likewise | batch by batch |
| NumPy `.npy` | its first bytes | none | at once |
| Intel Lab log | date, time, epoch, mote | of each epoch | at once |
| Excel, OpenDocument | as zip archives | as in text | the first sheet, at once |

Text, `.npy` and logs may be gzip. Text is read by pyarrow if it is there, else row by row. Nothing
is unpickled, and Arrow extension types are refused. `pip install 'submerge[files]'` brings what
reads Parquet and Arrow, and `excel` what reads workbooks.
"""

from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.recordings import Recordings, open_recordings

__all__ = ["ReadingOptions", "Recordings", "open_recordings"]
