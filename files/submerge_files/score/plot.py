"""The picture of scores by row: distance, SPE (squared prediction error) and T2 (Hotelling's)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from submerge import Array
from submerge.stats.score_limits import Limits
from submerge_files.console.figures import Axes, Figure, save
from submerge_files.score.rows import FileRows

# The highest, not the mean: a picture of scores is to show what a mean would smooth away.


MOST_POINTS = 2048
"""About as many as a picture has columns."""


class HighestPoints:
    """The highest of each run of `every` scores, a power of two that grows with the series."""

    def __init__(self) -> None:
        self.every, self._n = 1, 0
        self._highest = np.full(MOST_POINTS, np.nan)

    def add(self, scores: Array) -> None:
        """Add scores (n,), NaN for rows without one."""
        while self._n + len(scores) > self.every * MOST_POINTS:
            halved = np.fmax(self._highest[::2], self._highest[1::2])
            self._highest = np.concatenate([halved, np.full(MOST_POINTS // 2, np.nan)])
            self.every *= 2
        places = (self._n + np.arange(len(scores))) // self.every
        np.fmax.at(self._highest, places, scores)
        self._n += len(scores)

    @property
    def points(self) -> tuple[Array, Array]:
        """Rows (from 1) at which runs begin, and the highest score of each run that has any."""
        present = np.flatnonzero(~np.isnan(self._highest))
        return np.asarray(present * self.every + 1, dtype=np.float64), self._highest[present]


class ScoreCurves:
    """The data of the picture: scores, and the rows at which files begin."""

    def __init__(self) -> None:
        self._rows = 0
        self._begins: dict[Path, int] = {}
        self._spe, self._t2, self._linear = HighestPoints(), HighestPoints(), HighestPoints()
        self._distance: HighestPoints | None = None
        self._kernel = False

    def add(self, path: Path, part: FileRows) -> None:
        """Add some rows of a file."""
        self._begins.setdefault(path, self._rows + 1)
        self._rows += len(part.why)
        self._kernel |= part.scores.linear is not None
        if part.scores.distance is not None and self._distance is None:
            self._distance = HighestPoints()
        for maxima, scores in (
            (self._distance, part.scores.distance),
            (self._spe, part.scores.spe),
            (self._t2, part.scores.t2),
            (self._linear, part.scores.linear),
        ):
            if scores is not None and maxima is not None:
                rows = np.full(len(part.why), np.nan)
                rows[part.why == 0] = scores
                maxima.add(rows)

    def draw(self, path: Path, limits: Limits | None) -> None:
        """Write the picture to `path`, a PNG."""
        limits = limits or Limits((), (), (), 0)
        of = " of features" if self._kernel else ""
        drawn = [(f"SPE{of}", self._spe, limits.spe), (f"T2{of}", self._t2, limits.t2)]
        if self._kernel:
            drawn.insert(1, ("SPE of readings", self._linear, limits.linear))
        if self._distance is not None:
            drawn.insert(0, (f"distance{of}", self._distance, limits.distance))
        figure = Figure(figsize=(11, 2.6 * len(drawn)), layout="constrained")
        charts = figure.subplots(len(drawn), 1, sharex=True)
        for chart, (name, maxima, values) in zip(charts, drawn, strict=True):
            self._chart(chart, name, maxima)
            _limits(chart, limits.shares, values)
        # Outside of the charts, where it hides no scores.
        handles, labels = charts[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize="small", loc="outside upper center", ncols=4)
        charts[-1].set_xlabel("rows" + ("; a line where a file begins" * (len(self._begins) > 1)))
        save(figure, path, dpi=130)

    def _chart(self, chart: Axes, name: str, maxima: HighestPoints) -> None:
        rows, scores = maxima.points
        label = "each row" if maxima.every == 1 else f"the highest of {maxima.every} rows"
        chart.plot(rows, scores, ".", ms=2.5, color="C0", label=label)
        if (scores > 0).any():
            # A log scale cannot show zero.
            chart.set_yscale("log", nonpositive="mask")
        for begin in list(self._begins.values())[1:]:
            chart.axvline(begin, color="0.7", lw=0.8)
        chart.set_ylabel(name)


def _limits(chart: Axes, shares: tuple[float, ...], values: tuple[float, ...]) -> None:
    styles = {0.95: ":", 0.99: "--", 0.999: "-"}
    for share, value in zip(shares, values, strict=False):
        if share > 0.5 and value > 0:
            style = styles.get(share, "-.")
            chart.axhline(
                value, color="C3", lw=1, ls=style, label=f"{100 * share:.4g} % stay below"
            )
