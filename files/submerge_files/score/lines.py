"""Scores as text: CSV with a heading, or a line of JSON for each row.

Both have a line for each row of the input, in its order. JSON has the fields of a client's score
lines (`submerge_client.score_outputs.lines` makes both) and omits unknown values; in CSV their
cell is empty.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import Schema, UsageError
from submerge.judge.prepare import REASONS
from submerge_client.score_outputs.lines import limits_passed, scored_fields
from submerge_files.console.printable import printable
from submerge_files.score.rows import TOP, FileRows

CSV_HEAD, JSON_HEAD = "file,row,", '{"file": '
"""How files of scores begin: no other file is overwritten."""

TIME = "time"
"""What the column of times is called in the output, whatever it is called in the file."""

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class ScoreHeadings:
    """The columns of scores.

    names : Of the model's channels.
    kernel : Whether `linear`, `anomaly_score` and `over_linear` are there.
    factors : Whether `distance` is there.
    timed : Whether the time of each row is there.
    kept : Columns of the files that are carried along.
    """

    names: tuple[str, ...]
    kernel: bool
    factors: bool
    timed: bool = False
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        taken = {"file", "row", *self.scores, "unscored", *([TIME] if self.timed else [])}
        for name in self.kept:
            if name in taken:
                raise UsageError(
                    f"--keep {name}: the scores have a column of that name: rename it in the file"
                )

    @property
    def carried(self) -> tuple[str, ...]:
        """Names of what rows bring along."""
        return (*([TIME] if self.timed else []), *self.kept)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of what rows with a score have."""
        kernel = ("linear", "anomaly_score") if self.kernel else ()
        over = ("over", "over_spe", "over_t2", *(("over_linear",) if self.kernel else ()))
        top = (f"{each}{i}" for i in range(1, TOP + 1) for each in ("top", "share"))
        return (*(("distance",) if self.factors else ()), "spe", "t2", *kernel, *over, *top, FILLED)

    def columns(self, part: FileRows) -> Mapping[str, Column]:
        """Return what the rows of a block that are scored have, (m,) each.

        Numbers, NaN where a score is not known and 0 where no limit is passed; and channels, ""
        for none.
        """
        scores, m = part.scores, len(part.block)
        unknown, called = np.full(m, np.nan), np.array(self.names, dtype=object)
        found: dict[str, Column] = {
            "spe": scores.spe,
            "t2": scores.t2,
            **limits_passed(scores),
            FILLED: part.filled,
        }
        for name, values in (
            ("distance", scores.distance),
            ("linear", scores.linear),
            ("anomaly_score", scores.anomaly),
        ):
            found[name] = unknown if values is None else values
        for i in range(TOP):
            top, share = np.full(m, "", dtype=object), np.zeros(m)
            if i < part.top.shape[1]:
                # A row without a residual has no channel to name.
                top = np.where(part.shares[:, i] > 0, called[part.top[:, i]], "")
                share = part.shares[:, i]
            found[f"top{i + 1}"], found[f"share{i + 1}"] = top, share
        return {name: found[name] for name in self.scores}


FILLED = "filled"


class CsvScoreLines:
    """CSV, with a heading."""

    def __init__(self, headings: ScoreHeadings) -> None:
        self._headings = headings

    @property
    def head(self) -> str:
        """The heading line."""
        return _csv([["file", "row", *self._headings.carried, *self._headings.scores, "unscored"]])

    def lines(self, path: Path, part: FileRows) -> str:
        """Return a line for each row."""
        columns = [_texts(*each) for each in self._headings.columns(part).items()]
        scored = zip(*columns, strict=True)
        file, empty = printable(str(path)), [""] * len(columns)
        carried = zip(*carried_texts(self._headings, part), strict=True)
        rows = []
        for row, why in enumerate(part.why.tolist(), part.first):
            cells = empty if why else next(scored)
            rows.append((file, row, *next(carried, ()), *cells, REASONS[why]))
        return _csv(rows)


class JsonScoreLines:
    """One JSON object for each row."""

    head = ""

    def __init__(self, schema: Schema, headings: ScoreHeadings) -> None:
        self._schema, self._headings = schema, headings

    def lines(self, path: Path, part: FileRows) -> str:
        """Return a line for each row."""
        schema, names = self._schema, self._headings.carried
        scored = scored_fields(part.block, part.scores, schema, schema.names, top=TOP)
        carried = zip(*carried_texts(self._headings, part), strict=True)
        lines = []
        for row, why in enumerate(part.why.tolist(), part.first):
            brought = zip(names, next(carried, ()), strict=True)
            fields = {"file": printable(str(path)), "row": row}
            fields |= {name: text for name, text in brought if text}
            fields |= {"unscored": REASONS[why]} if why else next(scored)
            lines.append(json.dumps(fields))
        return "".join(f"{line}\n" for line in lines)


def carried_texts(headings: ScoreHeadings, part: FileRows) -> list[Sequence[str]]:
    """Return what the rows of a block bring along, a list for each of `headings.carried`."""
    times = part.carried.times or [""] * len(part.why)
    return [*([times] if headings.timed else []), *part.carried.kept]


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _texts(name: str, values: Column) -> list[str]:
    """Return a column as text, empty for what is not known and for a share of zero."""
    if values.dtype == object or values.dtype.kind in "iU":
        return [str(value) for value in values.tolist()]
    if name.startswith(("over", "share")):
        return [f"{value:.4g}" if value else "" for value in values.tolist()]
    return [f"{value:.9g}" if value == value else "" for value in values.tolist()]
