"""Contender: what a method has to have to be measured; `found` loads one by its name."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from submerge import SAPCA, UsageError

Array = npt.NDArray[np.float64]


class Contender(Protocol):
    """Anything that learns a subspace block by block."""

    def partial_fit(self, block: Array) -> object:
        """Learn rows (b, dim) of float64; they may be overwritten."""

    def basis(self) -> Array:
        """Return the orthonormal columns (dim, rank) that were learnt."""


MakeContender = Callable[[int], Contender]
"""Makes a method for a rank."""


class Submerge:
    """Ours, as it is by default, but for what is given.

    block_size : rows of a block; None is its own choice
    options : of `submerge.SAPCA`
    """

    def __init__(self, rank: int, block_size: int | None = None, **options: Any) -> None:
        self.engine = SAPCA(rank, block_size=block_size, **options)
        self.partial_fit = self.engine.partial_fit

    def basis(self) -> Array:
        """Return the shown directions; rows that wait are counted in."""
        return np.asarray(self.engine.shown.basis, dtype=np.float64)


def found(name: str) -> MakeContender:
    """Return what makes the method `module:Class`, called with the rank.

    UsageError if there is no such class, its module cannot be imported, or it lacks a method.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"a method is module:Class, got {name!r}")
    try:
        made = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"method {name}: {error}; is its folder in PYTHONPATH?") from error
    except AttributeError as error:
        raise UsageError(f"method {name}: {module} has no {attribute}") from error
    except Exception as error:  # code of others: it may raise anything
        raise UsageError(f"method {name}: {module} raised {raised(error)}") from error
    if not callable(made):
        raise UsageError(f"method {name}: expected a class, got {type(made).__name__}")
    lacking = [each for each in ("partial_fit", "basis") if not hasattr(made, each)]
    if isinstance(made, type) and lacking:
        raise UsageError(
            f"method {name}: expected partial_fit(block) and basis(), without {lacking[0]}"
        )

    def make(rank: int) -> Contender:
        contender: Contender = made(rank)
        return contender

    return make


def raised(error: Exception) -> str:
    """Return what an error says, and where it was raised, in one line."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    frames = traceback.extract_tb(error.__traceback__)
    return f"{said} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
