"""What people read of an answer: a table for `.csv`, and lines for the terminal, by kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from submerge_files.console.units import figure
from submerge_operate.fleet.jobs.kernel_lines import (
    KERNEL_PCA,
    LANDMARKS,
    kernel_pca_lines,
    landmark_lines,
)
from submerge_operate.fleet.jobs.results import JobResult

MOST_CHANNELS = 20
"""Channels that have a line."""

MOST_FIGURES = 8
"""Numbers of an array that a line shows."""


def centers_table(result: JobResult) -> list[list[object]]:
    """Return the clusters of k-means, one a row, in the channels' units."""
    centers, counts = result.arrays["centers"], result.arrays["counts"]
    rows: list[list[object]] = [["cluster", "rows", *result.headings]]
    for number, (center, count) in enumerate(zip(centers, counts, strict=True), 1):
        rows.append([number, int(count), *map(float, center)])
    return rows


def moments_table(result: JobResult) -> list[list[object]]:
    """Return mean and standard deviation of each channel, one a row, in its unit."""
    deviations = np.sqrt(result.arrays["variance"])
    rows: list[list[object]] = [["channel", "unit", "mean", "deviation"]]
    for channel, mean, deviation in zip(
        result.schema.named, result.arrays["mean"], deviations, strict=True
    ):
        rows.append([channel.name, channel.unit, float(mean), float(deviation)])
    return rows


def score_centers_table(result: JobResult) -> list[list[object]]:
    """Return the clusters of kernel scores, one a row: a center is a place among scores."""
    centers, counts = result.answer["centers"], result.answer["counts"]
    rows: list[list[object]] = [
        ["cluster", "rows", *(f"score_{at}" for at in range(1, centers.shape[1] + 1))]
    ]
    for number, (center, count) in enumerate(zip(centers, counts, strict=True), 1):
        rows.append([number, int(count), *map(float, center)])
    return rows


TABLES: dict[str, Callable[[JobResult], list[list[object]]]] = {
    "cluster": score_centers_table,
    "kmeans": centers_table,
    "moments": moments_table,
}
"""Kinds whose answer is a table."""


def answer_lines(result: JobResult) -> list[tuple[str, str]]:
    """Return an answer in lines, as a name and what is said of it."""
    if result.kind == "kmeans" and result.is_whole:
        return _clusters(result, "scaled rows")
    if result.kind == "cluster" and result.is_whole:
        return [*_clusters(result, "scores"), *_gammas(result)]
    if result.kind == "moments" and result.is_whole:
        count, out = (int(result.answer[name][0]) for name in ("count", "held_out"))
        return [("rows", _rows(count, out)), *_channels(result)]
    if result.kind in ("kpca", "nystrom") and result.answer.keys() >= KERNEL_PCA:
        return kernel_pca_lines(result)
    if result.kind == "landmarks" and result.answer.keys() >= LANDMARKS:
        return landmark_lines(result)
    return [(name, _figures(array)) for name, array in result.answer.items()]


def _gammas(result: JobResult) -> list[tuple[str, str]]:
    """Return the gamma that was taken, and those that were tried beside it, by their eigengaps."""
    gammas, gaps = (result.answer[name].tolist() for name in ("gammas", "gaps"))
    best = int(result.answer["gaps"].argmax())
    others = [
        f"{figure(gap)} at {figure(gamma)}"
        for at, (gamma, gap) in enumerate(zip(gammas, gaps, strict=True))
        if at != best
    ]
    said = f"{figure(gammas[best])}, eigengap {figure(gaps[best])}"
    return [("gamma", f"{said}: the widest, before {', '.join(others)}" if others else said)]


def _clusters(result: JobResult, of: str) -> list[tuple[str, str]]:
    counts, (out, out_cost) = result.answer["counts"], result.answer["held_out"]
    rows, cost = float(counts.sum()), float(result.answer["cost"][0])
    said = f"{figure(cost / rows)} a row" if rows else "none"
    if out:
        said += f"; {figure(out_cost / out)} a row held out"
    sizes = sorted((int(count) for count in counts), reverse=True)
    shown = ", ".join(f"{size:,}" for size in sizes[:MOST_FIGURES])
    more = f" and {len(sizes) - MOST_FIGURES} smaller" if len(sizes) > MOST_FIGURES else ""
    return [
        ("rows", _rows(int(rows), int(out))),
        ("clusters", f"{len(sizes)}, of {shown}{more} rows"),
        ("cost", f"{said}, of squared distance between {of} and centers"),
    ]


def _channels(result: JobResult) -> list[tuple[str, str]]:
    deviations = np.sqrt(result.arrays["variance"])
    said = [
        f"{name}: {figure(float(mean))}, deviation {figure(float(deviation))}"
        for name, mean, deviation in zip(
            result.headings, result.arrays["mean"], deviations, strict=True
        )
    ]
    more = [f"{len(said) - MOST_CHANNELS:,} more: --out moments.csv has all"]
    shown = said if len(said) <= MOST_CHANNELS else said[:MOST_CHANNELS] + more
    return [("" if at else "channels", line) for at, line in enumerate(shown)]


def _rows(count: int, held_out: int) -> str:
    return f"{count:,}" + (f", and {held_out:,} held out" if held_out else "")


def _figures(array: np.ndarray) -> str:
    if array.size > MOST_FIGURES:
        return " x ".join(map(str, array.shape)) + " numbers"
    return ", ".join(figure(float(value)) for value in array.ravel())
