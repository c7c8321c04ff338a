"""Score lines: the scores of each row as flat JSON (docs/start.md, docs/kernels.md, docs/jobs.md).

    {"row": 4711, "at": 1767225600.0, "distance": 91.4, "spe": 3.1, "t2": 9.7,
     "model": 1767225540123, "over": 0.999, "over_spe": 0.99, "over_t2": 0.95,
     "top": {"flow": 0.81, "temp": 0.12}, "filled": {"hum": 41.5}, "alarm": "pump-1-19aa41f2c30"}

* `virtual` has the values that can stand in for the sensor: the other channels predict it with an
  R2 of 0.5 or more on this node.
* `alarm` is the name of the row's alarm. `withheld` is true where the row is not learnt, and
  `expired` where the model is older than its root allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from submerge import Array, Schema
from submerge.judge.prepare import Block, in_units
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import BESIDE, Alarm
from submerge.protocol.machine import Scored
from submerge.stats.stuck import WORTH


class ScoredBlock(NamedTuple):
    """One block of rows scaled by the settled schema, with scores and alarms, the newest first."""

    scored: Scored
    schema: Schema
    first: int
    at: float
    alarms: tuple[Alarm, ...] = ()


class ScoreOutput(Protocol):
    @property
    def problem(self) -> str:
        """What keeps scores from their place, in words for a status; "" if nothing does."""

    def write(self, block: ScoredBlock) -> None:
        """Take the scores of one block of rows."""

    def close(self) -> None:
        """Write what waits, within some seconds; no more scores come."""


class ScoreOutputs:
    """Several places: each gets all scores."""

    def __init__(self, outputs: Sequence[ScoreOutput]) -> None:
        self._outputs = tuple(outputs)

    @property
    def problem(self) -> str:
        return "; ".join(filter(None, (each.problem for each in self._outputs)))

    def write(self, block: ScoredBlock) -> None:
        for each in self._outputs:
            each.write(block)

    def close(self) -> None:
        for each in self._outputs:
            each.close()


ScoreWriter = Callable[[bytes], None]

ClusterFields = Callable[[Block, Schema], list[dict[str, Any]]]


class ScoreLines:
    """Makes lines of scores; at most `contributions` channels in `top`, 0 leaves it out."""

    def __init__(
        self,
        schema: Schema,
        *,
        contributions: int,
        out: ScoreWriter,
        clusters: ClusterFields = lambda block, _: [{}] * len(block),
    ) -> None:
        self._names = schema.names
        self._contributions, self._out, self._clusters = contributions, out, clusters
        self._encode = msgspec.json.Encoder().encode
        self.problem = ""

    def write(self, block: ScoredBlock) -> None:
        scored, schema, first, at, alarms = block
        names, withheld = alarm_names(scored.decision.alarmed, alarms), scored.decision.withheld
        fields = scored_fields(
            scored.block, scored.scores, schema, self._names, top=self._contributions
        )
        clusters = self._clusters(scored.block, schema)
        rows, lines = scored.block.which.tolist(), []
        for i, (row, of_row, cluster) in enumerate(zip(rows, fields, clusters, strict=True)):
            line = {"row": first + row, "at": at, "model": scored.version, **of_row, **cluster}
            if scored.expired:
                line["expired"] = True
            if "filled" in line:
                line |= _virtual(line["filled"], scored, self._names)
            if i in names:
                line["alarm"] = names[i]
            if withheld[i]:
                line["withheld"] = True
            lines.append(self._encode(line))
        self._out(b"\n".join([*lines, b""]))

    def close(self) -> None:
        """Do nothing: each block was written at once."""


def limits_passed(scores: RowScores) -> dict[str, Array]:
    """Return the highest share of normal rows that each row passes, (n,), by field; 0 for none."""
    over = {"over": scores.over.get("distance", scores.over["spe"])}
    over |= {f"over_{kind}": scores.over[kind] for kind in ("spe", "t2")}
    if "linear" in scores.over:
        over["over_linear"] = scores.over["linear"]
        over["over"] = np.maximum(over["over"], scores.over["linear"])
    return over


def scored_fields(
    block: Block, scores: RowScores, schema: Schema, names: tuple[str, ...], *, top: int
) -> Iterator[dict[str, Any]]:
    """Yield the fields of each row of a block: its scores, limits, and up to `top` channels."""
    over = limits_passed(scores)
    order, shares = scores.top(top)
    twins = scores.twins(order)
    readings = None if block.gaps is None else in_units(block.rows, schema)
    for i in range(len(block)):
        line: dict[str, Any] = {"spe": float(scores.spe[i]), "t2": float(scores.t2[i])}
        if scores.distance is not None:
            line = {"distance": float(scores.distance[i])} | line
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
        if twins[i]:
            line["twins"] = [names[j] for j in order[i, :2].tolist()]
        if block.gaps is not None and readings is not None and block.gaps[i].any():
            line["filled"] = {
                names[j]: float(f"{readings[i, j]:.9g}")
                for j in np.flatnonzero(block.gaps[i]).tolist()
            }
        yield line


def alarm_names(alarmed: npt.NDArray[np.bool_], alarms: tuple[Alarm, ...]) -> dict[int, str]:
    """Return rows and their alarms: the last stretch of rows has the newest, and so on back."""
    names: dict[int, str] = {}
    alarms = tuple(alarm for alarm in alarms if alarm.cause not in BESIDE)
    if not alarmed.any():
        return names
    which = np.flatnonzero(alarmed)
    stretch = np.concatenate([[0], np.cumsum(np.diff(which) > 1)])
    for row, back in zip(which.tolist(), (stretch[-1] - stretch).tolist(), strict=True):
        if back < len(alarms):
            names[row] = alarms[back].name
    return names


def _virtual(filled: dict[str, float], scored: Scored, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the filled values that other channels predict well enough to replace the sensor."""
    if scored.r2 is None:
        return {}
    virtual = {
        name: {"value": value, "r2": float(f"{scored.r2[names.index(name)]:.3f}")}
        for name, value in filled.items()
        if scored.r2[names.index(name)] >= WORTH
    }
    return {"virtual": virtual} if virtual else {}
