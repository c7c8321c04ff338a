"""Columns of Arrow: what a type holds, and its values as numbers, times or text.

pyarrow comes as an argument, as this module is imported without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Array
from submerge_client.datasets.instants import MICRO, is_time
from submerge_client.datasets.source import refusal
from submerge_files.reader.formats.tables import HEAD_ROWS, ColumnHead, Kind

EXTENSION = b"ARROW:extension:name"
INDEX = "__index_level_"


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
    """Return what a type holds."""
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
    heading = not field.name.startswith(INDEX)
    if arrays is None:
        return ColumnHead(field.name, kind, heading=heading)
    values = tuple(value for array in arrays for value in strings_in(array))[:HEAD_ROWS]
    full = [value for value in values if value and value != "nan"]
    typed = kind == Kind.TIMES
    if not full:
        kind = Kind.EMPTY
    elif kind == Kind.TEXT and all(map(is_time, full)):
        kind = Kind.TIMES
    return ColumnHead(field.name, kind, values, typed=typed, heading=heading)


def numbers_in(pa: Any, array: Any) -> Array:
    """Return a column (n,) as float64, NaN for null; times in seconds since 1970."""
    column: Array
    if pa.types.is_float64(array.type):
        column = array.to_numpy(zero_copy_only=False)
        return column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind_of(pa, array.type) == Kind.TIMES:
        stamps = array.cast(pa.timestamp("us", tz=getattr(array.type, "tz", None)), safe=False)
        counts = stamps.cast(pa.int64())
        seconds = counts.fill_null(0).to_numpy(zero_copy_only=False) / MICRO
        if array.null_count:
            seconds[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return np.asarray(seconds)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    column = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return column


def strings_in(array: Any) -> list[str]:
    """Return a column as text, "" for null."""
    return ["" if value is None else str(value).strip() for value in array.to_pylist()]
