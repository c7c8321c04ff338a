"""Names of columns: a table brings them, and rows of other columns are not learnt as the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from submerge.errors import UsageError
from submerge.schema import Channel, Schema

MOST_NAMED = 3
"""Most columns that a line names."""


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of a table's columns (pandas, polars, pyarrow); () without names.

    Names that are no names of channels count as none: two alike, or text that is not Unicode.
    """
    if type(X) is np.ndarray:
        return ()  # at once: calls of one row are many
    found = getattr(X, "columns", None) if not hasattr(X, "column_names") else X.column_names
    names = tuple(found) if isinstance(found, Iterable) else ()
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return ()
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return ()
    return names


def schema_of(names: tuple[str, ...], dim: int, *, center: bool) -> Schema:
    """Return the schema of rows with such columns; an anonymous one without names."""
    channels = tuple(map(Channel, names)) if len(names) == dim else dim
    return Schema(channels, center="fleet" if center else "none")


def check_names(names: tuple[str, ...], schema: Schema) -> None:
    """Refuse columns of other names, or in another order, than those that were learnt.

    Raises
    ------
    UsageError
        If they differ. Rows without names, or a schema without, are not compared.
    """
    if not names or not schema.linear or isinstance(schema.channels, int):
        return
    known = schema.names
    if len(names) != len(known) or names == known:
        return
    pairs = [(ours, theirs) for ours, theirs in zip(known, names, strict=True) if ours != theirs]
    expected, got = (", ".join(side[:MOST_NAMED]) for side in zip(*pairs, strict=True))
    more = " ..." if len(pairs) > MOST_NAMED else ""
    cure = "give them in that order" if set(names) == set(known) else "select those"
    raise UsageError(f"expected columns {expected}{more}, got {got}{more}: {cure}")
