"""The picture of k-means: each cluster's center by channel."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from submerge_files.console.figures import Figure, save
from submerge_operate.fleet.jobs.answer_files import check_whole
from submerge_operate.fleet.jobs.results import JobResult

MOST_LABELS = 60  # more channels than this are numbered, not named


def draw(result: JobResult, path: Path) -> None:
    """Write the picture to `path`, a PNG: a row for each cluster, the largest first."""
    check_whole(result)
    centers, counts = np.asarray(result.answer["centers"]), result.answer["counts"]
    order = np.argsort(-counts, kind="stable")
    deviations, spread = centers, centers.std(axis=0)
    if not result.schema.scaling:
        # Standardized, so that channels can be compared.
        deviations = (centers - centers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    most = max(float(np.abs(deviations).max()), 1e-12)
    width = min(4 + 0.28 * result.schema.width, 30)
    figure = Figure(figsize=(width, 1.6 + 0.3 * len(order)), layout="constrained")
    chart = figure.subplots()
    image = chart.imshow(deviations[order], cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    chart.set_yticks(range(len(order)))
    rows = [f"cluster {number + 1}: {int(counts[number]):,} rows" for number in order]
    chart.set_yticklabels(rows, fontsize="small")
    if result.schema.width <= MOST_LABELS:
        chart.set_xticks(range(result.schema.width))
        chart.set_xticklabels(result.schema.names, rotation=90, fontsize="small")
    else:
        chart.set_xlabel("channels")
    bar = figure.colorbar(image, ax=chart)
    scaled = result.schema.scaling is not None
    bar.set_label("scaled value" if scaled else "value, each channel's centers standardized")
    save(figure, path, dpi=130)
