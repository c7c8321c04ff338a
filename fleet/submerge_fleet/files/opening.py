"""Opening: which files are meant, and the reader of each, chosen by its first bytes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from submerge import UsageError
from submerge_client.datasets import intel_lab, npy
from submerge_client.datasets.reading import format_of
from submerge_client.datasets.source import Source, refusal
from submerge_fleet.files import arrow_file
from submerge_fleet.files.matrix_file import MatrixFile
from submerge_fleet.files.tables import TableFile
from submerge_fleet.files.text_file import TextFile

SUFFIXES = frozenset(
    ".csv .tsv .txt .dat .npy .parquet .pq .arrow .arrows .feather .ipc .log".split()  # noqa: SIM905
)
"""What a folder's tables are called, before `.gz`. A file that is named may be called anything."""


def files_of(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files that paths mean: folders and globs in the order of names, each file once.

    Raises
    ------
    UsageError
        If a glob matches nothing, or a folder has no tables.
    """
    if not paths:
        raise UsageError("expected at least one file to read, got none; name one")
    found = {os.path.realpath(path): path for named in paths for path in _meant(named)}
    return tuple(found.values())


def open_file(path: Path) -> TableFile:
    """Open one file, or refuse one that is no table."""
    source = Source.of(path)
    if arrow_file.recognizes(source):
        return arrow_file.opened(source)
    with source.damage_first():
        match format_of(source):
            case "npy" if source.packed:
                return MatrixFile.of_rows(path, npy.read(source).rows)
            case "npy":
                return MatrixFile.mapped(source)
            case "log" if is_log(source.head):
                return MatrixFile.of_log(source)
            case _:
                return TextFile.of(source)


def _meant(path: Path) -> Iterable[Path]:
    if path.is_dir():
        tables = sorted(each for each in path.iterdir() if _is_table(each))
        if not tables:
            raise refusal(
                path,
                expected="a folder of tables",
                got="none that ends in .csv, .tsv, .parquet, .arrow, .feather, .npy or .txt",
                hint="name the files",
            )
        return tables
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    matches = [match for match in matches if match.is_file()]
    if not matches:
        raise refusal(
            path, expected="files that match", got="none", hint="check the pattern and its folder"
        )
    return matches


def is_log(head: bytes) -> bool:
    """Return whether most first lines have a log's number of fields, separated by blanks.

    Lines of other tables may also begin with a date, a time and two numbers.
    """
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    widths = [len(line.split()) for line in lines]
    return b"\t" not in lines[0] and 2 * widths.count(intel_lab.FIELDS) > len(widths)


def _is_table(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    return path.is_file() and not name.startswith(".") and Path(name).suffix in SUFFIXES
