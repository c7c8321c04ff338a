"""ArrowFile: Parquet and Arrow IPC, read by pyarrow a row group or record batch at a time.

1. pyarrow is imported when a file of these formats is opened. Times are kept to a microsecond.
2. Columns of an extension type are refused: what they mean is code elsewhere.
3. A row group whose columns in use take more than `MOST_BYTES` unpacked, or a record batch that
   does, is refused by what the file says of itself, before it is unpacked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Array, UsageError
from submerge_client.datasets.fields import is_number
from submerge_client.datasets.source import Source, refusal
from submerge_client.datasets.table import check_distinct
from submerge_files.reader.formats.remote_path import is_remote
from submerge_files.reader.formats.tables import (
    HEAD_ROWS,
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    block_rows,
    words,
)
from submerge_files.reader.time_form import is_called_time, is_time, typed_seconds


class DamagedHeader(Exception):
    """A header lacks what it must have."""


DAMAGE = (struct.error, IndexError, DamagedHeader)  # what reading a damaged header raises

_DICTIONARY, _BATCH = 2, 3
"""Kinds of message that have buffers: `MessageHeader` of the format's Message.fbs."""


def unpacked_sizes(pa: Any, path: str, skip: int) -> Iterator[int]:
    """Yield the bytes of each batch, unpacked."""
    with pa.memory_map(path) as mapped:
        mapped.seek(skip)
        for message in pa.ipc.MessageReader.open_stream(mapped):
            yield _size(memoryview(message.metadata), memoryview(message.body or b""))


def _size(header: memoryview, body: memoryview) -> int:
    message = struct.unpack_from("<I", header, 0)[0]
    kind = _field(header, message, 1)
    if kind is None or header[kind] not in (_DICTIONARY, _BATCH):
        return 0
    batch = _table(header, message, 2)
    if header[kind] == _DICTIONARY:
        batch = _table(header, batch, 1)
    listed = _field(header, batch, 2)
    if listed is None:
        return 0
    packed = _field(header, batch, 3) is not None
    start = listed + struct.unpack_from("<I", header, listed)[0]
    count = struct.unpack_from("<I", header, start)[0]
    total = 0
    for i in range(count):
        offset, length = struct.unpack_from("<qq", header, start + 4 + 16 * i)
        size = struct.unpack_from("<q", body, offset)[0] if packed and length else length
        # A packed buffer of size -1 is stored as it is.
        total += max(size, 0) if size != -1 else length
    return total


def _table(header: memoryview, table: int, number: int) -> int:
    """Return where a table's field, itself a table, begins."""
    at = _field(header, table, number)
    if at is None:
        raise DamagedHeader("it lacks fields")
    return int(at + struct.unpack_from("<I", header, at)[0])


def _field(header: memoryview, table: int, number: int) -> int | None:
    """Return where a table's field is, or None if it has its default."""
    vtable = table - struct.unpack_from("<i", header, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", header, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", header, vtable + 4 + 2 * number)[0]
    return table + offset if offset else None


EXTENSION = b"ARROW:extension:name"


def check_types(pa: Any, path: Path, schema: Any) -> None:
    """Refuse columns of an extension type, registered or not."""
    for field in schema:
        if isinstance(field.type, pa.BaseExtensionType) or EXTENSION in (field.metadata or {}):
            raise refusal(
                f"{path}, column {field.name}",
                expected="a plain Arrow type",
                got=f"the extension type {field.type}",
                hint="write it again without that column, or cast it",
            )


def kind_of(pa: Any, type_: Any) -> Kind:
    types = pa.types
    if types.is_dictionary(type_):
        return kind_of(pa, type_.value_type)
    if types.is_timestamp(type_) or types.is_date(type_):
        return Kind.TIMES
    if types.is_string(type_) or types.is_large_string(type_) or str(type_) == "string_view":
        return Kind.TEXT
    if types.is_null(type_):
        return Kind.EMPTY
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return Kind.NUMBERS if any(test(type_) for test in numeric) else Kind.OTHER


