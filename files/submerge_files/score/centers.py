"""Centers: which mean the rows of each file are measured from, by what was asked for.

Without a request it is the model's. In a model of center = "own" each machine is measured from its
own mean: that of its history, if the model knows the machine by the file's name; else the file's.
Typical errors of channels, by which some are blamed, are those of the machine's history in any
case, as `submerge detect` takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from submerge import UsageError
from submerge.client.monitor_state import MonitorState
from submerge.judge.prepare import Block
from submerge.stats.node_mean import READY
from submerge_client.datasets.table import counted
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.score.columns import lags_of
from submerge_files.score.mean import (
    OWN,
    Center,
    FirstRows,
    Mean,
    of_checkpoint,
    of_rows,
    of_state,
)
from submerge_files.score.model import Normal

Read = Callable[[int | None], Iterable[Block]]
"""Reads the first rows of a file, or all."""


class Centers:
    """The means of files.

    mean : What was asked for.
    note : Takes sentences for the reader of the scores.

    Raises
    ------
    UsageError
        If the mean of a file is requested, but the model has learnt all nodes about one mean.
    """

    def __init__(self, normal: Normal, mean: Mean | None, note: Callable[[str], None]) -> None:
        center = normal.schema.center
        if mean == OWN and center != "own":
            raise UsageError(
                f'expected a model of center = "own" for --mean {OWN}, got "{center}": its scatter'
                " is about one mean: leave --mean out, or take first:400"
            )
        self._normal, self._mean, self._note = normal, mean, note
        self._shared: Center | None = None
        if isinstance(mean, Path):
            self._shared = of_checkpoint(mean, normal.schema)
            for remark in self._shared.notes:
                note(remark)
        elif not (isinstance(mean, FirstRows) or mean == OWN or self._each):
            self._shared = Center()

    def of(self, path: Path, read: Read) -> tuple[Center, bool]:
        """Return the mean for a file, and whether it is from elsewhere than from the file."""
        center, elsewhere = self._of(path, read)
        if center.typical is None and (state := self._state(path)) is not None:
            schema = self._normal.schema
            width = schema.width // lags_of(schema.names)
            center = replace(center, typical=state.of_schema(schema, width).residual_scale)
        return center, elsewhere

    def _of(self, path: Path, read: Read) -> tuple[Center, bool]:
        if self._shared is not None:
            return self._shared, True
        if self._each:
            if (state := self._state(path)) is not None:
                center = of_state(state, self._normal.schema, f"the model for {path.name}")
                for remark in center.notes:
                    self._note(remark)
                return center, True
            self._note(
                "rows are measured from their own file's mean, which hides a fault in most of a"
                " file: --mean first:400 takes that of its first rows, --mean model the model's,"
                " --mean STATE a client's"
            )
        first = self._mean.n if isinstance(self._mean, FirstRows) else None
        center = of_rows(self._normal, read(first), whole=first is None)
        if center.own is not None and not center.own.ready:
            few = counted(center.own.count, "row")
            self._note(f"the mean of {path.name} is of only {few}, fewer than {READY}")
        return center, False

    @property
    def _each(self) -> bool:
        """Whether each machine has a mean that was not asked for."""
        return self._mean is None and self._normal.schema.center == "own"

    def _state(self, path: Path) -> MonitorState | None:
        """Return the state of a file's machine, called as `fit` calls it."""
        states = self._normal.states
        stem = path.name.split(".")[0] or path.name
        known = states.get(stem) or states.get(str(path)) or states.get(ONLY_MACHINE)
        if known is None and self._normal.schema.center != "own":
            # One machine's files may be named in another way than its history's.
            known = next(iter(states.values()), None)
        return known
