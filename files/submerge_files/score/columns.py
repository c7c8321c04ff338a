"""Which column of a file is which channel of a model.

1. With a header columns go by name, in any order; without one by place.
2. A channel without a column is refused, or on request a gap in every row. Other columns are left
   out; a note says so once.
3. Channels such as "flow-1", which a client's `lags` make, come from the rows before, unless
   the file has such columns.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from submerge import Array, Schema, UsageError
from submerge.headings import called
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.selecting import some, unknown
from submerge_files.score.table import ScoredFile


@dataclass(frozen=True)
class Columns:
    """The columns of a file that are read, and their channels.

    used : places in the file
    filled : the channel of each, before lags
    width : channels before lags
    lags : rows side by side
    notes : sentences for the reader of the scores
    """

    used: tuple[int, ...]
    filled: tuple[int, ...]
    width: int
    lags: int
    notes: tuple[str, ...]

    def placed(self, block: Array) -> Array:
        """Return columns (n, used) as channels (n, width), NaN for channels without a column."""
        if self.filled == tuple(range(self.width)):
            return block
        rows = np.full((len(block), self.width), np.nan)
        rows[:, self.filled] = block
        return rows


def columns_of(
    file: ScoredFile, schema: Schema, left: Sequence[int], *, allow_missing: bool = False
) -> Columns:
    """Find the channels of a schema in a file.

    left : places of the columns that may be channels
    allow_missing : whether a channel without a column is a gap in every row

    Raises
    ------
    UsageError
        If a header lacks a name, or less than half are there if that is allowed; or if there is no
        header, and the number of columns is not that of channels.
    """
    names, lags = schema.names, lags_of(schema.names)
    sensed = names[: len(names) // lags]
    # A heading may have a unit beside the channel's name.
    places = dict(zip(called(schema.named, [file.names[i] for i in left]), left, strict=True))
    nameless = isinstance(schema.channels, int)
    if file.named and (not nameless or places.keys() >= set(names)):
        if lags > 1 and places.keys() >= set(names):
            return _by_name(file, places, names, 1, allow_missing=allow_missing)
        return _by_name(file, places, sensed, lags, allow_missing=allow_missing)
    if len(left) not in (len(sensed), len(names)):
        left = [i for i in left if i not in file.taken]
    if len(left) not in (len(sensed), len(names)):
        raise refusal(
            file.path,
            expected=f"{len(sensed)} columns, one for each channel of the model",
            got=str(len(left)),
            hint="give it a header with the channels' names, or skip columns",
        )
    width = len(left)
    return Columns(tuple(left), tuple(range(width)), width, len(names) // width, ())


def lags_of(names: Sequence[str]) -> int:
    """Return how many rows a client has put side by side, by the channels' names.

    Examples
    --------
    >>> lags_of(("flow", "temp", "flow-1", "temp-1"))
    2
    """
    for width in range(1, len(names) // 2 + 1):
        lags, rest = divmod(len(names), width)
        if not rest and all(
            name == f"{names[i % width]}-{i // width}" for i, name in enumerate(names) if i >= width
        ):
            return lags
    return 1


def _by_name(
    file: ScoredFile,
    places: dict[str, int],
    names: Sequence[str],
    lags: int,
    *,
    allow_missing: bool,
) -> Columns:
    filled = tuple(i for i, name in enumerate(names) if name in places)
    missing = [name for name in names if name not in places]
    if 2 * len(missing) > len(names):
        raise _foreign(file, places, names, missing[0], len(filled))
    if missing and not allow_missing:
        # A name that the model knows is no misspelt one.
        free = [name for name in places if name not in names]
        raise unknown(
            file.path, missing[0], free or list(places), "a channel of the model; --allow-missing"
        )
    known = set(names)
    extra = [name for name, i in places.items() if name not in known and i not in file.taken]
    notes = []
    if missing:
        few = counted(len(missing), "channel")
        notes.append(f"no column for {few} of the model, so each row is filled: {some(missing)}")
    if extra:
        few = counted(len(extra), "column")
        notes.append(f"left out {few} that the model has no channel for: {some(extra)}")
    used = tuple(places[names[i]] for i in filled)
    return Columns(used, filled, len(names), lags, tuple(notes))


def _foreign(
    file: ScoredFile, places: dict[str, int], names: Sequence[str], missing: str, found: int
) -> UsageError:
    near = difflib.get_close_matches(missing, places, n=1)
    return refusal(
        file.path,
        expected=f"a column for each of the model's channels {some(names)}",
        got=f"only {found} of them" if found else f"columns {some(list(places))}",
        hint=f"is {near[0]!r} meant for {missing!r}?" if near else "rename its columns",
    )
