"""Histories as an operator has them: what `submerge fit` writes of some rows, without files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge.history.fit import Fitted, fit
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge_files.model_file import learnt_of
from submerge_proto.files.learnt import packed
from support.nodes import EPOCH

NAMES = tuple(f"mote-{i}" for i in range(6))
MINUTE, DAY = 60.0, 86400.0
ROWS = 1440
MIX = np.random.default_rng(5).normal(size=(2, len(NAMES)))


def rows(n: int, seed: int = 1) -> np.ndarray:
    """Return rows of a machine without a fault."""
    rng = np.random.default_rng(seed)
    return 20 + rng.normal(size=(n, 2)) @ MIX + 0.3 * rng.normal(size=(n, len(NAMES)))


def recorded(seed: int, *, days_ago: float = 1.0, machine: str = "old", n: int = ROWS) -> Recorded:
    """Return a file of rows, one a minute."""
    times = EPOCH - days_ago * DAY - MINUTE * np.arange(n - 1, -1, -1.0)
    return Recorded(machine, rows(n, seed), times, f"day-{seed}.csv", 0)


def fitted(*parts: Recorded) -> Fitted:
    """Return what is learnt of some files."""
    return fit(lambda: parts, NAMES, FitSettings(rank=2, rank_max=4))


def file_of(done: Fitted, **fields: Any) -> bytes:
    """Return the model file of what was learnt."""
    return packed(replace(learnt_of(done), **fields))
