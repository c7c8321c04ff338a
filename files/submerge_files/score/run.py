"""Scoring as a stream: files in, scored blocks out. This module does not print or write. Each file
is a node of its own: its rows are numbered from 1, lags do not reach into another file, and an own
mean is of this file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from submerge import Array
from submerge.condition import Condition
from submerge.errors import UsageError
from submerge.judge.prepare import Block, none_left
from submerge_client.sensors.gather import Lags
from submerge_files.console.reading_options import condition_of, reading_options
from submerge_files.reader.formats.remote_path import is_remote, path_of, source_of
from submerge_files.reader.paths import files_of
from submerge_files.reader.selection import matching
from submerge_files.score.mean import Centers, Mean, level_of, level_warning, parsed
from submerge_files.score.model import Normal, of_bytes
from submerge_files.score.output import (
    SUFFIX,
    CsvScoreLines,
    FileRows,
    JsonScoreLines,
    ParquetScores,
    ScoreForm,
    ScoreHeadings,
    check_target,
    open_output,
)
from submerge_files.score.rows import RowJudge, kinds_watched, watched_by
from submerge_files.score.summary import ScoreSummary
from submerge_files.score.table import (
    Carried,
    Columns,
    ScoredFile,
    TableOptions,
    columns_of,
    open_table,
)
from submerge_files.workers import Advance, Task, Workers

if TYPE_CHECKING:
    from submerge_files.score.plot import ScoreCurves

BLOCK = 64
"""Rows whose features are in memory at once, as on a device."""


@dataclass(frozen=True)
class ScoreRequest:
    """The options of `submerge score`; `--help` describes each.

    mean : None: the model's, or if center = "own" that of each machine or file; else as `Mean`
    allow_missing : whether a channel without a column is a gap in every row
    """

    mean: Mean | None = None
    when: Condition | None = None
    table: TableOptions = field(default_factory=TableOptions)
    skip: tuple[str, ...] = ()
    zero_is_missing: bool = False
    allow_missing: bool = False


class RowBlock(NamedTuple):
    """Some rows of a file, ready to be prepared.

    lead : rows without a full past
    rows : (n, channels), those after them, with their lags
    """

    lead: int
    rows: Array
    carried: Carried


def all_files(paths: Sequence[Path], *, note: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Return the files that paths mean: folders and globs too. One named twice is read twice."""
    meant = [files_of([path]) for path in paths]
    for said in dict.fromkeys(said for each in meant for said in each.notes):
        note(said)
    found = [file for each in meant for file in each.files]
    for path in found:
        source_of(path)  # refuses a missing file before hours of work on others
    return found


def opened(path: Path, normal: Normal, wanted: ScoreRequest) -> tuple[ScoredFile, Columns]:
    """Open one file and find the channels of the model in it."""
    file = open_table(path, wanted.table, normal.schema.names)
    asked = wanted.table.reading.columns or file.names
    skipped = matching(path, file.names, wanted.skip, "--skip")
    left = [i for i in matching(path, file.names, asked, "--columns") if i not in skipped]
    columns = columns_of(file, normal.schema, left, allow_missing=wanted.allow_missing)
    return file, columns


