"""The mean that rows of a file are measured from: the model's, the file's own, or a client's.

A group with `center = "own"` learns how readings vary about each node's own mean, and a node
scores with its own. A file counts as a node: its mean is that of all its rows which can be scored,
read in a first pass, or of its first rows. A client knows less than the former at its first rows.
And it hides one kind of fault: a deviation in most of the file becomes its normal. The state of a
machine, in a client's checkpoint or in a fitted model, holds its mean and the typical residual of
each channel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import PeerError, Schema, UsageError
from submerge.client.monitor_state import MonitorState
from submerge.client.node import MONITOR
from submerge.judge.prepare import Block
from submerge.stats.node_mean import READY, OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge_client.checkpoint import state_of
from submerge_files.score.columns import lags_of
from submerge_files.score.model import Normal

MODEL, OWN, FIRST = "model", "own", "first:"


@dataclass(frozen=True)
class FirstRows:
    """The mean of the first n rows of each file."""

    n: int


Mean = str | Path | FirstRows
"""`MODEL`, `OWN`, the first rows, or the checkpoint of a client."""


def parsed(text: str) -> Mean:
    """Return the value of `--mean`.

    Raises
    ------
    UsageError
        If it is none.
    """
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
    excess : as in `score`
    notes : sentences for the reader of the scores
    """

    own: OwnMean | None = None
    typical: ResidualScale | None = None
    excess: float | None = None
    notes: tuple[str, ...] = ()


def of_rows(normal: Normal, parts: Iterable[Block], *, whole: bool = True) -> Center:
    """Return the mean of a file, or of its first rows.

    parts : Its rows. Filled values do not count: they come from the fleet's model. In feature space
        only rows without a gap count.
    whole : Whether these are all rows that are scored.
    """
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


def of_checkpoint(path: Path, schema: Schema) -> Center:
    """Return the mean of a client, from the file of its `[client] state`.

    Raises
    ------
    UsageError
        If the file is not a checkpoint, or one of a client with another schema.
    """
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
    return of_state(kept, schema, str(path))


def of_state(state: MonitorState, schema: Schema, whence: str) -> Center:
    """Return the mean of a machine whose state is known."""
    kept = state.of_schema(schema, schema.width // lags_of(schema.names))
    own = kept.own
    if own is None or own.ready:
        return Center(own, kept.residual_scale)
    few = f"the mean in {whence} is of {own.count} rows, fewer than {READY}"
    return Center(None, kept.residual_scale, notes=(f"{few}: the client scores with the fleet's",))
