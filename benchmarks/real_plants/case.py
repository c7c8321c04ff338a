"""Case: rows that were learnt, rows to judge, and which of these are faulty."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from submerge import UsageError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """One machine, or one run of it.

    faulty : By the set's own labels.
    """

    name: str
    channels: tuple[str, ...]
    history: Array
    rows: Array
    faulty: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PlantSet:
    """A set of cases.

    title, source : Its name, and where its authors publish it.
    folder : Below SUBMERGE_DATA.
    pattern : The files that it needs there, for the line that says they are missing.
    load : Yields its cases from the folder.
    """

    title: str
    source: str
    folder: str
    pattern: str
    load: Callable[[Path], Iterator[Case]]

    def cases(self, data: Path) -> list[Case]:
        """Return all cases.

        UsageError if the files are not there.
        """
        folder = data / self.folder
        found = list(self.load(folder)) if folder.is_dir() else []
        if not found:
            raise UsageError(
                f"{self.title}: expected {self.pattern} in {folder}, got none:"
                f" {self.source} has them; set SUBMERGE_DATA"
            )
        return found


def varying(history: Array, channels: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return which columns vary in a history, and their names: others can say nothing."""
    spread = np.nanmax(history, axis=0) - np.nanmin(history, axis=0)
    kept = [i for i in range(history.shape[1]) if spread[i] > 0]
    return kept, tuple(channels[i] for i in kept)
