"""write_whole(): lines on standard output, which score lines and alarms share, are never cut.

With PYTHONUNBUFFERED, as in our images, standard output has no buffer. One write may then take a
part of the data, if a signal comes while the reader is slow (`docker pause`, SIGSTOP).
"""

from __future__ import annotations

import errno
import os
from typing import BinaryIO


def write_whole(stream: BinaryIO, data: bytes) -> None:
    """Write all of `data`, and flush it.

    Raises OSError if the reader is gone, or a stream that does not block is full.
    """
    left = memoryview(data)
    while left:
        taken: int | None = stream.write(left)
        if taken is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[taken:]
    stream.flush()
