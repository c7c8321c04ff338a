"""The mean that rows of a file are measured from: the model's, the file's own, or a client's.

A group with `center = "own"` learns how readings vary about each node's own mean, and a node
scores with its own. A file counts as a node: its mean is that of all its rows which can be scored,
read in a first pass, or of its first rows. A client knows less than the former at its first rows.
And it hides one kind of fault: a deviation in most of the file becomes its normal. The state of a
machine, in a client's checkpoint or in a fitted model, holds its mean and the typical residual of
each channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from submerge import Array, PeerError, Schema, UsageError
from submerge.client.monitor_state import MonitorState
from submerge.client.node import MONITOR
from submerge.judge.prepare import Block, in_units
from submerge.stats.node_mean import READY, OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge_client.checkpoint import state_of
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.console.units import printable
from submerge_files.level import AnotherLevel
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.reader.selection import some
from submerge_files.score.model import Normal

MODEL, OWN, FIRST = "model", "own", "first:"


@dataclass(frozen=True)
class FirstRows:
    """The mean of the first n rows of each file."""

    n: int


Mean = str | Path | FirstRows
"""`MODEL`, `OWN`, the first rows, or the checkpoint of a client."""


def parsed(text: str) -> Mean:
    """Return the value of `--mean`; raises UsageError if it is none."""
    if text in (MODEL, OWN):
        return text
    if text.startswith(FIRST):
        n = text.removeprefix(FIRST)
        if not (n.isascii() and n.isdigit() and int(n) >= READY):
            raise UsageError(
                f"expected --mean first:N with at least {READY} rows, got {text!r}; write first:400"
            )
        return FirstRows(int(n))
    path = Path(text)
    if not path.exists():
        raise UsageError(f"--mean is model, own, first:400, or a client's state file, got {text!r}")
    return path


@dataclass(frozen=True, eq=False)
class Center:
    """The mean that rows are measured from.

    own : a mean instead of the model's
    typical : typical residuals of channels; None if unknown
    """

    own: OwnMean | None = None
    typical: ResidualScale | None = None
    excess: float | None = None
    notes: tuple[str, ...] = ()


def of_rows(normal: Normal, parts: Iterable[Block], *, whole: bool = True) -> Center:
    """Return the mean of a file; if not `whole`, of its first rows."""
    # Filled values do not count: they come from the fleet's model. In feature space only rows
    # without a gap count.
    *lifting, linear = normal.summary.parts
    features = lifting[0].mean if lifting else None
    # Sums of deviations: sums of readings would lose digits beside a huge mean.
    off, known = np.zeros(linear.dim), np.zeros(linear.dim)
    lifted = np.zeros(0 if features is None else len(features))
    rows = complete = 0
    for block in parts:
        gaps = np.zeros(block.rows.shape, dtype=bool) if block.gaps is None else block.gaps
        off += np.where(gaps, 0.0, block.rows - linear.mean).sum(axis=0)
        known += (~gaps).sum(axis=0)
        rows += len(block)
        if features is not None:
            full = ~gaps.any(axis=1)
            lifted += (block.features[full] - features).sum(axis=0)
            complete += int(full.sum())
    # A channel without any reading in the file keeps the fleet's mean.
    own = OwnMean(
        linear.mean + off / np.maximum(known, 1.0),
        None if features is None else features + lifted / max(complete, 1),
        weight=float(rows),
        count=rows,
        span_s=0.0,
    )
    # If the mean is of these very rows, they do not vary more about it.
    return Center(own, excess=1.0 if whole else None)


def of_checkpoint(path: Path, normal: Normal) -> Center:
    """Return the mean of a client, from the file of its `[client] state`."""
    schema = normal.schema
    # Imported here: only this option needs protobuf.
    from submerge_proto.kept import records

    try:
        data = state_of(path).get(MONITOR)
        kept: MonitorState | None = None if data is None else records.unpack(MONITOR, data)
    except OSError as error:
        raise UsageError(
            f"expected a client's checkpoint in {path}, got: {error.strerror}"
        ) from None
    except PeerError as error:
        raise UsageError(f"expected a client's checkpoint in {path}, got: {error}") from None
    if kept is None:
        raise UsageError(
            f"expected a checkpoint of a client that has read rows in {path}, got none"
        )
    if kept.fingerprint != schema.fingerprint:
        raise UsageError(
            f"expected a checkpoint with the model's schema, {schema.fingerprint[:8]}, in {path},"
            f" got one with {kept.fingerprint[:8]}"
        )
    return of_state(normal, kept, str(path))


def of_machine(normal: Normal, machine: str | None) -> Center:
    """Return the mean of a machine that was learnt; None is the only one."""
    if normal.schema.center == "own" and machine not in normal.states:
        raise refusal(
            "machine",
            expected="one that was learnt, as each has its own mean",
            got="none" if machine is None else repr(machine),
            hint=f"the model knows {some(list(normal.states)) or 'none'}",
        )
    state = normal.state(*([] if machine is None else [machine]))
    return Center() if state is None else of_state(normal, state, "the model")


def of_state(normal: Normal, state: MonitorState, whence: str) -> Center:
    """Return the mean of a machine whose state is known."""
    kept = state.of_schema(normal.schema, normal.channels)
    own = kept.own
    if own is None or own.ready:
        return Center(own, kept.residual_scale)
    few = f"the mean in {whence} is of {own.count} rows, fewer than {READY}"
    return Center(None, kept.residual_scale, notes=(f"{few}: the client scores with the fleet's",))


Read = Callable[[int | None], Iterable[Block]]
"""Reads the first rows of a file, or all."""


class Centers:
    """The means of files."""

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
            self._shared = of_checkpoint(mean, normal)
            for remark in self._shared.notes:
                note(remark)
        elif not (isinstance(mean, FirstRows) or mean == OWN or self._each):
            self._shared = Center()

    def of(self, path: Path, read: Read) -> tuple[Center, bool]:
        """Return the mean for a file, and whether it is from elsewhere than from the file."""
        center, elsewhere = self._of(path, read)
        if center.typical is None and (state := self._state(path)) is not None:
            center = replace(center, typical=of_state(self._normal, state, "").typical)
        return center, elsewhere

    def _of(self, path: Path, read: Read) -> tuple[Center, bool]:
        if self._shared is not None:
            return self._shared, True
        if self._each:
            if (state := self._state(path)) is not None:
                center = of_state(self._normal, state, f"the model for {path.name}")
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
        stem = path.name.split(".")[0] or path.name
        return self._normal.state(stem, str(path), ONLY_MACHINE)


def deviations_of(normal: Normal) -> Array:
    """Return the standard deviation of each channel by the model, lags left out; scaled."""
    linear = normal.summary.parts[-1]
    held = np.square(linear.basis, dtype=np.float64) @ linear.explained_variance
    if normal.factors:
        factors = normal.factors[-1]
        variance = factors.noise + np.square(factors.loadings_of(linear)).sum(axis=1)
    elif linear.channel_energies is not None:
        variance = linear.channel_energies / linear.weight
    else:
        rest = (linear.energy - np.square(linear.sigma).sum()) / linear.weight
        variance = held + max(rest, 0.0) / linear.dim
    deviations: Array = np.sqrt(variance)
    return deviations[: normal.channels]


def level_of(normal: Normal, center: Center) -> AnotherLevel:
    """Return what compares the level of rows with the one that they are measured from."""
    schema, deviations = normal.schema, deviations_of(normal)
    width, own = len(deviations), center.own
    mean = normal.summary.parts[-1].mean if own is None else own.rows
    moments = None if normal.learnt is None else normal.learnt.moments
    if moments is not None:
        # A channel that stood still has no level.
        deviations = np.where(moments.variance[:width] > 0, deviations, 0.0)
    if schema.scaling is not None:
        deviations = deviations * np.array(schema.scaling.scale[:width])
    return AnotherLevel(schema.names[:width], in_units(mean, schema)[:width], deviations)


def level_warning(far: Mapping[Path, tuple[float, str]], files: int, schema: Schema) -> str:
    """Return one line about files at another level than the model's, with what to do."""
    path, (_, channels) = max(far.items(), key=lambda each: each[1][0])
    of = f"{printable(str(path))} is"
    if len(far) > 1:
        of = f"{len(far)} of {files} files are"
        channels = f"in {printable(str(path))} {channels}"
    own = " or its own mean (--mean own)" if schema.center == "own" else ""
    return (
        f"{of} at another level than the model: {channels}; if that is normal there, measure from"
        f" the first rows (--mean first:400){own}"
    )
