"""Scores as Parquet: typed columns, with nulls where CSV has empty cells. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from submerge.judge.prepare import REASONS
from submerge_files.console.printable import printable
from submerge_files.reader.formats.arrow_file import import_pyarrow
from submerge_files.score.lines import FILLED, TIME, ScoreHeadings
from submerge_files.score.rows import FileRows

SUFFIX = ".parquet"

GROUP_ROWS = 1 << 16
"""Rows that are written together."""


def begins_as_scores(path: Path) -> bool:
    """Return whether a file is empty, or a Parquet file whose columns are those of scores."""
    if not path.stat().st_size:
        return True
    pa = import_pyarrow()
    try:
        names = pa.parquet.read_schema(path).names
    except (pa.ArrowException, OSError):
        return False
    return {"file", "row", "spe", "unscored"} <= {*names}


class ParquetScores:
    """A table of scores, written a group of rows at a time.

    Raises
    ------
    UsageError
        If pyarrow is not installed.
    """

    def __init__(self, headings: ScoreHeadings) -> None:
        self._pa, self._headings = import_pyarrow(), headings
        self._schema = self._pa.schema([*self._fields()])
        self._waiting: list[Any] = []

    @contextmanager
    def writing(self, file: BinaryIO) -> Iterator[ParquetScores]:
        """Write into a file what is added."""
        with self._pa.parquet.ParquetWriter(file, self._schema) as self._writer:
            yield self
            self._write()

    def add(self, path: Path, part: FileRows) -> None:
        """Add rows of a file."""
        self._waiting.append(self._batch(path, part))
        if sum(batch.num_rows for batch in self._waiting) >= GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(self._pa.Table.from_batches(self._waiting, self._schema))
            self._waiting = []

    def _fields(self) -> Iterator[tuple[str, Any]]:
        pa, headings = self._pa, self._headings
        yield from (("file", pa.string()), ("row", pa.int64()))
        for name in headings.carried:
            timed = name == TIME and headings.timed
            yield name, pa.timestamp("us", tz="UTC") if timed else pa.string()
        for name in headings.scores:
            kind = pa.string() if name.startswith("top") else pa.float64()
            yield name, pa.int32() if name == FILLED else kind
        yield "unscored", pa.string()

    def _batch(self, path: Path, part: FileRows) -> Any:
        pa, headings, n = self._pa, self._headings, len(part.why)
        numbers = np.arange(part.first, part.first + n)
        columns = [pa.array([printable(str(path))] * n), pa.array(numbers)]
        if headings.timed:
            columns.append(self._times(part))
        columns += [pa.array([text or None for text in texts]) for texts in part.carried.kept]
        # Where each row is among those with a score; null if it has none.
        place = np.where(part.why == 0, np.cumsum(part.why == 0) - 1, -1)
        places = pa.array(place, mask=place < 0)
        for name, values in headings.columns(part).items():
            columns.append(self._scores(name, values).take(places))
        columns.append(pa.array([REASONS[why] if why else None for why in part.why.tolist()]))
        arrays = [
            column.cast(field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _times(self, part: FileRows) -> Any:
        seconds = part.carried.seconds if part.carried.times else np.full(len(part.why), np.nan)
        missing = np.isnan(seconds)
        micros = np.round(np.where(missing, 0.0, seconds) * 1e6).astype(np.int64)
        return self._pa.array(micros, mask=missing).cast(self._pa.timestamp("us", tz="UTC"))

    def _scores(self, name: str, values: Any) -> Any:
        pa = self._pa
        if name.startswith("top"):
            return pa.array([value or None for value in values.tolist()], pa.string())
        if name == FILLED:
            return pa.array(values)
        none = values == 0 if name.startswith(("over", "share")) else np.isnan(values)
        return pa.array(values, mask=none)
