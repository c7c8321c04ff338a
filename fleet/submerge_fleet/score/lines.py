"""Scores as text: CSV with a heading, or a line of JSON for each row.

Both have a line for each row of the input, in its order. JSON says what a client's score lines
say, in the same words (`submerge_client.scores`), and leaves out what there is not; a cell of
the CSV is empty then.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from submerge_fleet.console.admin_client import printable
from submerge_fleet.score.rows import TOP, WHY, ScoredBlock

CSV_HEAD, JSON_HEAD = "file,row,", '{"file": '
"""How files of scores begin: nothing else is ever overwritten."""


class CsvScoreLines:
    """CSV; in a kernel group with `linear` and `odd`.

    Parameters
    ----------
    names : sequence of str
        Of the channels.
    kernel : bool
    """

    def __init__(self, names: tuple[str, ...], *, kernel: bool) -> None:
        self._names, self._kernel = np.array(names, dtype=object), kernel

    @property
    def head(self) -> str:
        """The heading, a line."""
        scores = ["spe", "t2", *(("linear", "anomaly_score") if self._kernel else ())]
        top = [f"{each}{i}" for i in range(1, TOP + 1) for each in ("top", "share")]
        names = ["file", "row", *scores, "over", "over_t2", *top, "filled", "unscored"]
        return ",".join(names) + "\n"

    def lines(self, path: Path, judged: ScoredBlock) -> str:
        """Return a line for each row."""
        m = len(judged.spe)
        nothing = [""] * m
        columns = [_numbers(judged.spe), _numbers(judged.t2)]
        if self._kernel:
            columns += [
                nothing if scores is None else _numbers(scores)
                for scores in (judged.linear, judged.anomaly_score)
            ]
        columns += [_shares(judged.over), _shares(judged.over_t2)]
        for i in range(TOP):
            if i < judged.top.shape[1]:
                # A row without a residual has no channel to name.
                reported = judged.shares[:, i] > 0
                columns.append(np.where(reported, self._names[judged.top[:, i]], "").tolist())
                columns.append(_shares(judged.shares[:, i]))
            else:
                columns += [nothing, nothing]
        columns.append([str(count) for count in judged.gaps.sum(axis=1).tolist()])
        told_rows = zip(*columns, strict=True)
        file, empty = printable(str(path)), [""] * len(columns)
        text = io.StringIO()
        write = csv.writer(text, lineterminator="\n").writerow
        for row, why in enumerate(judged.why.tolist(), judged.first):
            cells = empty if why else next(told_rows)
            write((file, row, *cells, WHY[why]))
        return text.getvalue()


class JsonScoreLines:
    """One JSON object a row."""

    head = ""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def lines(self, path: Path, judged: ScoredBlock) -> str:
        """Return a line for each row."""
        scored = self._scored(judged)
        lines = []
        for row, why in enumerate(judged.why.tolist(), judged.first):
            reported = {"unscored": WHY[why]} if why else next(scored)
            lines.append(json.dumps({"file": printable(str(path)), "row": row} | reported))
        return "".join(f"{line}\n" for line in lines)

    def _scored(self, judged: ScoredBlock) -> Iterator[dict[str, Any]]:
        for i in range(len(judged.spe)):
            line: dict[str, Any] = {"spe": float(judged.spe[i]), "t2": float(judged.t2[i])}
            if judged.linear is not None:
                line["linear"] = float(judged.linear[i])
            if judged.anomaly_score is not None:
                line["anomaly_score"] = float(f"{judged.anomaly_score[i]:.4g}")
            for name, shares in (("over", judged.over), ("over_t2", judged.over_t2)):
                if shares[i]:
                    line[name] = float(shares[i])
            line["top"] = {
                self._names[j]: float(f"{share:.4g}")
                for j, share in zip(judged.top[i].tolist(), judged.shares[i].tolist(), strict=True)
                if share
            }
            if judged.gaps[i].any():
                line["filled"] = {
                    self._names[j]: float(f"{judged.readings[i, j]:.9g}")
                    for j in np.flatnonzero(judged.gaps[i]).tolist()
                }
            yield line


def _numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    return [f"{value:.9g}" for value in values.tolist()]


def _shares(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    """Zero is nothing to tell."""
    return [f"{value:.4g}" if value else "" for value in values.tolist()]
