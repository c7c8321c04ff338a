"""The output of scores: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from submerge import UsageError
from submerge_client.atomic_file import atomic_file
from submerge_fleet.score.lines import CSV_HEAD, JSON_HEAD

GZIP = ".gz"
LEVEL = 6
"""The gzip command's default."""


def check_target(path: Path | None, *, inputs: Iterable[Path]) -> None:
    """Refuse a path that cannot be written, or that holds anything but older scores.

    A mistyped name must not destroy data. None is standard output.
    """
    if path is None:
        return
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
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Open the output; a file at `path` stays until all is written.

    A name that ends in .gz is compressed; the same scores give the same bytes.
    """
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with atomic_file(path) as file, ExitStack() as stack:
            target: BinaryIO | gzip.GzipFile = file
            if path.suffix == GZIP:
                target = stack.enter_context(gzip.GzipFile("", "wb", LEVEL, file, mtime=0))
            text = io.TextIOWrapper(target, encoding="utf-8", newline="")
            stack.callback(text.detach)  # flushes it, and leaves the file open
            yield text
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # not a mistake of the input: the command line reports it
        raise UsageError(f"cannot write the scores to {path}: {error.strerror}") from error


def _are_scores(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == GZIP else path.open("rb") as file:
            head = file.read(len(JSON_HEAD)).decode(errors="replace")
    except (OSError, EOFError, zlib.error):
        return False
    return not head or head.startswith((CSV_HEAD, JSON_HEAD))