def score(
    files: Sequence[Path],
    normal: Normal,
    wanted: ScoreRequest,
    *,
    note: Callable[[str], None],
    warn: Callable[[str], None] = lambda _: None,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[FileRows]:
    """Score all rows of all files, a block at a time."""
    # Text and Parquet are streamed; logs, packed `.npy` and long tables' names are held in memory,
    # one file at a time. Warnings, unlike notes, say that scores may not mean what they seem to.
    watch = watched_by(normal)
    centers, far = Centers(normal, wanted.mean, note), dict[Path, tuple[float, str]]()
    for path in files:
        file, columns = opened(path, normal, wanted)
        for remark in (*file.notes, *columns.notes):
            note(remark)

        def prepared(
            most: int | None, file: ScoredFile = file, columns: Columns = columns
        ) -> Iterable[Block]:
            judge = RowJudge(normal, when=wanted.when)
            blocks = row_blocks(file, columns, normal, wanted, advance)
            return (judge.prepare(block.rows) for block in first_rows(blocks, most))

        center, from_elsewhere = centers.of(path, prepared)
        judge, number = RowJudge(normal, center, wanted.when, watch), 1
        level = level_of(normal, center)
        for block in row_blocks(file, columns, normal, wanted, advance):
            judged = judge.judge(block.rows, number, block.lead)
            number += len(judged.block.why)
            if from_elsewhere:
                level.add(block.rows[judged.block.which - block.lead])
            yield FileRows(path, judged, block.carried)
        off = level.far
        if off[0]:
            far[path] = off
    if far:
        warn(level_warning(far, len(files), normal.schema))


def row_blocks(
    file: ScoredFile,
    columns: Columns,
    normal: Normal,
    wanted: ScoreRequest,
    advance: Callable[[int], None],
) -> Iterator[RowBlock]:
    """Yield the rows of a file with their lags."""
    lags = Lags(columns.lags, columns.width)
    for part in file.blocks(columns.used):
        n = len(part.rows)
        most = n if normal.schema.linear else BLOCK
        for begin in range(0, n, max(most, 1)):
            rows = columns.placed(part.rows[begin : begin + most])
            if wanted.zero_is_missing:
                rows = np.where(rows == 0, np.nan, rows)
            whole = lags.embed(rows)
            advance(len(rows))
            carried = part.carried.part(begin, begin + most)
            yield RowBlock(len(rows) - len(whole), whole, carried)


def first_rows(blocks: Iterator[RowBlock], most: int | None) -> Iterator[RowBlock]:
    """Yield the first so many rows of a file; all of them for None."""
    read = 0
    for block in blocks:
        n = block.lead + len(block.rows)
        if most is not None and read + n >= most:
            yield block._replace(rows=block.rows[: max(most - read - block.lead, 0)])
            return
        yield block
        read += n


@dataclass(frozen=True)
class ScoreOrder:
    """What `submerge score` is asked for."""

    files: tuple[Path, ...]
    rank: int | None = None
    mean: str | None = None
    when: str | None = None
    as_json: bool = False
    reading: dict[str, Any] = field(default_factory=dict)

    def carried_out(
        self,
        normal: Normal,
        target: Path | None,
        *,
        needed: bool = True,
        curves: ScoreCurves | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> tuple[ScoreSummary, Iterable[str]]:
        """Score the files and write a line for each row; return the summary, and remarks."""
        condition = condition_of(self.when, normal.schema.names)
        mean = None if self.mean is None else parsed(self.mean)
        request = ScoreRequest(mean, condition, **_reading(**self.reading))
        form = self._form(normal, request, target)
        summary, remarks = ScoreSummary(normal), dict.fromkeys(f"note: {n}" for n in normal.notes)

        def note(text: str) -> None:
            remarks.setdefault(f"note: {text}")

        def warn(text: str) -> None:
            remarks.setdefault(f"warning: {text}")

        with open_output(target, form) as write:
            found = score(self.files, normal, request, note=note, warn=warn, advance=advance)
            for part in found:
                write(part)
                summary.add(part)
                if curves is not None:
                    curves.add(part)
            if needed:
                # Raised here, so that older scores are not overwritten.
                check_scored(summary, self.when, normal)
        return summary, remarks

    def _form(self, normal: Normal, request: ScoreRequest, target: Path | None) -> ScoreForm:
        """Look at all files before the work, and return how their scores are written."""
        timed = [opened(path, normal, request)[0].timed for path in self.files]
        headings = ScoreHeadings(
            normal.schema.names,
            kernel=len(normal.summary.parts) > 1,
            factors=bool(normal.factors),
            alarms=kinds_watched(normal, watched_by(normal)),
            timed=any(timed),
            kept=request.table.keep,
        )
        if target is not None and target.suffix == SUFFIX:
            if self.as_json:
                raise UsageError(
                    f"--json writes lines of JSON, got {target}: leave one of the two out"
                )
            return ParquetScores(headings)
        if target is not None and not self.as_json and target.suffix in (".json", ".jsonl"):
            raise UsageError(f"{target} would hold CSV: give --json, or name it .csv")
        return JsonScoreLines(normal.schema, headings) if self.as_json else CsvScoreLines(headings)


def check_scored(summary: ScoreSummary, when: str | None, normal: Normal) -> None:
    """Refuse files of which no row has a score."""
    if not summary.scored:
        condition = condition_of(when, normal.schema.names)
        none = none_left(summary.rows, summary.reasons, condition)
        raise UsageError(f"expected rows that can be scored, got {none}")


def _reading(
    quantity: str = "temperature",
    keep: tuple[str, ...] = (),
    columns: str | None = None,
    time: str | None = None,
    time_format: str | None = None,
    long: str | None = None,
    na: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the options of reading as the request takes them."""
    reading = reading_options(columns, time, time_format, long, na=na)
    table = TableOptions(quantity, reading, tuple(dict.fromkeys(keep)))
    return {"table": table} | others


def score_apart(
    workers: Workers,
    order: ScoreOrder,
    model: bytes,
    whence: Path,
    folder: str,
    advance: Advance = lambda _: None,
) -> tuple[ScoreSummary, Iterable[str]]:
    """Let workers score files by a model file, each into a file in a folder that all can write to.

    There are as many scores as rows: they do not travel. Their bytes are those of one machine.
    """
    normal = of_bytes(model, whence, order.rank)
    summary, remarks = ScoreSummary(normal), dict[str, None]()
    tasks = [Task(each) for each in zip(order.files, targets_of(order, folder), strict=True)]
    for counted, said in workers.map(partial(_scored_file, order, model, whence), tasks):
        summary.take(counted)
        remarks |= dict.fromkeys(said)
        advance(counted.rows)
    check_scored(summary, order.when, normal)
    return summary, remarks


def _scored_file(
    order: ScoreOrder, model: bytes, whence: Path, file: Path, target: str
) -> tuple[ScoreSummary, list[str]]:
    """Score one file, and write the scores; return the summary, and remarks."""
    place = path_of(target)
    if not is_remote(place):
        check_target(place, inputs=[file])
    normal = of_bytes(model, whence, order.rank)
    summary, remarks = replace(order, files=(file,)).carried_out(normal, place, needed=False)
    return summary, [*remarks]


def targets_of(order: ScoreOrder, folder: str) -> Sequence[str]:
    """Return where the scores of each file go."""
    if not is_remote(path_of(folder)) and not Path(folder).is_dir():
        raise UsageError(
            f"expected a folder for the scores (-o), got {folder!r}: with --dask each FILE has a"
            " file of scores there; make it where all workers can write"
        )
    ending = "scores.jsonl.gz" if order.as_json else "scores.csv.gz"
    found: dict[str, Path] = {}
    for path in order.files:
        name = f"{path.name.split('.')[0]}.{ending}"
        if name in found:
            raise UsageError(
                f"expected files of different names, got {found[name]} and {path}, whose scores"
                f" would both be {name}: score them one after another"
            )
        found[name] = path
    return [f"{folder.rstrip('/')}/{name}" for name in found]
