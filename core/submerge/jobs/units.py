"""in_channel_units(): a job's answer in the units of the channels.

Jobs see rows as the schema scales them, and so are their answers: a center of k-means is a scaled
row. The schema takes them back. Which arrays these are, a kind lists (`kind.AnswerArray`).
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import AnswerForm
from submerge.jobs.kinds import KINDS
from submerge.schema import Schema


def scaled_arrays(kind: str) -> dict[str, AnswerForm]:
    """Return the arrays of a kind's answer that are scaled, and how; none of an unknown kind."""
    listed = KINDS[kind].answers if kind in KINDS else ()
    return {each.name: each.form for each in listed if each.form != "plain"}


def in_channel_units(kind: str, answer: Arrays, schema: Schema) -> dict[str, Array]:
    """Return an answer in which rows, and squares of deviations, are in the channels' units.

    Counts, costs and all that is not of a channel stay as they are: a cost is a sum of squares
    over channels of different units, and has none.
    """
    found = dict(answer)
    for name, form in scaled_arrays(kind).items():
        if name in answer:
            if answer[name].shape[-1:] != (schema.width,):
                raise ShapeError(name, expected=f"(..., {schema.width})", got=answer[name].shape)
            found[name] = _unscaled(answer[name], schema, squared=form == "squares")
    return found


def _unscaled(values: Array, schema: Schema, *, squared: bool) -> Array:
    if schema.scaling is None:
        return values
    offset, scale = np.array(schema.scaling.offset), np.array(schema.scaling.scale)
    return np.asarray(values * scale**2 if squared else values * scale + offset)
