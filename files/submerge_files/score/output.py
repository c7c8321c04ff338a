"""The output of scores: standard output, or a file that is written whole or not at all.

A name that ends in .gz is compressed text; one that ends in .parquet is Parquet.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from submerge import UsageError
from submerge_client.atomic_file import atomic_file
from submerge_files.reader.formats.remote_path import is_remote, written
from submerge_files.score.lines import CSV_HEAD, JSON_HEAD, CsvScoreLines, JsonScoreLines
from submerge_files.score.parquet import SUFFIX, ParquetScores, begins_as_scores
from submerge_files.score.rows import FileRows

ScoreForm = CsvScoreLines | JsonScoreLines | ParquetScores
Write = Callable[[Path, FileRows], None]

OTHERS = frozenset((".xlsx", ".xls", ".ods", ".feather", ".arrow", ".npy", ".pkl", ".h5", ".hdf5"))
"""Endings of formats that scores are not written in."""

GZIP = ".gz"
LEVEL = 6
"""The gzip command's default."""


def check_target(path: Path | None, *, inputs: Iterable[Path]) -> None:
    """Refuse a path that cannot be written, or that holds anything but older scores.

    A mistyped name must not destroy data. None is standard output.
    """
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
    """Open the output, and yield what writes rows; a file at `path` stays until all is written.

    The same scores give the same bytes.
    """
    with ExitStack() as stack:
        if isinstance(form, ParquetScores):
            # Only a name ends in .parquet.
            file = stack.enter_context(_file(path or Path()))
            yield stack.enter_context(form.writing(file)).add
            return
        text = stack.enter_context(_text(path))
        text.write(form.head)

        def write(path: Path, part: FileRows) -> None:
            text.write(form.lines(path, part))

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
    try:
        with atomic_file(path) as file:
            yield file
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # not a mistake of the input: the command line reports it
        raise UsageError(f"cannot write the scores to {path}: {error.strerror}") from error


def _are_scores(path: Path) -> bool:
    if path.suffix == SUFFIX:
        return begins_as_scores(path)
    try:
        with gzip.open(path) if path.suffix == GZIP else path.open("rb") as file:
            head = file.read(len(JSON_HEAD)).decode(errors="replace")
    except (OSError, EOFError, zlib.error):
        return False
    return not head or head.startswith((CSV_HEAD, JSON_HEAD))