def column_of(pa: Any, field: Any, arrays: Sequence[Any] | None) -> ColumnHead:
    """Return a column with its first values, which are None for types that are not read."""
    kind = kind_of(pa, field.type)
    if arrays is None:
        return ColumnHead(field.name, kind)
    values = tuple(value for array in arrays for value in words(array))[:HEAD_ROWS]
    full = [value for value in values if value and value != "nan"]
    typed = kind == Kind.TIMES
    if not full:
        kind = Kind.EMPTY
    elif kind == Kind.TEXT and all(map(is_time, full)):
        kind = Kind.TIMES
    column = ColumnHead(field.name, kind, values, typed=typed)
    # Times since 1970 are also written as text; other text is cast by those who know it.
    counted = kind == Kind.TEXT and is_called_time(column) and all(map(is_number, full))
    return replace(column, kind=Kind.NUMBERS) if counted else column


def numbers_in(pa: Any, array: Any) -> Array:
    """Return a column (n,) as float64, NaN for null; times in seconds since 1970."""
    column: Array
    if pa.types.is_float64(array.type):
        column = array.to_numpy(zero_copy_only=False)
        return column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind_of(pa, array.type) == Kind.TIMES:
        return typed_seconds(pa, array)
    if str(array.type) == "string_view":
        array = array.cast(pa.string())
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    column = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return column


def columns_in(pa: Any, batch: Any, names: Sequence[str]) -> Array:
    """Return some columns of a batch as numbers (n, names)."""
    rows = np.empty((batch.num_rows, len(names)))
    for i, name in enumerate(names):
        rows[:, i] = numbers_in(pa, batch.column(name))
    return rows


PARQUET, FILE, STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
FEATHER_1 = b"FEA1"
FILE_START = 8  # where the messages of a file begin: after its first bytes and their padding
MOST_BYTES = 1 << 30  # most bytes of a row group's columns in use, or of a record batch, unpacked


def recognizes(source: Source) -> bool:
    """Return whether a file is Parquet or Arrow, by its first bytes."""
    return source.head.startswith((PARQUET, FILE, STREAM, FEATHER_1))


def opened(source: Source) -> ArrowFile:
    """Look at a file's schema and first rows."""
    pa = import_pyarrow()
    path = source.path
    if source.packed:
        raise refusal(
            path, expected="a plain file of this format", got="gzip", hint="unpack it first"
        )
    if is_remote(path) and not source.head.startswith(PARQUET):
        raise refusal(
            path,
            expected="Parquet, or a table in text, at a remote place",
            got="Arrow",
            hint="copy it to a disk, or write it as Parquet",
        )
    if source.head.startswith(FEATHER_1):
        raise refusal(
            path, expected="Feather 2", got="Feather 1", hint="write it again with pyarrow"
        )
    form = next(magic for magic in (PARQUET, FILE, STREAM) if source.head.startswith(magic))
    file = ArrowFile(path, (), 0, True, (), True, form)
    head, n = list[Any](), 0
    with _blaming(path):
        with file._reader() as reader:
            schema = reader.schema_arrow if form == PARQUET else reader.schema
        check_distinct(path, schema.names)
        check_types(pa, path, schema)
        known = {f.name: f for f in schema if kind_of(pa, f.type) != Kind.OTHER}
        file._check_batches(pa)
        for batch in file._batches([*known], HEAD_ROWS + 1):
            head.append(batch)
            n += batch.num_rows
            if n > HEAD_ROWS:
                break
    if n == 0:
        raise refusal(path, expected="rows", got="none", hint="check how it was written")
    columns = tuple(
        column_of(pa, field, [b.column(field.name) for b in head] if field.name in known else None)
        for field in schema
    )
    return replace(file, columns=columns, head=min(n, HEAD_ROWS), whole=n <= HEAD_ROWS)


