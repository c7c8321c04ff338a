"""Score lines: how odd each row was, as flat JSON, one a line.

    {"row": 4711, "at": 1767225600.0, "spe": 3.1, "t2": 9.7, "model": 1767225540123,
     "over": 0.99, "top": {"flow": 0.81, "temp": 0.12}, "filled": {"hum": 41.5}}

`row` counts the sensor's rows since the process began; `over` is the highest of the model's
measured limits that SPE is above, left out where it is above none; `top` are the channels
that SPE comes from, with their shares; `filled` what a gap was taken for, in the channel's
unit; `expired` is there, and true, where the model is older than its root meant it to get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from submerge import Array, Schema, contributions
from submerge.messages import Model
from submerge.steps import Scored

Tell = Callable[[bytes], None]


class ScoreLines:
    """Makes lines of scores.

    Parameters
    ----------
    schema : Schema
        Its channels name what is to blame.
    rank : int
        Directions that are scored with.
    contributions : int
        Channels to name at most; more cost bytes, 0 names none.
    tell : callable
        Takes one line, with its line break.
    """

    def __init__(self, schema: Schema, *, rank: int, contributions: int, tell: Tell) -> None:
        self._names = schema.names
        self._rank, self._contributions, self._tell = rank, contributions, tell
        self._encode = msgspec.json.Encoder().encode

    def tell(self, scored: Scored, model: Model, schema: Schema, *, first: int, at: float) -> None:
        """Tell the rows of one block, whose first row was the `first` of all, at a wall time."""
        shares = self._shares(scored, model)
        named = min(self._contributions, len(self._names))
        top = np.argsort(-shares, axis=1)[:, :named] if named else None
        lines = []
        for i, row in enumerate(scored.which.tolist()):
            spe = float(scored.spe[i])
            line: dict[str, Any] = {
                "row": first + row,
                "at": at,
                "spe": spe,
                "t2": float(scored.t2[i]),
                "model": scored.version,
            }
            over = _over(spe, model)
            if over:
                line["over"] = over
            if scored.expired:
                line["expired"] = True
            if top is not None:
                line["top"] = {
                    self._names[j]: float(f"{shares[i, j]:.4g}") for j in top[i].tolist()
                }
            if scored.gaps is not None and scored.gaps[i].any():
                line["filled"] = self._filled(scored.rows[i], scored.gaps[i], schema)
            lines.append(self._encode(line))
        self._tell(b"\n".join([*lines, b""]))

    def _shares(self, scored: Scored, model: Model) -> Array:
        """(n, dim), what each row's SPE comes from."""
        if not self._contributions or model.summary is None:
            return np.empty((len(scored.spe), 0))
        return contributions(scored.rows, model.summary.truncated(self._rank))

    def _filled(self, row: Array, gaps: Array, schema: Schema) -> dict[str, float]:
        """What gaps were taken for, in the channels' units."""
        if schema.scaling is not None:
            row = row * schema.scaling.scale + schema.scaling.offset
        return {self._names[j]: float(f"{row[j]:.9g}") for j in np.flatnonzero(gaps).tolist()}


def _over(spe: float, model: Model) -> float | None:
    """The highest share of recent rows that the row is above."""
    if model.limits is None:
        return None
    pairs = zip(model.limits.shares, model.limits.spe, strict=True)
    return max((share for share, limit in pairs if spe > limit), default=None)
