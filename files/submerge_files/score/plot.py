"""The picture of scores by row: distance, SPE (squared prediction error) and T2 (Hotelling's)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from submerge.stats.score_limits import Limits
from submerge_files.console.curves import Highest
from submerge_files.console.figures import Axes, Figure, save
from submerge_files.score.output import FileRows

SERIES = {"distance": "distance{}", "spe": "SPE{}", "linear": "SPE of readings", "t2": "T2{}"}
"""Scores that are drawn, from top to bottom; in a kernel group, of features."""


class ScoreCurves:
    """The data of the picture: scores, and the rows at which files begin."""

    def __init__(self) -> None:
        self._begins: dict[Path, int] = {}
        self._highest = Highest(len(SERIES))
        self._known: frozenset[str] = frozenset()

    def add(self, part: FileRows) -> None:
        """Add some rows of a file."""
        scores, judged = part.judged.scores, part.judged
        self._begins.setdefault(part.path, self._highest.rows + 1)
        found = {name: getattr(scores, name) for name in SERIES}
        self._known |= {name for name, each in found.items() if each is not None}
        none = np.full(len(judged.block), np.nan)
        series = (none if each is None else each for each in found.values())
        self._highest.add(np.column_stack([judged.everywhere(each) for each in series]))

    def draw(self, path: Path, limits: Limits | None) -> None:
        """Write the picture to `path`, a PNG."""
        limits = limits or Limits((), (), (), 0)
        of = " of features" if "linear" in self._known else ""
        drawn = [name for name in SERIES if name in self._known]
        figure = Figure(figsize=(11, 2.6 * len(drawn)), layout="constrained")
        charts = figure.subplots(len(drawn), 1, sharex=True)
        for chart, name in zip(charts, drawn, strict=True):
            self._chart(chart, name, SERIES[name].format(of))
            _limits(chart, limits.shares, getattr(limits, name))
        # Outside of the charts, where it hides no scores.
        handles, labels = charts[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize="small", loc="outside upper center", ncols=4)
        charts[-1].set_xlabel("rows" + ("; a line where a file begins" * (len(self._begins) > 1)))
        save(figure, path, dpi=130)

    def _chart(self, chart: Axes, name: str, title: str) -> None:
        rows, scores = self._highest.points([*SERIES].index(name))
        every = self._highest.every
        label = "each row" if every == 1 else f"the highest of {every} rows"
        chart.plot(rows, scores, ".", ms=2.5, color="C0", label=label)
        if (scores > 0).any():
            # A log scale cannot show zero.
            chart.set_yscale("log", nonpositive="mask")
        for begin in list(self._begins.values())[1:]:
            chart.axvline(begin, color="0.7", lw=0.8)
        chart.set_ylabel(title)


def _limits(chart: Axes, shares: tuple[float, ...], values: tuple[float, ...]) -> None:
    styles = {0.95: ":", 0.99: "--", 0.999: "-"}
    for share, value in zip(shares, values, strict=False):
        if share > 0.5 and value > 0:
            style = styles.get(share, "-.")
            chart.axhline(
                value, color="C3", lw=1, ls=style, label=f"{100 * share:.4g} % stay below"
            )
