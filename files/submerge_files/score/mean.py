"""The mean that rows of a file are measured from: the model's, the file's own, or a client's.

With `center = "own"` a file counts as a node: its mean is that of all its rows which can be scored,
read in a first pass, or of its first rows. The former hides one kind of fault: a deviation in most
of the file becomes its normal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from submerge import Array, PeerError, Schema, UsageError
from submerge.client.alarms.detector import AlarmDetector
from submerge.client.monitor_state import MonitorState
from submerge.client.node import MONITOR
from submerge.drill.response import NodeScorer
from submerge.judge.prepare import Block, in_units
from submerge.stats.node_mean import READY, OwnMean
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


Mean = str | Path | FirstRows  # `MODEL`, `OWN`, the first rows, or the checkpoint of a client


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


def about_rows(normal: Normal, blocks: Iterable[Block], *, whole: bool = True) -> NodeScorer:
    """Return what measures rows from the mean of these: of a whole file, or of its first rows."""
    # Filled values do not count: they come from the fleet's model. In feature space only rows
    # without a gap count.
    *lifting, linear = normal.summary.parts
    features = lifting[0].mean if lifting else None
    # Sums of deviations: sums of readings would lose digits beside a huge mean.
    off, known = np.zeros(linear.dim), np.zeros(linear.dim)
    lifted = np.zeros(0 if features is None else len(features))
    rows = complete = 0
    for block in blocks:
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
    return replace(normal.scorer, own=own, excess=1.0 if whole else None)


def state_in(path: Path, normal: Normal) -> MonitorState:
    """Return the state of a client, from the file of its `[client] state`."""
    schema = normal.schema
    # Imported here: only this option needs protobuf.
    from submerge_proto.kept import records

    try:
        data = state_of(path).get(MONITOR)
        kept: MonitorState | None = None if data is None else records.unpack(MONITOR, data)
    except (OSError, PeerError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"expected a client's checkpoint in {path}, got: {reason}") from None
    if kept is None:
        raise UsageError(
            f"expected a checkpoint of a client that has read rows in {path}, got none"
        )
    if kept.fingerprint != schema.fingerprint:
        raise UsageError(
            f"expected a checkpoint with the model's schema, {schema.fingerprint[:8]}, in {path},"
            f" got one with {kept.fingerprint[:8]}"
        )
    return kept


def of_machine(normal: Normal, machine: str | None) -> NodeScorer:
    """Return what scores rows of a machine that was learnt; None is the only one."""
    if normal.schema.center == "own" and machine not in normal.states:
        raise refusal(
            "machine",
            expected="one that was learnt, as each has its own mean",
            got="none" if machine is None else repr(machine),
            hint=f"the model knows {some(list(normal.states)) or 'none'}",
        )
    state = normal.state(*([] if machine is None else [machine]))
    return normal.scorer if state is None else of_state(normal, state)


def of_state(
    normal: Normal,
    state: MonitorState,
    whence: str = "",
    note: Callable[[str], None] = lambda _: None,
) -> NodeScorer:
    """Return what scores rows of a machine whose state is known."""
    kept = state.of_schema(normal.schema, normal.channels)
    own = kept.own
    if own is not None and not own.ready:
        few = f"the mean in {whence} is of {own.count} rows, fewer than {READY}"
        note(f"{few}: the client scores with the fleet's")
        own = None
    steps = None if kept.resolution is None else kept.resolution.restarted.steps[:, None]
    scorer = normal.scorer
    if own is not None and kept.scatter is not None:
        scorer = replace(scorer, scoring=normal.scoring(kept.scatter))
    return replace(scorer, own=own, residual_scale=kept.residual_scale, steps=steps)


class Means:
    """What scores the rows of files, each measured from a mean."""

    def __init__(self, normal: Normal, mean: Mean | None, note: Callable[[str], None]) -> None:
        center = normal.schema.center
        if mean == OWN and center != "own":
            raise UsageError(
                f'expected a model of center = "own" for --mean {OWN}, got "{center}": its scatter'
                " is about one mean: leave --mean out, or take first:400"
            )
        self._normal, self._mean, self._note = normal, mean, note
        self._shared: NodeScorer | None = None
        self._kept: MonitorState | None = None
        # Where each machine has a mean, and none was asked for, it is that of the machine.
        self._each = mean is None and center == "own"
        if isinstance(mean, Path):
            self._kept = state_in(mean, normal)
            self._shared = of_state(normal, self._kept, str(mean), note)
        elif mean in (None, MODEL) and not self._each:
            self._shared = normal.scorer

    def of(
        self, path: Path, read: Callable[[int | None], Iterable[Block]]
    ) -> tuple[NodeScorer, bool]:
        """Return what scores a file, and whether its mean is from elsewhere than from the file."""
        state = self._state(path)
        if self._each and state is not None:
            return of_state(self._normal, state, f"the model for {path.name}", self._note), True
        scorer = self._shared or self._about(path, read)
        if scorer.residual_scale is None and state is not None:
            typical = of_state(self._normal, state).residual_scale
            scorer = replace(scorer, residual_scale=typical)
        return scorer, self._shared is not None

    def watch(self, path: Path) -> AlarmDetector | None:
        """Return what compares the scores of a file with the limits of alarms."""
        return self._normal.watch_of(self._state(path) if self._each else self._kept)

    def _state(self, path: Path) -> MonitorState | None:
        return self._normal.state(path.name.split(".")[0] or path.name, str(path), ONLY_MACHINE)

    def _about(self, path: Path, read: Callable[[int | None], Iterable[Block]]) -> NodeScorer:
        if self._each:
            self._note(
                "rows are measured from their own file's mean, which hides a fault in most of a"
                " file: --mean first:400 takes that of its first rows, --mean model the model's,"
                " --mean STATE a client's"
            )
        first = self._mean.n if isinstance(self._mean, FirstRows) else None
        scorer = about_rows(self._normal, read(first), whole=first is None)
        if scorer.own is not None and not scorer.own.ready:
            few = counted(scorer.own.count, "row")
            self._note(f"the mean of {path.name} is of only {few}, fewer than {READY}")
        return scorer


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


def level_of(normal: Normal, scorer: NodeScorer) -> AnotherLevel:
    """Return what compares the level of rows with the one that they are measured from."""
    schema, deviations = normal.schema, deviations_of(normal)
    width, own = len(deviations), scorer.own
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
