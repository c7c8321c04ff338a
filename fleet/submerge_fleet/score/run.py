"""Scoring as a stream: files in, scored blocks out. This module does not print or write.

Each file is a node of its own: its rows are numbered from 1, lags do not reach into another file,
and an own mean is of this file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array, UsageError
from submerge.condition import Condition
from submerge.stats.node_mean import READY
from submerge_client.datasets import Flow
from submerge_client.datasets.source import Source
from submerge_client.datasets.table import counted
from submerge_client.sensors.lags import Lags
from submerge_fleet.score.columns import Columns, columns_of
from submerge_fleet.score.mean import Center, Mean, of_checkpoint, of_rows
from submerge_fleet.score.model import Normal
from submerge_fleet.score.rows import FileRows, FileScorer

BLOCK = 64
"""Rows whose features are in memory at once, as on a device."""


@dataclass(frozen=True)
class ScoreRequest:
    """The options of `submerge score`; `--help` describes each.

    mean : None: that of each file if center = "own", else the fleet's; a path: a client's
        checkpoint
    """

    mean: Mean | None = None
    when: Condition | None = None
    quantity: str = "temperature"
    skip: tuple[str, ...] = ()
    zero_is_missing: bool = False


def score(
    files: Sequence[Path],
    normal: Normal,
    wanted: ScoreRequest,
    *,
    note: Callable[[str], None],
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[Path, FileRows]]:
    """Score all rows of all files, a block at a time.

    Parameters
    ----------
    files : sequence of Path
        Whitespace matrices, CSV, `.npy` or Intel Lab logs, plain or gzip. Text is streamed;
        other files are held in memory, one at a time.
    note : callable
        Takes sentences for the reader of the scores.
    advance : callable
        Takes numbers of rows that were read.

    Raises
    ------
    UsageError
        If a file is not a table, or its columns are not the model's; or if the mean of a file is
        requested, but the model has learnt all nodes about one mean.
    """
    if wanted.mean == "file" and normal.schema.center != "own":
        raise UsageError(
            f'expected a model of center = "own" for --mean file, got "{normal.schema.center}":'
            " its scatter is about one mean: leave --mean out"
        )
    for path in files:
        Source.of(path)  # refuses a missing file before hours of work on others
    center = Center()
    if isinstance(wanted.mean, Path):
        center = of_checkpoint(wanted.mean, normal.schema)
    for remark in center.notes:
        note(remark)
    own = normal.schema.center == "own" and wanted.mean in (None, "file")
    for path in files:
        flow = Flow.of(path, quantity=wanted.quantity)
        columns = columns_of(flow, normal.schema, wanted.skip)
        for remark in (*flow.notes, *columns.notes):
            note(remark)
        scorer = FileScorer(normal, wanted.when, center)
        if own:
            blocks = row_blocks(flow, columns, normal, wanted, advance)
            center = of_rows(normal, (scorer.prepare(rows) for _, rows in blocks))
            if center.own is not None and not center.own.ready:
                few = counted(center.own.count, "row")
                note(f"the mean of {path.name} is of only {few}, fewer than {READY}")
            scorer = FileScorer(normal, wanted.when, center)
            center = Center()
        number = 1
        for lead, rows in row_blocks(flow, columns, normal, wanted, advance):
            scored = scorer.score(rows, number, lead)
            number += len(scored.why)
            yield path, scored


def row_blocks(
    flow: Flow,
    columns: Columns,
    normal: Normal,
    wanted: ScoreRequest,
    advance: Callable[[int], None],
) -> Iterator[tuple[int, Array]]:
    """Yield the number of rows without a full past, then rows (n, channels) with their lags."""
    lags = Lags(columns.lags, columns.width)
    for block in flow.blocks(columns.used):
        most = len(block) if normal.schema.linear else BLOCK
        for begin in range(0, len(block), max(most, 1)):
            rows = columns.placed(block[begin : begin + most])
            if wanted.zero_is_missing:
                rows = np.where(rows == 0, np.nan, rows)
            whole = lags.embed(rows)
            advance(len(rows))
            yield len(rows) - len(whole), whole
