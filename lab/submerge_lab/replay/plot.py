"""The picture of a replay: error and rank over time, and the spectrum."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from submerge_files.console.figures import Axes, Figure, save
from submerge_lab.replay.run import ErrorCurves, ReplayOutcome


def draw(path: Path, outcome: ReplayOutcome, curves: ErrorCurves) -> None:
    """Write the picture to `path`, a PNG."""
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(3, 1), width_ratios=(3, 2))
    errors = figure.add_subplot(grid[0, 0])
    ranks = figure.add_subplot(grid[1, 0], sharex=errors)
    spectra = figure.add_subplot(grid[:, 1])
    of, units = ("", " (squared units)") if outcome.kernel is None else (" of features", "")
    pale = 1.0 if len(curves.leaves) == 1 else 0.45
    for number, leaf in enumerate(curves.leaves):
        rows = [moment.rows for moment in leaf.moments]
        label = "a block, before it is learnt" if number == 0 else None
        errors.plot(
            rows, [m.surprise for m in leaf.moments], lw=0.8, alpha=pale, color="C0", label=label
        )
        ranks.step(rows, [m.rank for m in leaf.moments], where="post", alpha=pale, color="C1")
    _draw_over_time(errors, outcome)
    errors.axhline(outcome.error, color="C3", lw=1.5, label="all rows, final subspace")
    if outcome.optimum > 0:
        errors.axhline(outcome.optimum, color="k", lw=1, ls="--", label="all rows, exact PCA")
        errors.set_yscale("log")
    errors.set(ylabel=f"squared error per row{of}", title=f"Error: {outcome.algorithm}")
    errors.legend(fontsize="small")
    errors.tick_params(labelbottom=False)
    ranks.set(xlabel="rows" + (" of a leaf" if outcome.leaves > 1 else ""), ylabel="rank")
    ranks.set_ylim(0, None)

    shown = np.arange(1, len(curves.shown) + 1)
    most = min(len(curves.exact), max(20, 3 * len(shown)))
    if curves.exact[0] > 0:
        # Equal rows have no variance to show on a log scale.
        spectra.set_yscale("log")
    spectra.plot(
        np.arange(1, most + 1),
        curves.exact[:most],
        "o-",
        mfc="none",
        color="k",
        lw=0.8,
        label="exact PCA",
    )
    spectra.plot(shown, curves.shown, "x", color="C3", label=f"submerge, rank {outcome.rank}")
    spectra.set(xlabel="direction", ylabel=f"variance{of}{units}", title="Spectrum")
    spectra.legend(fontsize="small")
    save(figure, path, dpi=130)


def _draw_over_time(errors: Axes, outcome: ReplayOutcome) -> None:
    """Draw the error of all rows so far, and that at the rule's least and largest rank."""
    if outcome.over_time is not None:
        curve = outcome.over_time
        errors.plot(curve.rows, curve.errors, color="C2", lw=1.5, label="all rows so far")
    for name, each in (outcome.bounds or {}).items():
        label, color = f"fixed {name}, rank {each.rank}", {"lo": "C4", "hi": "C5"}[name]
        if each.over_time is not None:
            errors.plot(each.over_time.rows, each.over_time.errors, ":", color=color, label=label)
        else:
            errors.axhline(each.error, color=color, lw=1, ls=":", label=label)
