"""Opening: the reader of a file, chosen by its first bytes."""

from __future__ import annotations

from pathlib import Path

from submerge_client.datasets import intel_lab, npy
from submerge_client.datasets.reading import format_of
from submerge_client.datasets.source import refusal
from submerge_files.reader.formats import arrow_file
from submerge_files.reader.formats.matrix_file import MatrixFile
from submerge_files.reader.formats.remote_path import is_remote, source_of
from submerge_files.reader.formats.tables import TableFile
from submerge_files.reader.formats.text_file import TextFile


def open_file(path: Path) -> TableFile:
    """Open one file, or refuse one that is no table."""
    source = source_of(path)
    if arrow_file.recognizes(source):
        return arrow_file.opened(source)
    with source.damage_first():
        kind = format_of(source)
        if is_remote(path) and (kind == "npy" or (kind == "log" and is_log(source.head))):
            raise refusal(
                path,
                expected="Parquet, or a table in text, at a remote place",
                got=f"a file that is read as {kind}",
                hint="copy it to a disk, or write it as Parquet",
            )
        match kind:
            case "npy" if source.packed:
                return MatrixFile.of_rows(path, npy.read(source).rows)
            case "npy":
                return MatrixFile.mapped(source)
            case "log" if is_log(source.head):
                return MatrixFile.of_log(source)
            case _:
                return TextFile.of(source)


def is_log(head: bytes) -> bool:
    """Return whether most first lines have a log's number of fields, separated by blanks.

    Lines of other tables may also begin with a date, a time and two numbers.
    """
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    widths = [len(line.split()) for line in lines]
    return b"\t" not in lines[0] and 2 * widths.count(intel_lab.FIELDS) > len(widths)