@dataclass(frozen=True, eq=False)
class ArrowFile(TableFile):
    _format: bytes

    @property
    def rows(self) -> int:
        """Rows of a Parquet file, as it says itself; 0 for the other formats."""
        if self._format != PARQUET:
            return 0
        with _blaming(self.path), self._reader() as file:
            return int(file.metadata.num_rows)

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
        """Read columns as numbers and as text; of Parquet, from the row group where `begin` is."""
        pa = import_pyarrow()
        names = [column.name for column in self.columns]
        wanted = [names[i] for i in dict.fromkeys([*numbers, *texts])]
        with _blaming(self.path):
            for batch in self._batches(wanted, block_rows(len(wanted)), begin):
                rows = columns_in(pa, batch, [names[i] for i in numbers])
                yield RawRows(rows, tuple(batch.column(names[i]) for i in texts))

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        pa = import_pyarrow()
        with ExitStack() as opened:
            place: Any = self.path
            # A buffer for each column, in place of the whole row group's bytes.
            buffers = {"buffer_size": 1 << 16, "pre_buffer": False}
            if self._format != PARQUET or is_remote(place):
                place = opened.enter_context(place.open("rb"))
                # Ranges of all columns wanted are asked for at once: each request takes its time.
                buffers = {"pre_buffer": True}
            if self._format == PARQUET:
                yield opened.enter_context(pa.parquet.ParquetFile(place, **buffers))
            else:
                read = pa.ipc.open_file if self._format == FILE else pa.ipc.open_stream
                yield opened.enter_context(read(place))

    def _batches(self, wanted: Sequence[str], most: int, begin: int = 0) -> Iterator[Any]:
        """Yield record batches of at most `most` rows, with the columns wanted, from a row on."""
        with self._reader() as reader:
            if self._format == PARQUET:
                self._check_groups(reader.metadata, wanted)
                groups = [*range(reader.num_row_groups)]
                while groups and begin >= (n := reader.metadata.row_group(groups[0]).num_rows):
                    begin -= n
                    del groups[0]
                batches = reader.iter_batches(most, row_groups=groups, columns=list(wanted))
            elif self._format == FILE:
                batches = map(reader.get_batch, range(reader.num_record_batches))
            else:
                batches = reader
            for batch in batches:
                used = batch.select(list(wanted))
                skipped = min(begin, used.num_rows)
                begin -= skipped
                for at in range(skipped, used.num_rows, most):
                    yield used.slice(at, most)

    def _check_batches(self, pa: Any) -> None:
        if self._format == PARQUET:
            return
        start = 0 if self._format == STREAM else FILE_START
        try:
            for number, size in enumerate(unpacked_sizes(pa, str(self.path), start)):
                if size > MOST_BYTES:
                    raise self._too_large(f"message {number + 1}", size)
        except DAMAGE as error:
            raise refusal(
                self.path,
                expected="a whole Arrow file",
                got=f"a damaged header ({error})",
                hint="copy or write it again",
            ) from error

    def _check_groups(self, metadata: Any, wanted: Sequence[str]) -> None:
        known = {*wanted}
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            parts = (row_group.column(i) for i in range(row_group.num_columns))
            size = sum(p.total_uncompressed_size for p in parts if p.path_in_schema in known)
            if size > MOST_BYTES:
                raise self._too_large(f"row group {group + 1}", size)

    def _too_large(self, what: str, size: int) -> UsageError:
        return refusal(
            f"{self.path}, {what}",
            expected=f"at most {MOST_BYTES >> 20} MiB at once, unpacked",
            got=f"{size >> 20} MiB",
            hint="write it again in smaller pieces (row_group_size, chunksize)",
        )


def import_pyarrow() -> Any:
    """Return pyarrow, or refuse with the extra that brings it."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pyarrow":
            raise
        raise UsageError(
            "Parquet and Arrow files need pyarrow, which is not installed:"
            " pip install 'submerge[files]'"
        ) from error
    return pyarrow


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Make pyarrow's errors about a file ours."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else "damage"
        raise refusal(
            path,
            expected="a whole Parquet or Arrow file",
            got=f"one that pyarrow cannot read ({reason})",
            hint="copy or write it again; with polars, write_parquet or write_ipc_stream",
        ) from error
