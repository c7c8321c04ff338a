"""The output of scores, as CSV, lines of JSON or Parquet: a file is written whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from submerge import Schema, UsageError
from submerge.history.detection import TOP, JudgedRows
from submerge.history.recording import Recorded
from submerge.judge.prepare import REASONS
from submerge.stats.statistic import By
from submerge_client.files import atomic_file, writing_to
from submerge_client.score_outputs.lines import limits_passed, scored_fields
from submerge_files.console.units import csv_cells, csv_text, printable
from submerge_files.reader.formats.arrow_file import import_pyarrow
from submerge_files.reader.formats.remote_path import is_remote, written
from submerge_files.score.node_file import NodeFile

CSV_HEAD, JSON_HEAD = "file,row,", '{"file": '
"""How files of scores begin: no other file is overwritten."""

TIME = "time"  # what the column of times is called in the output, whatever it is called in the file

Column = npt.NDArray[Any]


class FileRows(NamedTuple):
    """Consecutive rows of a file that were judged, and what it says of them beside the readings."""

    file: NodeFile
    recorded: Recorded
    judged: JudgedRows

    @property
    def path(self) -> Path:
        """Of the file, as it was named."""
        return self.file.path

    @property
    def why(self) -> npt.NDArray[np.int8]:
        """(n,), places in `REASONS`."""
        return self.judged.block.why


@dataclass(frozen=True)
class ScoreHeadings:
    """The columns of scores; in a kernel group more, with factors `distance`."""

    names: tuple[str, ...]
    kernel: bool
    factors: bool
    alarms: tuple[By, ...] = ()  # statistics that have a limit of alarms
    timed: bool = False
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        taken = {"file", "row", *self.scores, "unscored", *([TIME] if self.timed else [])}
        for name in self.kept:
            if name in taken:
                raise UsageError(
                    f"--keep {name}: the scores have a column of that name: rename it in the file"
                )

    @property
    def carried(self) -> tuple[str, ...]:
        """Names of what rows bring along."""
        return (*([TIME] if self.timed else []), *self.kept)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of what rows with a score have."""
        kernel = ("linear", "anomaly_score") if self.kernel else ()
        over = ("over", "over_spe", "over_t2", *(("over_linear",) if self.kernel else ()))
        top = (f"{each}{i}" for i in range(1, TOP + 1) for each in ("top", "share"))
        distance = ("distance",) if self.factors else ()
        alarms = map(alarm_column, self.alarms)
        return (*distance, "spe", "t2", *kernel, *over, *top, "twins", FILLED, *alarms)

    def columns(self, part: FileRows) -> Mapping[str, Column]:
        """Return what the rows of a block that are scored have, (m,) each."""
        # Numbers, NaN where a score is not known and 0 where no limit is passed; and channels, ""
        # for none.
        judged, scores = part.judged, part.judged.scores
        m, (channels, shares), called = len(judged.block), judged.top, np.array(self.names, object)
        found: dict[str, Column | None] = {
            "distance": scores.distance,
            "spe": scores.spe,
            "t2": scores.t2,
            "linear": scores.linear,
            "anomaly_score": scores.anomaly,
            **limits_passed(scores),
            "twins": judged.twins.astype(int),
            FILLED: judged.filled,
            **{alarm_column(kind): judged.over.get(kind) for kind in self.alarms},
        }
        for i in range(TOP):
            top, share = np.full(m, "", dtype=object), np.zeros(m)
            if i < channels.shape[1]:
                share = shares[:, i]
                # A row without a residual has no channel to name.
                top = np.where(share > 0, called[channels[:, i]], "")
            found[f"top{i + 1}"], found[f"share{i + 1}"] = top, share
        known = ((name, found[name]) for name in self.scores)
        return {name: np.full(m, np.nan) if each is None else each for name, each in known}


FILLED, ALARM = "filled", "alarm_"


def alarm_column(kind: By) -> str:
    """Return what the statistic that alarms are raised by, over its limit, is called."""
    return f"{ALARM}{kind}"


