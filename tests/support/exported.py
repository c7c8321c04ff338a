"""Models to export, and what the product itself says of rows by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge.client.alarms.detector import RecentScores, row_statistics
from submerge.history.detection import ByModel, HistoryDetector, RowJudge
from submerge.history.fit import fit
from submerge.history.recording import Recorded
from submerge.history.settings import SOON, FitSettings
from submerge.judge.score import RowScores
from submerge_bridges.export.recipe import Recipe
from submerge_files.model_file import SavedModel, learnt_of, reread
from submerge_files.score.model import of_machine, of_saved
from support import pump_files


def fitted(
    rows: np.ndarray,
    names: tuple[str, ...],
    *,
    period_s: float = 60.0,
    machines: int = 1,
    **settings: object,
) -> SavedModel:
    """Return the model of rows, as its file has it; equal parts of them are of several machines."""
    times = 1.7e9 + period_s * np.arange(len(rows) // machines)
    parts = [
        Recorded(f"m{number}", part, times, f"{number}.csv")
        for number, part in enumerate(np.split(rows, machines))
    ]
    return reread(learnt_of(fit(lambda: parts, names, FitSettings(**settings))))


def pump() -> SavedModel:
    """Return the model of two weeks of a pump: four channels, limits of a week."""
    return fitted(pump_files.readings(20_160), pump_files.NAMES)


@dataclass(frozen=True)
class ByProduct:
    """What the product says of rows that have scores.

    which : their numbers
    statistics : by kind, (m,) each
    """

    which: np.ndarray
    scores: RowScores
    statistics: dict[str, np.ndarray]


def by_product(saved: SavedModel, recipe: Recipe, rows: np.ndarray, machine: str | None = None):
    """Score rows with the product; rows with gaps are passed over, as an export does."""
    normal = of_saved(saved)
    judge = RowJudge(ByModel(of_machine(normal, machine)))
    whole = ~np.isnan(rows).any(axis=1)
    numbers, parts = [], []
    for start in range(0, int(whole.sum()), 1024):
        judged = judge.judge(judge.prepare(rows[whole][start : start + 1024]))
        numbers.append(np.flatnonzero(whole)[start + judged.block.which])
        parts.append(judged.scores)
    even = {kind: np.concatenate([part.even[kind] for part in parts]) for kind in parts[0].even}
    joined = RowScores(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("spe", "t2")),
        None,
        even,
        {kind: np.concatenate([part.over[kind] for part in parts]) for kind in parts[0].over},
        None,
        np.concatenate([part.errors for part in parts]),
        parts[0].expected,
        parts[0].residual_scale,
        even.get("distance"),
        scorer=parts[0].scorer,
    )
    recent = RecentScores()
    watched = recent.watched(even, lambda kind: recipe.alarm.limits.get(kind, np.inf))
    of, after = recipe.alarm.of, recipe.alarm.after
    found = row_statistics(tuple(watched), recent.span(watched, of - 1), of, after)
    statistics = dict(zip(watched, found, strict=True))
    return ByProduct(np.concatenate(numbers), joined, statistics)


def by_detect(saved: SavedModel, rows: np.ndarray) -> np.ndarray:
    """Return at which rows `submerge detect` has an open alarm, (n,); all rows can be judged."""
    state = dict(saved.learnt.monitors)["m0"]
    detector = HistoryDetector(saved.model, state, saved.learnt.period_s, SOON)
    return np.concatenate([part.alarmed for part in detector.add(Recorded("m0", rows, None))])


def plant_rows(
    n: int, seed: int = 0, *, channels: int = 54, causes: int = 8, faults: int = 0
) -> np.ndarray:
    """Return rows (n, channels) of a machine with so many causes.

    faults : spans of 60 rows in which one channel is off by one to eight times its noise
    """
    plant, rng = np.random.default_rng(54), np.random.default_rng(seed)
    pattern = plant.normal(size=(causes, channels))
    noise = plant.uniform(0.1, 0.6, channels)
    scale, offset = 10.0 ** plant.uniform(-2, 2, channels), plant.normal(size=channels) * 500
    rows = rng.normal(size=(n, causes)) @ pattern + noise * rng.normal(size=(n, channels))
    for start in rng.integers(0, n - 60, faults):
        channel = int(rng.integers(channels))
        rows[start : start + 60, channel] += noise[channel] * rng.uniform(1, 8)
    return rows * scale + offset


def plant(rows: int = 20_000) -> SavedModel:
    """Return the model of a plant with 54 channels, of 8 directions."""
    return fitted(plant_rows(rows), tuple(f"s{i}" for i in range(54)), rank=8)


def fuzzed_rows(n: int, offset: np.ndarray, scale: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return rows (n, channels) with readings, and in most of them what is none."""
    rng = np.random.default_rng(seed)
    rows = offset + scale * rng.normal(size=(n, len(scale)))
    wild = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e39, 1e15, 5e-324, -0.0)
    for row in rows:
        for _ in range(int(rng.integers(0, 4))):
            row[rng.integers(len(row))] = wild[rng.integers(len(wild))]
    return rows
