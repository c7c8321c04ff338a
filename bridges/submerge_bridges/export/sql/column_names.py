"""Names of channels as columns of a table, and as text, in SQL that no name can break out of.

1. A name stands in SQL as a quoted identifier or as a string, its quotes doubled, and nowhere else:
   not in a comment, and not in a name that is put together.
2. A column is always written with its table. SQLite reads a quoted name of a column that is not
   there as a string, and would score that.
3. A name that no column can have gets another one, such as `channel_7`: one with a NUL or without
   letters, and one that another channel has but for capitals, which SQLite and DuckDB pass over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from submerge.errors import UsageError


def identifier(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def string(text: str) -> str:
    """Return text as a string."""
    return "'" + text.replace("'", "''") + "'"


def checked(name: str, what: str) -> str:
    """Return a name that a user gave, as a quoted identifier.

    Raises
    ------
    UsageError
        If SQL cannot hold it.
    """
    if not name or "\0" in name:
        raise UsageError(f"{what} must have a letter, and no NUL, got {name!r}")
    return identifier(name)


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns of a table that hold the channels of a model.

    columns : Of each channel.
    changed : Channels whose column has another name than they.
    """

    columns: tuple[str, ...]
    changed: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, channels: Sequence[str], taken: Sequence[str] = ()) -> ColumnNames:
        """Return the columns of channels.

        taken : names of other columns of the table
        """
        held = {each.casefold() for each in taken}
        free = {each.casefold() for each in (*channels, *taken)}
        columns, changed = list[str](), list[tuple[int, str]]()
        for i, channel in enumerate(channels):
            column = channel
            if not channel or "\0" in channel or channel.casefold() in held:
                column = f"channel_{i + 1}"
                while column in free:
                    column += "_"
                free.add(column)
                changed.append((i, column))
            held.add(column.casefold())
            columns.append(column)
        return cls(tuple(columns), tuple(changed))