class CsvScoreLines:
    def __init__(self, headings: ScoreHeadings) -> None:
        self._headings = headings

    @property
    def head(self) -> str:
        """The heading line."""
        return csv_text(
            [["file", "row", *self._headings.carried, *self._headings.scores, "unscored"]]
        )

    def lines(self, part: FileRows) -> str:
        n, first, which = len(part.why), part.judged.first, part.judged.block.which
        whys, columns = csv_cells(REASONS), list[list[str]]()
        for each in self._headings.columns(part).items():
            cells = np.full(n, "", dtype=object)
            cells[which] = _cells(*each)
            columns.append(cells.tolist())
        table = (
            csv_cells([printable(str(part.path))]) * n,
            map(str, range(first, first + n)),
            *map(csv_cells, carried_texts(self._headings, part)),
            *columns,
            [whys[why] for why in part.why.tolist()],
        )
        return "".join(f"{','.join(cells)}\n" for cells in zip(*table, strict=True))


class JsonScoreLines:
    """One JSON object for each row."""

    head = ""

    def __init__(self, schema: Schema, headings: ScoreHeadings) -> None:
        self._schema, self._headings = schema, headings

    def lines(self, part: FileRows) -> str:
        schema, names = self._schema, self._headings.carried
        judged, file = part.judged, printable(str(part.path))
        scored = scored_fields(judged.block, judged.scores, schema, schema.names, top=TOP)
        near = {
            alarm_column(kind): [float(f"{value:.4g}") for value in values.tolist()]
            for kind, values in judged.over.items()
        }
        alarms = (dict(zip(near, each, strict=True)) for each in zip(*near.values(), strict=True))
        carried = zip(*carried_texts(self._headings, part), strict=True)
        lines = []
        for row, why in enumerate(part.why.tolist(), part.judged.first):
            brought = zip(names, next(carried, ()), strict=True)
            fields = {"file": file, "row": row}
            fields |= {name: text for name, text in brought if text}
            fields |= {"unscored": REASONS[why]} if why else next(scored) | next(alarms, {})
            lines.append(json.dumps(fields))
        return "".join(f"{line}\n" for line in lines)


def carried_texts(headings: ScoreHeadings, part: FileRows) -> list[Sequence[str]]:
    """Return what the rows of a block bring along, a list for each of `headings.carried`."""
    texts = part.file.texts(part.recorded)
    if headings.timed and not part.file.timed:
        return [[""] * len(part.why), *texts]
    return texts


def _cells(name: str, values: Column) -> list[str]:
    """Return a column as text, empty for what is not known and for a share of zero."""
    if values.dtype.kind in "OU":
        return csv_cells(values.tolist())
    if values.dtype.kind == "i":
        return [*map(str, values.tolist())]
    if name.startswith(("over", "share")):
        return [f"{value:.4g}" if value else "" for value in values.tolist()]
    written = ("{:.4g}" if name.startswith(ALARM) else "{:.9g}").format
    texts = [*map(written, values.tolist())]
    return ["" if text == "nan" else text for text in texts] if np.isnan(values).any() else texts


SUFFIX = ".parquet"

GROUP_ROWS = 1 << 16  # rows that are written together


