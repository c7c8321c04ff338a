"""The summary of scoring: counts of rows, by limit and by channel, and the highest rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Array
from submerge.history.detection import JudgedRows
from submerge.judge.prepare import REASONS
from submerge.judge.score import RowScores
from submerge_client.score_outputs.lines import limits_passed
from submerge_files.console.units import printable
from submerge_files.score.model import Normal
from submerge_files.score.output import FileRows

MOST_ANOMALOUS = 5  # rows that the summary lists
HIGH = 0.99  # the limit above which rows count for the list of first channels

MOST_CHANNELS = 8


@dataclass(order=True)
class AnomalousRow:
    """One row; rows compare by score, and among equal ones the first is the highest."""

    rank: float
    order: int
    path: Path = field(compare=False)
    row: int = field(compare=False)
    text: str = field(compare=False, default="")


class ScoreSummary:
    def __init__(self, normal: Normal) -> None:
        self._normal, self._names = normal, normal.schema.names
        self.rows = self.scored = 0
        self._files: dict[Path, None] = {}
        self._why: Counter[str] = Counter()
        self._over: dict[str, Counter[float]] = {}
        self._first: Counter[str] = Counter()
        self._filled = 0
        self._most_anomalous: list[AnomalousRow] = []

    def add(self, part: FileRows) -> None:
        """Count some rows of a file."""
        scores, (top, shares) = part.judged.scores, part.judged.top
        self._files[part.path] = None
        self.rows += len(part.why)
        self._why.update(REASONS[why] for why in part.why.tolist() if why)
        self._filled += int((part.judged.filled > 0).sum())
        for name, over in _over(scores).items():
            self._over.setdefault(name, Counter()).update(over[over > 0].tolist())
        if top.shape[1]:
            blamed = (_main_over(scores) >= HIGH) & (shares[:, 0] > 0)
            self._first.update(self._names[j] for j in top[blamed, 0].tolist())
        self._compare(part)
        self.scored += len(scores.spe)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model: who takes this in has it."""
        return {name: value for name, value in self.__dict__.items() if name != "_normal"}

    def take(self, later: ScoreSummary) -> None:
        """Take in what was counted of later rows."""
        rows = (replace(each, order=each.order - self.scored) for each in later._most_anomalous)
        every = sorted((*self._most_anomalous, *rows), reverse=True)
        self._most_anomalous = every[:MOST_ANOMALOUS]
        self._files |= later._files
        self.rows += later.rows
        self.scored += later.scored
        self._why.update(later._why)
        for name, counts in later._over.items():
            self._over.setdefault(name, Counter()).update(counts)
        self._first.update(later._first)
        self._filled += later._filled

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows have no score, by reason."""
        return {why: self._why[why] for why in REASONS if self._why[why]}

    @property
    def counts(self) -> str:
        """How many rows there were, and how many of them are scored."""
        of = f" of {len(self._files)} files" if len(self._files) > 1 else ""
        counts = [f"{self.scored:,} scored"]
        counts += [f"{n:,} not ({why})" for why, n in self.reasons.items()]
        counts += [f"{self._filled:,} with gaps filled"] if self._filled else []
        return f"{self.rows:,}{of}: {', '.join(counts)}"

    def text(self) -> list[tuple[str, str]]:
        """Return the summary as text: names and values."""
        lines = [
            ("model", f"{self._normal.about}; rank {self._normal.shown.rule.start}"),
            ("rows", self.counts),
        ]
        limits = self._normal.limits
        if limits is not None:
            shares = [share for share in limits.shares if share > 0.5]
            for name, counter in self._over.items():
                # A row is counted at its highest limit, and is above the lower ones too.
                above = [sum(n for at, n in counter.items() if at >= share) for share in shares]
                counts = [
                    f"{100 * share:.4g} %: {n:,} ({n / max(self.scored, 1):.2%})"
                    for share, n in zip(shares, above, strict=True)
                ]
                lines.append((f"{name} above", ", ".join(counts)))
        lines += [
            ("highest" if i == 0 else "", f"row {entry.row}{self._of(entry.path)}: {entry.text}")
            for i, entry in enumerate(self._most_anomalous)
        ]
        if self._first:
            names = ", ".join(
                f"{printable(name)} {count:,}"
                for name, count in self._first.most_common(MOST_CHANNELS)
            )
            lines.append(("channels", f"first in rows above {100 * HIGH:.4g} %: {names}"))
        return lines

    def _compare(self, part: FileRows) -> None:
        """Keep the highest rows so far."""
        judged, ranks = part.judged, part.judged.scores.rank
        rows = judged.block.which + judged.first
        for i in np.argsort(-ranks, kind="stable")[:MOST_ANOMALOUS].tolist():
            entry = AnomalousRow(float(ranks[i]), -(self.scored + i), part.path, int(rows[i]))
            if len(self._most_anomalous) < MOST_ANOMALOUS or entry > self._most_anomalous[-1]:
                entry.text = self._text(judged, i)
                every = sorted((*self._most_anomalous, entry), reverse=True)
                self._most_anomalous = every[:MOST_ANOMALOUS]

    def _of(self, path: Path) -> str:
        return f" of {printable(str(path))}" if len(self._files) > 1 else ""

    def _text(self, judged: JudgedRows, i: int) -> str:
        scores, above = judged.scores, _main_over(judged.scores)[i]
        text = f"SPE {scores.spe[i]:.4g}, T2 {scores.t2[i]:.4g}"
        if scores.linear is not None:
            text = f"SPE {scores.spe[i]:.4g} of features, {scores.linear[i]:.4g} of readings"
        if scores.distance is not None:
            text = f"distance {scores.distance[i]:.4g}, {text}"
        over = f", above {100 * above:.4g} %" if above else ""
        top = [
            f"{printable(self._names[j])} {share:.0%}"
            for j, share in zip(*(each[i].tolist() for each in judged.top), strict=True)
            if share > 0
        ]
        return f"{text}{over}; {', '.join(top) or 'no residual'}"


def _over(scores: RowScores) -> dict[str, Array]:
    over = {"SPE": scores.over_spe, "T2": scores.over["t2"]}
    return over if scores.distance is None else {"distance": scores.over["distance"]} | over


def _main_over(scores: RowScores) -> Array:
    """Return the limit that rows are over by their combined score."""
    return limits_passed(scores)["over"]
