"""Scores as text: CSV with a heading, or a line of JSON for each row.

Both have a line for each row of the input, in its order. JSON has the fields of a client's score
lines (`submerge_client.scores.scored_fields` makes both) and omits unknown values; in CSV their
cell is empty.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Schema
from submerge.judge.prepare import REASONS
from submerge_client.scores import scored_fields
from submerge_fleet.console.admin_client import printable
from submerge_fleet.score.rows import TOP, FileRows

CSV_HEAD, JSON_HEAD = "file,row,", '{"file": '
"""How files of scores begin: no other file is overwritten."""


class CsvScoreLines:
    """CSV; `distance` and `over_distance` are there where the model has factors.

    In a kernel group with `linear`, `anomaly_score` and `over_linear`.
    """

    def __init__(self, names: tuple[str, ...], *, kernel: bool, factors: bool) -> None:
        self._names, self._kernel = np.array(names, dtype=object), kernel
        self._factors = factors

    @property
    def head(self) -> str:
        """The heading line."""
        distance = ["distance"] if self._factors else []
        scores = [*distance, "spe", "t2", *(("linear", "anomaly_score") if self._kernel else ())]
        top = [f"{each}{i}" for i in range(1, TOP + 1) for each in ("top", "share")]
        over = [f"over_{each}" for each in distance]
        over += ["over", "over_t2", *(("over_linear",) if self._kernel else ())]
        names = ["file", "row", *scores, *over, *top, "filled", "unscored"]
        return ",".join(names) + "\n"

    def lines(self, path: Path, part: FileRows) -> str:
        """Return a line for each row."""
        scores, m = part.scores, len(part.block)
        nothing = [""] * m
        columns = [] if scores.distance is None else [_numbers(scores.distance)]
        columns += [_numbers(scores.spe), _numbers(scores.t2)]
        if self._kernel:
            columns += [
                nothing if each is None else _numbers(each)
                for each in (scores.linear, scores.anomaly)
            ]
        over = [] if scores.distance is None else [scores.over["distance"]]
        over += [scores.over_spe, scores.over["t2"]]
        over += [scores.over["linear"]] if self._kernel else []
        columns += [_shares(each) for each in over]
        for i in range(TOP):
            if i < part.top.shape[1]:
                # A row without a residual has no channel to name.
                blamed = part.shares[:, i] > 0
                columns.append(np.where(blamed, self._names[part.top[:, i]], "").tolist())
                columns.append(_shares(part.shares[:, i]))
            else:
                columns += [nothing, nothing]
        columns.append([str(count) for count in part.filled.tolist()])
        scored = zip(*columns, strict=True)
        file, empty = printable(str(path)), [""] * len(columns)
        text = io.StringIO()
        write = csv.writer(text, lineterminator="\n").writerow
        for row, why in enumerate(part.why.tolist(), part.first):
            cells = empty if why else next(scored)
            write((file, row, *cells, REASONS[why]))
        return text.getvalue()


class JsonScoreLines:
    """One JSON object for each row."""

    head = ""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def lines(self, path: Path, part: FileRows) -> str:
        """Return a line for each row."""
        schema = self._schema
        scored = scored_fields(part.block, part.scores, schema, schema.names, top=TOP)
        lines = []
        for row, why in enumerate(part.why.tolist(), part.first):
            fields = {"unscored": REASONS[why]} if why else next(scored)
            lines.append(json.dumps({"file": printable(str(path)), "row": row} | fields))
        return "".join(f"{line}\n" for line in lines)


def _numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    return [f"{value:.9g}" for value in values.tolist()]


def _shares(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    """Return shares as text, empty for zero."""
    return [f"{value:.4g}" if value else "" for value in values.tolist()]