class ParquetScores:
    """A table of scores, written a group of rows at a time."""

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

    def add(self, part: FileRows) -> None:
        """Add rows of a file."""
        self._waiting.append(self._batch(part))
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

    def _batch(self, part: FileRows) -> Any:
        pa, headings, n = self._pa, self._headings, len(part.why)
        carried: list[Any] = [
            [text or None for text in texts] for texts in carried_texts(headings, part)
        ]
        if headings.timed:
            seconds = part.file.seconds(part.recorded)
            micros = np.round(np.nan_to_num(seconds) * 1e6).astype("M8[us]")
            carried[0] = np.where(np.isnan(seconds), np.datetime64("NaT", "us"), micros)
        numbers = np.arange(part.judged.first, part.judged.first + n)
        columns = [[printable(str(part.path))] * n, numbers, *carried]
        for name, values in headings.columns(part).items():
            text = values.dtype == object
            found = np.full(n, np.nan, dtype=object if text else np.float64)
            found[part.judged.block.which] = values
            if name.startswith(("top", "over", "share")):
                # Empty, as in CSV: no channel, and no limit that is passed.
                found[found == ("" if text else 0.0)] = np.nan
            columns.append(found)
        columns.append([REASONS[why] if why else None for why in part.why.tolist()])
        arrays = [
            pa.array(values, field.type, from_pandas=True)
            for values, field in zip(columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


ScoreForm = CsvScoreLines | JsonScoreLines | ParquetScores
Write = Callable[[FileRows], None]

OTHERS = frozenset((".xlsx", ".xls", ".ods", ".feather", ".arrow", ".npy", ".pkl", ".h5", ".hdf5"))
"""Endings of formats that scores are not written in."""

GZIP = ".gz"
LEVEL = 6  # the gzip command's default


def check_target(path: Path | None, *, inputs: Iterable[Path]) -> None:
    """Refuse a path that cannot be written, or that holds anything but older scores."""
    # A mistyped name must not destroy data. None is standard output.
    if path is None:
        return
    if path.suffix.lower() in OTHERS:
        raise UsageError(
            f"scores are written as CSV, lines of JSON (--json) or Parquet, got {path.name}:"
            " name it .csv, .jsonl or .parquet"
        )
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(
            f"expected a folder that can be written to, got {path.parent} for {path.name}:"
            " create it, or name another"
        )
    if not path.exists():
        return
    if not path.is_file():
        raise UsageError(f"expected a file's name for the scores, got {path}: for a pipe, use -o -")
    if any(given.exists() and path.samefile(given) for given in inputs):
        raise UsageError(f"{path} is an input, and would be overwritten: name another file")
    if not _are_scores(path):
        raise UsageError(f"{path} exists and has no scores in it: name another file, or remove it")


@contextmanager
def open_output(path: Path | None, form: ScoreForm) -> Iterator[Write]:
    """Open the output, and yield what writes rows; a file at `path` stays until all is written."""
    # The same scores give the same bytes.
    with ExitStack() as stack:
        if isinstance(form, ParquetScores):
            # Only a name ends in .parquet.
            file = stack.enter_context(_file(path or Path()))
            yield stack.enter_context(form.writing(file)).add
            return
        text = stack.enter_context(_text(path))
        text.write(form.head)

        def write(part: FileRows) -> None:
            text.write(form.lines(part))

        yield write


@contextmanager
def _text(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with _file(path) as file, ExitStack() as stack:
        target: BinaryIO | gzip.GzipFile = file
        if path.suffix == GZIP:
            target = stack.enter_context(gzip.GzipFile("", "wb", LEVEL, file, mtime=0))
        text = io.TextIOWrapper(target, encoding="utf-8", newline="")
        stack.callback(text.detach)  # flushes it, and leaves the file open
        yield text


@contextmanager
def _file(path: Path) -> Iterator[BinaryIO]:
    if is_remote(path):
        with written(path) as file:
            yield file
        return
    with writing_to(f"the scores to {path}"), atomic_file(path) as file:
        yield file


def _are_scores(path: Path) -> bool:
    if not path.stat().st_size:
        return True
    if path.suffix == SUFFIX:
        pa = import_pyarrow()
        try:
            names = pa.parquet.read_schema(path).names
        except (pa.ArrowException, OSError):
            return False
        return {"file", "row", "spe", "unscored"} <= {*names}
    try:
        with gzip.open(path) if path.suffix == GZIP else path.open("rb") as file:
            head = file.read(len(JSON_HEAD)).decode(errors="replace")
    except (OSError, EOFError, zlib.error):
        return False
    return not head or head.startswith((CSV_HEAD, JSON_HEAD))
