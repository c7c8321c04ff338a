"""FewRows: rows that wait until they are enough to be learnt together (docs/decisions/0076).

Two summaries of a node differ by so many rows or more: nobody above sees a single one. So many
always wait, so that a process that ends can send them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.judge.prepare import prepare
from submerge.pca.expectation import Mask
from submerge.schema import Schema

Priorities = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class FewRows:
    """Rows in the units of a schema.

    rows, gaps : (n, channels), and True where a value is a guess.
    at : (n,), when each came, on the steady clock.
    schema : As text.
    priorities : (n,), of the sample that settles gamma.
    """

    rows: Array
    gaps: Mask
    at: Array
    schema: bytes
    priorities: Priorities | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice) -> FewRows:
        drawn = None if self.priorities is None else self.priorities[which]
        rows, gaps, at = self.rows[which], self.gaps[which], self.at[which]
        return FewRows(rows, gaps, at, self.schema, drawn)

    def joined(self, later: FewRows) -> FewRows:
        """Return these rows and later ones of the same schema."""
        drawn = None
        if self.priorities is not None and later.priorities is not None:
            drawn = np.concatenate([self.priorities, later.priorities])
        rows, gaps = np.vstack([self.rows, later.rows]), np.vstack([self.gaps, later.gaps])
        return FewRows(rows, gaps, np.append(self.at, later.at), self.schema, drawn)

    def spans(self, most_s: float) -> Iterator[FewRows]:
        """Yield them in spans of time that are no longer."""
        first = 0
        while first < len(self):
            end = int(np.searchsorted(self.at, self.at[first] + most_s, side="right"))
            yield self[first:end]
            first = end

    def under(self, schema: Schema) -> FewRows:
        """Return what can be learnt under another schema: none if it has other channels."""
        opened = Schema.parse(self.schema)
        if schema.canonical == self.schema:
            return self
        if not schema.is_like(opened):
            return no_rows(schema)
        settles = opened.scaling is None and schema.scaling is not None
        units = schema if settles else replace(schema, scaling=None)
        block = prepare(self.rows, units, fill=None, lifts=False)
        drawn = None if self.priorities is None else self.priorities[block.which]
        gaps, at = self.gaps[block.which], self.at[block.which]
        return FewRows(block.rows, gaps, at, schema.canonical, drawn)


def no_rows(schema: Schema) -> FewRows:
    """Return no rows of a schema."""
    none = np.zeros((0, schema.width))
    return FewRows(none, none.astype(bool), none[:, 0], schema.canonical)
