"""Score lines: how odd each row was, as flat JSON, one a line.

    {"row": 4711, "at": 1767225600.0, "spe": 3.1, "t2": 9.7, "model": 1767225540123,
     "over": 0.99, "top": {"flow": 0.81, "temp": 0.12}, "filled": {"hum": 41.5},
     "alarm": "pump-1-19aa41f2c30"}

`row` counts the sensor's rows since the process began; `over` is the highest of the model's
measured limits (95, 99, 99.9 %) that SPE is above, left out where it is above none; `top` are
the channels that SPE comes from, with their shares; `filled` what a gap was taken for, in the
channel's unit, and `virtual` the same where the others tell the channel so well that it can stand
in for the sensor (R2 of 0.5 or more, as measured on this node); `expired` is there, and true,
where the model is older than its root meant it to get; `alarm` is the name of the alarm that the
row belongs to, left out where there is none; `withheld` is there, and true, where the row is not
learnt.

In a kernel group `spe` and `t2` are of a row's features; `linear` is the SPE of the readings
themselves. `odd` is the larger of what the two say, 0 like the middle of recent rows and 1 at
the 99 % limit, and `top` are the channels by whichever is the larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from submerge import Array, Schema
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Scored
from submerge.protocol.messages import Model
from submerge.protocol.summaries import Subspaces
from submerge.stats.stuck import WORTH

Tell = Callable[[bytes], None]


class ScoreLines:
    """Makes lines of scores.

    Parameters
    ----------
    schema : Schema
        Its channels name what is to blame.
    summaries : Subspaces
        What scored: it knows which directions are shown.
    contributions : int
        Channels to name at most; more cost bytes, 0 names none.
    tell : callable
        Takes one line, with its line break.
    """

    def __init__(
        self, schema: Schema, summaries: Subspaces, *, contributions: int, tell: Tell
    ) -> None:
        self._names = schema.names
        self._summaries, self._contributions, self._tell = summaries, contributions, tell
        self._encode = msgspec.json.Encoder().encode

    def tell(
        self,
        scored: Scored,
        model: Model,
        schema: Schema,
        *,
        first: int,
        at: float,
        alarms: tuple[Alarm, ...] = (),
    ) -> None:
        """Tell the rows of one block, whose first row was the `first` of all, at a wall time.

        model : the newest; an open alarm may be judged by an older one, which `scored` then has
        alarms : the newest first
        """
        if scored.summary is not None:
            model = replace(model, summary=scored.summary, limits=scored.limits)
        anomaly_score, by_linear = _judged(scored, model)
        shares = self._shares(scored, model, schema, by_linear)
        names = _named(scored.alarmed, alarms)
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
            if scored.linear is not None:
                line["linear"] = float(scored.linear[i])
                if model.limits is not None:
                    line["anomaly_score"] = float(f"{anomaly_score[i]:.4g}")
            over = _over(scored, i, model)
            if over:
                line["over"] = over
            if scored.expired:
                line["expired"] = True
            if top is not None:
                line["top"] = {
                    self._names[j]: float(f"{shares[i, j]:.4g}")
                    for j in top[i].tolist()
                    if shares[i, j] or scored.linear is None
                }
            if scored.gaps is not None and scored.gaps[i].any():
                line["filled"] = self._filled(scored.rows[i], scored.gaps[i], schema)
                line |= _virtual(line["filled"], scored, self._names)
            if i in names:
                line["alarm"] = names[i]
            if scored.withheld is not None and scored.withheld[i]:
                line["withheld"] = True
            lines.append(self._encode(line))
        self._tell(b"\n".join([*lines, b""]))

    def _shares(
        self, scored: Scored, model: Model, schema: Schema, by_linear: npt.NDArray[np.bool_]
    ) -> Array:
        """(n, channels), what each row's SPE comes from."""
        if not self._contributions or model.summary is None:
            return np.empty((len(scored.spe), 0))
        return self._summaries.contributions(
            scored.rows, model.summary, schema, by_linear=by_linear
        )

    def _filled(self, row: Array, gaps: Array, schema: Schema) -> dict[str, float]:
        """What gaps were taken for, in the channels' units."""
        if schema.scaling is not None:
            row = row * schema.scaling.scale + schema.scaling.offset
        return {self._names[j]: float(f"{row[j]:.9g}") for j in np.flatnonzero(gaps).tolist()}


def _judged(scored: Scored, model: Model) -> tuple[Array, npt.NDArray[np.bool_]]:
    """How odd each row is, and whether its readings say so; they do, if nobody can tell.

    Features of what is far from everything are alike, and their gradient is nothing.
    """
    if model.limits is None:
        return np.zeros(len(scored.spe)), np.full(len(scored.spe), scored.linear is not None)
    return model.limits.anomaly_score(scored.spe, scored.linear)


def _named(alarmed: npt.NDArray[np.bool_] | None, alarms: tuple[Alarm, ...]) -> dict[int, str]:
    """The alarms that rows of a block belong to: its last stretch to the newest, and so on."""
    names: dict[int, str] = {}
    if alarmed is None or not alarmed.any():
        return names
    which = np.flatnonzero(alarmed)
    stretch = np.concatenate([[0], np.cumsum(np.diff(which) > 1)])
    for row, back in zip(which.tolist(), (stretch[-1] - stretch).tolist(), strict=True):
        if back < len(alarms):
            names[row] = alarms[back].name
    return names


def _virtual(filled: dict[str, float], scored: Scored, names: tuple[str, ...]) -> dict[str, Any]:
    """What stands in for the sensors of gaps: those that the others tell well enough."""
    if scored.r2 is None:
        return {}
    reported = {
        name: {"value": value, "r2": float(f"{scored.r2[names.index(name)]:.3f}")}
        for name, value in filled.items()
        if scored.r2[names.index(name)] >= WORTH
    }
    return {"virtual": reported} if reported else {}


def _over(scored: Scored, i: int, model: Model) -> float | None:
    """The highest share of recent rows that row i is above, by either kind of SPE."""
    limits = model.limits
    if limits is None:
        return None
    reported = [(float(scored.spe[i]), limits.spe)]
    if scored.linear is not None:
        reported.append((float(scored.linear[i]), limits.linear))
    return max(
        (
            share
            for spe, values in reported
            for share, limit in zip(limits.shares, values, strict=False)
            if share > 0.5 and spe > limit
        ),
        default=None,
    )
