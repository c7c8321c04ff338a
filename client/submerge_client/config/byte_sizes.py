"""in_bytes(): a size as people write it: 800kB, 3MB, 4MiB."""

from __future__ import annotations

import math
import re

from submerge import UsageError
from submerge_client.config.spans import NUMBER

BYTES = {"B": 1, "kB": 1000, "KiB": 1 << 10, "MB": 10**6, "MiB": 1 << 20, "GB": 10**9}

SIZE = re.compile(f"{NUMBER}({'|'.join(BYTES)})")


def in_bytes(text: str) -> int:
    """Return the bytes of `500kB`, `3MB` or `4MiB`, to the next lower whole number.

    Raises UsageError if it is no size, or an infinite one.
    """
    found = SIZE.fullmatch(text)
    if found is None or not math.isfinite(size := float(found[1]) * BYTES[found[2]]):
        units = ", ".join(BYTES)
        raise UsageError(f"expected a size such as 500kB or 3MB, got {text!r}; units are {units}")
    return int(size)
