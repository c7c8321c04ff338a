"""Recorded readings with times, from files of many formats, as a stream of `Recorded`.

docs/histories.md lists the formats. Nothing is unpickled, and Arrow extension types are refused.
"""

from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.recordings import Recordings, open_recordings

__all__ = ["ReadingOptions", "Recordings", "open_recordings"]
