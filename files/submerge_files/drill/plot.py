"""The picture of a drill: the smallest faults of each channel that are found, in its deviations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from submerge.drill.drill import LARGEST
from submerge_files.console.figures import Figure, save
from submerge_files.drill.table import SIZES


def draw(path: Path, channels: Sequence[dict[str, Any]]) -> None:
    """Write the picture of the objects of `in_units` to `path`, a PNG."""
    figure = Figure(figsize=(9, 1.2 + 0.22 * len(channels)), layout="constrained")
    chart = figure.subplots()
    rows = np.arange(len(channels))
    for i, kind in enumerate(SIZES):
        shift, color = 0.25 * (i - 1), f"C{i}"
        spreads = [[_drawn(each, size) for size in each[kind].values()] for each in channels]
        best, median, worst = np.array(spreads).T
        chart.hlines(rows + shift, best, worst, color=color, lw=1.2)
        chart.plot(median, rows + shift, "o", ms=3.5, color=color, label=kind)
    for row, each in zip(rows.tolist(), channels, strict=True):
        if each["blind"]:
            chart.axhspan(row - 0.5, row + 0.5, color="C3", alpha=0.12, lw=0)
    chart.set_xscale("log", base=2)
    chart.axvline(LARGEST, color="0.7", lw=0.8)
    chart.set_yticks(rows, [each["channel"] for each in channels], fontsize="small")
    chart.invert_yaxis()
    chart.set_xlabel(
        "smallest fault that is found, in standard deviations (of nodes: scales) of the channel"
        f" (at {LARGEST:g}: none); shaded: blind"
    )
    figure.legend(fontsize="small", loc="outside upper center", ncols=3)
    save(figure, path, dpi=130)


def _drawn(channel: dict[str, Any], size: float | None) -> float:
    return LARGEST if size is None else min(size / channel["deviation"], LARGEST)
