"""Finding: which files are meant by paths, folders and patterns."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from submerge import UsageError
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.formats.remote_path import is_remote, remote_matches

SUFFIXES = frozenset(
    ".csv .tsv .txt .dat .npy .parquet .pq .arrow .arrows .feather .ipc .log".split()  # noqa: SIM905
)
"""What a folder's tables are called, before `.gz`. A file that is named may be called anything."""

ABOUT = re.compile(r"(readme|read_me|liesmich|licen[cs]e|changelog)\b", re.IGNORECASE)
"""How files begin that say something about those beside them."""


def files_of(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the files that paths mean, each once, and notes."""
    if not paths:
        raise UsageError("expected at least one file to read, got none; name one")
    found: dict[str, Path] = {}
    notes = []
    for path in (each for named in paths for each in _meant(named)):
        place = str(path) if is_remote(path) else os.path.realpath(path)
        if place in found:
            notes.append(f"{path} is named twice, and read once")
        found.setdefault(place, path)
    for path in (each for each in paths if each.is_dir()):
        tables = [each for each in sorted(path.iterdir()) if each.suffix.lower() in SUFFIXES]
        about = [each.name for each in tables if ABOUT.match(each.name)]
        notes += [f"{name} in {path} passed over: name it if it is a table" for name in about]
        if folders := _folders(path):
            few = counted(len(folders), "folder")
            notes.append(f"{few} in {path} passed over: {_inside(path)} means their files")
    return tuple(found.values()), tuple(dict.fromkeys(notes))


def _meant(path: Path) -> Sequence[Path]:
    if is_remote(path):
        return remote_matches(path)
    if path.is_dir():
        if (path / "_delta_log").is_dir():
            hint = "write the rows of one version as Parquet"
            raise refusal(path, expected="a folder of tables", got="a Delta table", hint=hint)
        tables = sorted(each for each in path.iterdir() if _is_table(each))
        if not tables:
            raise _no_tables(path)
        return tables
    several = [Path(part) for part in str(path).split(",")]
    if len(several) > 1 and not path.exists() and all(each.exists() for each in several):
        raise refusal(path, expected="a file", got="several", hint="write blanks between them")
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    # Spark writes such marks beside its tables.
    files = [each for each in matches if each.is_file() and not each.name.startswith("_")]
    if not files:
        raise refusal(
            path,
            expected="files that match",
            got=counted(len(matches), "folder") if matches else "none",
            hint=f"name their files: {_inside(path)}"
            if matches
            else "check the pattern and its folder",
        )
    return files


def _no_tables(path: Path) -> UsageError:
    """Return the error for a folder without tables, by what is in it."""
    inside = [each for each in sorted(path.iterdir()) if not each.name.startswith(".")]
    folders = _folders(path)
    if folders:
        got = f"{counted(len(folders), 'folder')} ({folders[0].name}, ...)"
        hint = f"name their files: {_inside(path)}"
    elif inside:
        tables = ".csv, .tsv, .parquet, .arrow, .feather, .npy or .txt"
        got = f"none that ends in {tables}, but {inside[0].name}"
        hint = "name the files"
    else:
        got, hint = "an empty one", "check its name"
    return refusal(path, expected="a folder of tables", got=got, hint=hint)


def _inside(path: Path) -> str:
    """Return the pattern of the first table in the folders of a folder, or of a pattern."""
    folders = sorted(map(Path, glob.glob(str(path)))) if glob.has_magic(str(path)) else [path]
    inside = (each for folder in folders for each in sorted(folder.rglob("*")) if _is_table(each))
    table = next((each for each in inside if each.parent != path), None)
    if table is None:
        return f"'{path}/*/*.csv'"
    root = next(folder for folder in folders if folder in table.parents)
    depth = len(table.relative_to(root).parts) - 1
    ends = "".join(table.suffixes[-1 - (table.suffix.lower() == ".gz") :])
    return f"'{path}/{'*/' * depth}*{ends}'"


def _folders(path: Path) -> list[Path]:
    """Return the folders in a folder that have tables, or further folders."""
    folders = (each for each in sorted(path.iterdir()) if each.is_dir())
    return [f for f in folders if any(_is_table(each) or each.is_dir() for each in _listed(f))]


def _listed(path: Path) -> Iterator[Path]:
    try:
        yield from path.iterdir()
    except PermissionError:
        return


def _is_table(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    named = not name.startswith(".") and Path(name).suffix in SUFFIXES
    return named and path.is_file() and not ABOUT.match(name)
