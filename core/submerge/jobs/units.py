"""in_channel_units(): a job's answer in the units of the channels.

Jobs see rows as the schema scales them, and so are their answers: a center of k-means is a scaled
row. The schema takes them back.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError
from submerge.jobs.arrays import Arrays
from submerge.schema import Schema

ROWS = {"kmeans": ("centers",), "moments": ("mean",)}
"""Arrays of an answer that are scaled rows, (..., channels), by kind."""

SQUARES = {"moments": ("variance",)}
"""Arrays that are squares of scaled deviations, (..., channels)."""


def in_channel_units(kind: str, answer: Arrays, schema: Schema) -> dict[str, Array]:
    """Return an answer in which rows, and squares of deviations, are in the channels' units.

    Counts, costs and all that is not of a channel stay as they are: a cost is a sum of squares
    over channels of different units, and has none.
    """
    rows, squares = ROWS.get(kind, ()), SQUARES.get(kind, ())
    found = dict(answer)
    for name in rows + squares:
        if name in answer:
            if answer[name].shape[-1:] != (schema.width,):
                raise ShapeError(name, expected=f"(..., {schema.width})", got=answer[name].shape)
            found[name] = _unscaled(answer[name], schema, squared=name in squares)
    return found


def _unscaled(values: Array, schema: Schema, *, squared: bool) -> Array:
    if schema.scaling is None:
        return values
    offset, scale = np.array(schema.scaling.offset), np.array(schema.scaling.scale)
    return np.asarray(values * scale**2 if squared else values * scale + offset)
