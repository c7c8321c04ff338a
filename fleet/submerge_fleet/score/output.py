"""Where scores go: standard output, or a file that is whole or not there at all."""

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
"""Of gzip: what its own command takes."""


def check_target(path: Path | None, *, inputs: Iterable[Path]) -> None:
    """Refuse a place where scores cannot go, or where they would destroy something.

    Only a new file or older scores may be written: a slip of the finger must not cost anyone
    the data that they came to look at. None is standard output.
    """
    if path is None:
        return
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(
            f"expected a folder that can be written to, got {path.parent} for {path.name}:"
            " make it, or name another"
        )
    if not path.exists():
        return
    if not path.is_file():
        raise UsageError(f"expected a file's name for the scores, got {path}: for a pipe, use -o -")
    if any(given.exists() and path.samefile(given) for given in inputs):
        raise UsageError(f"{path} is read from, and would be overwritten: name another file")
    if not _are_scores(path):
        raise UsageError(f"{path} exists and has no scores in it: name another file, or remove it")


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """Open what takes the text; what stood at `path` stays until all is written.

    A name that ends in .gz is packed; the same scores give the same bytes.
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
            stack.callback(text.detach)  # which flushes it, and leaves the file open
            yield text
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # nobody's input: the command says so
        raise UsageError(f"cannot write the scores to {path}: {error.strerror}") from error


def _are_scores(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == GZIP else path.open("rb") as file:
            head = file.read(len(JSON_HEAD)).decode(errors="replace")
    except (OSError, EOFError, zlib.error):
        return False
    return not head or head.startswith((CSV_HEAD, JSON_HEAD))
