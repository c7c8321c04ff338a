"""Score lines: how odd each row was, as flat JSON, one a line.

    {"row": 4711, "at": 1767225600.0, "spe": 3.1, "t2": 9.7, "model": 1767225540123,
     "over": 0.99, "over_t2": 0.95, "top": {"flow": 0.81, "temp": 0.12}, "filled": {"hum": 41.5},
     "alarm": "pump-1-19aa41f2c30"}

`row` counts the sensor's rows since the process began. `spe` and `t2` are the squared prediction
error and Hotelling's T2 of the row, with what gaps were filled with. `over` and `over_t2` are the
highest of the model's measured limits (95, 99, 99.9 %) that they are above, and are left out where
they are above none; what was filled cannot be odd, so a row with gaps is over a limit at less.
`top` are the channels to blame, with their shares, by the rule of alarms (docs/decisions/0020).
`filled` is what a gap was taken for, in the channel's unit, and `virtual` the same where the others
tell the channel so well that it can stand in for the sensor (R2 of 0.5 or more, as measured on this
node). `expired` is there, and true, where the model is older than its root meant it to get;
`alarm` is the name of the alarm that the row belongs to, left out where there is none; `withheld`
is there, and true, where the row is not learnt.

In a kernel group `spe` and `t2` are of a row's features; `linear` is the SPE of the readings
themselves, and `over_linear` the limit that it is above. `over` is then by either kind of SPE.
`odd` is the larger of what the two say, 0 like the middle of recent rows and 1 at the 99 % limit.

`submerge score` writes the same of rows in files: `scored_fields` is what both have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from submerge import Schema
from submerge.judge.prepare import Block, in_units
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Scored
from submerge.stats.stuck import WORTH

Tell = Callable[[bytes], None]


class ScoreLines:
    """Makes lines of scores.

    Parameters
    ----------
    schema : Schema
        Its channels name what is to blame.
    contributions : int
        Channels to name at most; more cost bytes, 0 names none.
    tell : callable
        Takes one line, with its line break.
    """

    def __init__(self, schema: Schema, *, contributions: int, tell: Tell) -> None:
        self._names = schema.names
        self._contributions, self._tell = contributions, tell
        self._encode = msgspec.json.Encoder().encode

    def tell(
        self,
        scored: Scored,
        schema: Schema,
        *,
        first: int,
        at: float,
        alarms: tuple[Alarm, ...] = (),
    ) -> None:
        """Tell the rows of one block, whose first row was the `first` of all, at a wall time.

        schema : as it is settled: the scaling that rows have is its
        alarms : the newest first
        """
        names, withheld = _named(scored.decision.alarmed, alarms), scored.decision.withheld
        fields = scored_fields(
            scored.block, scored.scores, schema, self._names, top=self._contributions
        )
        lines = []
        for i, (row, of_row) in enumerate(zip(scored.block.which.tolist(), fields, strict=True)):
            line = {"row": first + row, "at": at, "model": scored.version, **of_row}
            if scored.expired:
                line["expired"] = True
            if "filled" in line:
                line |= _virtual(line["filled"], scored, self._names)
            if i in names:
                line["alarm"] = names[i]
            if withheld[i]:
                line["withheld"] = True
            lines.append(self._encode(line))
        self._tell(b"\n".join([*lines, b""]))


def scored_fields(
    block: Block, scores: RowScores, schema: Schema, names: tuple[str, ...], *, top: int
) -> Iterator[dict[str, Any]]:
    """Yield what there is to say of each row of a block: its scores, limits, and channels.

    top : channels to name at most; 0 leaves `top` out
    """
    over = {"over": scores.over_spe, "over_t2": scores.over["t2"]}
    if scores.linear is not None:
        over["over_linear"] = scores.over["linear"]
    order, shares = scores.top(top)
    readings = None if block.gaps is None else in_units(block.rows, schema)
    for i in range(len(block)):
        line: dict[str, Any] = {"spe": float(scores.spe[i]), "t2": float(scores.t2[i])}
        if scores.linear is not None:
            line["linear"] = float(scores.linear[i])
        if scores.anomaly is not None:
            line["anomaly_score"] = float(f"{scores.anomaly[i]:.4g}")
        line |= {name: float(values[i]) for name, values in over.items() if values[i]}
        if top:
            line["top"] = {
                names[j]: float(f"{share:.4g}")
                for j, share in zip(order[i].tolist(), shares[i].tolist(), strict=True)
                if share
            }
        if block.gaps is not None and readings is not None and block.gaps[i].any():
            line["filled"] = {
                names[j]: float(f"{readings[i, j]:.9g}")
                for j in np.flatnonzero(block.gaps[i]).tolist()
            }
        yield line


def _named(alarmed: npt.NDArray[np.bool_], alarms: tuple[Alarm, ...]) -> dict[int, str]:
    """The alarms that rows of a block belong to: its last stretch to the newest, and so on."""
    names: dict[int, str] = {}
    if not alarmed.any():
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
