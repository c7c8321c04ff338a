"""A fitted history as a model file."""

from __future__ import annotations

from pathlib import Path

from submerge import UsageError
from submerge.history.fit import Fitted
from submerge.history.knowledge import Learnt
from submerge_files import model_file


def check_target(path: Path) -> None:
    """Refuse a place where a model cannot go, before the work."""
    if not path.parent.is_dir():
        raise UsageError(f"expected a folder {path.parent} for {path.name}, got none: make it")
    if path.exists():
        model_file.check_older(path)


def save(path: Path, fitted: Fitted) -> int:
    """Write what was learnt; return the bytes of the file."""
    return model_file.save(path, learnt_of(fitted))


def learnt_of(fitted: Fitted) -> Learnt:
    """Return what a model file holds of a history."""
    return Learnt(
        fitted.model,
        fitted.scatter,
        fitted.folds.moments,
        fitted.sketches,
        fitted.chunks,
        monitors=tuple(sorted(fitted.states.items())),
        period_s=fitted.first.period_s,
    )
