"""arrays_of(): the arrays of an uncompressed .npz file, within bounds.

`numpy.load` decompresses and allocates what a file claims: a forged kilobyte can ask for any
memory. Here an array is a view of bytes that are there. Rules:

1. Only named entries, each once, stored as they are (as `numpy.savez` does): no compression.
2. An entry has exactly the bytes that its header claims, of one of three types.
3. Together the entries are no longer than the file.
"""

from __future__ import annotations

import io
import math
import struct
import tokenize
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from submerge._linalg import Storage
from submerge.errors import PeerError

if TYPE_CHECKING:
    import zipfile  # otherwise late: 0.9 MiB, which a device that reads no saved engine can spare

TYPES = tuple(map(np.dtype, ("<f8", "<f4", "|u1")))

MOST_HEADER = 4096
"""Most letters of an array's header; our own have 128."""

NOT_ZIP = (
    # What zipfile and NumPy's header parser raise on bytes that are not theirs, beside BadZipFile.
    # zipfile raises RuntimeError for flags that mean "encrypted" or "compressed otherwise".
    *(struct.error, EOFError, OSError, RuntimeError, LookupError),
    *(ValueError, TypeError, AttributeError, ArithmeticError, SyntaxError, tokenize.TokenError),
    MemoryError,
)


def arrays_of(data: bytes, names: Collection[str]) -> dict[str, Storage]:
    """Return the arrays in a file by name, read-only; some of `names` may be missing.

    Raises
    ------
    PeerError
        If the bytes are not such a file.
    """
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _arrays(file, len(data), {f"{name}.npy": name for name in names})
    except (zipfile.BadZipFile, *NOT_ZIP) as error:
        # NumPy's message advises to allow pickles, so it is not repeated.
        raise PeerError(f"expected a .npz file, got {len(data)} bytes of something else") from error


def _arrays(file: zipfile.ZipFile, size: int, names: dict[str, str]) -> dict[str, Storage]:
    from zipfile import ZIP_STORED

    entries = file.infolist()
    known = {entry.filename for entry in entries}
    if not known <= names.keys() or len(known) < len(entries):
        raise PeerError(f"expected entries of {', '.join(names)}, each at most once")
    stored = all(
        entry.compress_type == ZIP_STORED and entry.file_size == entry.compress_size
        for entry in entries
    )
    if not stored or sum(entry.file_size for entry in entries) > size:
        raise PeerError("expected entries without compression, within the file")
    return {names[entry.filename]: _array(file.read(entry)) for entry in entries}


def _array(data: bytes) -> Storage:
    """Return the array of a .npy file."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise PeerError("expected an array of form 1.0")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file, MOST_HEADER)
    rest = data[file.tell() :]
    if dtype not in TYPES or min(shape, default=0) < 0:
        raise PeerError(f"expected an array of float64, float32 or bytes, got {str(dtype)[:40]}")
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise PeerError(f"expected an array of {len(rest)} bytes, got another shape")
    return np.frombuffer(rest, dtype).reshape(shape, order="F" if by_columns else "C")
