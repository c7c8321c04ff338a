"""Checks of what travels in a job of kernel PCA: other shapes, and what no rows lead to."""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.jobs.arrays import Arrays, expect
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import chosen, measured, readings
from submerge.jobs.kinds.kpca.seen import PHASES, Seen, stage_of
from submerge.jobs.kinds.kpca.settings import MOST_POINTS, KpcaSettings

Shapes = dict[str, tuple[int | None, ...]]

OFF = 1e-6
"""By how much the rows of a factor may be off a right angle."""


def check_down(of: KpcaSettings, width: int, down: PhaseDown) -> None:
    """Refuse other phases, and arrays of another shape."""
    phase, arrays, t = down.phase, down.arrays, of.sketch
    if phase not in PHASES or stage_of(phase) > len(of.stages):
        raise PeerError(f"kpca has no phase {phase[:40]!r}")
    leverage = of.sample == "leverage"
    shapes: Shapes = {}
    if phase == "factor" or (phase == "keys-1" and not leverage):
        shapes |= {"gamma": (1,)}
    if phase.startswith("keys"):
        shapes |= {"limit": (1,)}
    if phase == "keys-1" and leverage:
        shapes |= {"triangle": (t * (t + 1) // 2,)}
    if phase in ("keys-2", "project"):
        shapes |= {"points": (None, width)}
    if phase.startswith("points"):
        shapes |= {"largest": (1,)}
    if phase == "project":
        shapes |= {"size": (1,)}
    if phase == "measure":
        shapes |= {"axes": (None, None), "variances": (None,)}
        shapes |= {"mean": (None,)} if of.center else {}
        rank = {"readings_axes": (width, None), "readings_mean": (width,)} if of.readings else {}
        shapes |= rank
    expect(arrays, shapes, single=("points",))
    if len(arrays.get("points", ())) > MOST_POINTS:
        raise PeerError(f"at most {MOST_POINTS} points", kind="oversize")
    if "gamma" in arrays:
        _check_gamma(of, float(arrays["gamma"][0]))
    for name in ("limit", "size"):
        if name in arrays and not 1 <= arrays[name][0] <= MOST_POINTS:
            raise PeerError(f"{name} is 1 to {MOST_POINTS}", kind="range")
    if phase == "measure":
        m, r = arrays["axes"].shape
        fits = arrays["variances"].shape == (r,) and (
            "mean" not in arrays or len(arrays["mean"]) == m
        )
        if not fits:
            raise PeerError(f"a variance each for {r} directions of {m}", kind="shape")
        if not (arrays["variances"] > 0).all():
            raise PeerError("variances are positive", kind="range")


def _check_gamma(of: KpcaSettings, gamma: float) -> None:
    try:
        of.kernel.settled_at(gamma)
    except UsageError as error:
        raise PeerError(str(error), kind="range") from error


def check_up(of: KpcaSettings, width: int, seen: Seen | None, down: PhaseDown, up: Arrays) -> None:
    """Refuse arrays that no child of this version sends; `seen` is None after a restart."""
    phase, t = down.phase, of.sketch
    if phase == "count":
        open_: Shapes = {"sums": (width,), "squares": (1,)} if of.kernel.gamma is None else {}
        expect(up, open_ | {"counts": (4,)})
        _check_counts(up["counts"])
    elif phase == "factor":
        expect(up, {"triangle": (t * (t + 1) // 2,)})
    elif phase.startswith("keys"):
        chosen.check_keys(up, of.stages[stage_of(phase) - 1])
    elif phase.startswith("points"):
        _check_points(of, width, seen, down, up)
    elif phase == "measure":
        measured.check_sketches(up, measured.names_of(readings=of.readings))
    else:
        if of.readings:
            _check_readings(of, width, up)
            up = readings.without_readings(up)
        _check_projected(of, int(down.arrays["size"][0]), up)


def _check_counts(counts: Array) -> None:
    if (counts < 0).any() or (counts != np.rint(counts)).any() or (counts >= 2**52).any():
        raise PeerError("counts are whole numbers", kind="range")


def _check_points(
    of: KpcaSettings, width: int, seen: Seen | None, down: PhaseDown, up: Arrays
) -> None:
    """Compute score, u and key of each point again, as far as what went down is known here."""
    stage = stage_of(down.phase)
    if seen is None or not seen.knows(stage):
        size = of.stages[stage - 1]
        chosen.check_rows(up, width, chosen.PointChoice(of.seed, stage, size, size))
        return
    choice = seen.choice(stage)
    chosen.check_rows(up, width, choice)
    rows = up["points"].astype(np.float64)
    try:
        scores = seen.scores(stage, rows)
    except UsageError as error:
        raise PeerError(str(error), kind="range") from error
    slack = seen.slack(stage, rows, scores)
    chosen.check_chosen(up, choice, scores, slack, float(down.arrays["largest"][0]))


def _check_readings(of: KpcaSettings, width: int, up: Arrays) -> None:
    """Refuse other factors of the readings."""
    if not set(readings.NAMES.values()) <= set(up):
        raise PeerError("the readings' directions are missing", kind="shape")
    factor = readings.factor_of(up)
    expect(factor, {"factor": (None, width), "mean": (width,), "sums": (4,)})
    _check_factor(factor["factor"], 2 * readings.rank_of(of.components, width))
    if (factor["sums"] < 0).any():
        raise PeerError("counts and energies are not negative", kind="range")


def _check_projected(of: KpcaSettings, m: int, up: Arrays) -> None:
    """Refuse other factors, sketches and scatters of coordinates (n, m)."""
    mean: Shapes = {"mean": (m,)} if of.center or of.merge == "exact" else {}
    if of.merge == "exact":
        expect(up, mean | {"scatter": (m * (m + 1) // 2,), "sums": (2,)})
    elif of.merge == "sketch":
        width = m + of.center
        expect(up, mean | {"triangle": (width * (width + 1) // 2,), "sums": (3,)})
    else:
        expect(up, mean | {"factor": (None, m), "sums": (4,)})
        _check_factor(up["factor"], 2 * of.components)
    if (up["sums"] < 0).any():
        raise PeerError("counts and energies are not negative", kind="range")


def _check_factor(factor: Array, most: int) -> None:
    """Refuse a factor whose rows are zero, or at no right angles."""
    sigma = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    if len(factor) > most or not (sigma > 0).all():
        raise PeerError(f"a factor has at most {most} rows, none of them zero", kind="range")
    unit = factor / sigma[:, None]
    if (np.abs(unit @ unit.T - np.eye(len(unit))) > OFF).any():
        raise PeerError("the rows of a factor are at right angles", kind="range")
