"""The structure of the product code, counted: what the house rules ask, and what breaks them.

`PYTHONPATH=tests python -m support.structure` prints each list. Generated `*_pb2` do not count.
Nothing of the product is imported.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LONGEST_FILE, LONGEST_FUNCTION, MOST_IN_A_FOLDER, MOST_AT_A_ROOT = 700, 60, 25, 15
SHORT_FILE, FEWEST_IN_A_FOLDER = 80, 3

LONG_FUNCTIONS = {
    "core/submerge/pca/merging.py:merge": "its docstring is the paper's section, and a model",
}
"""Functions over the measure, and why."""


def toml(path: str) -> dict[str, Any]:
    """Return a TOML file of the repository; {} if there is none."""
    file = ROOT / path
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def packages(distribution: str) -> list[str]:
    """Return the packages of the wheel that a folder's pyproject.toml makes, from the root."""
    project = toml(f"{distribution}/pyproject.toml")
    listed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] if project else []
    return [(Path(distribution) / each).as_posix() for each in listed]


WHEEL = packages(".")
PRODUCT = [*WHEEL, *packages("lab")]


def files(folder: str, suffix: str = ".py") -> Iterator[Path]:
    """Yield the hand-written files below a folder."""
    for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
        if "_pb2" not in path.name and "build" not in path.parts:
            yield path


def lines(path: Path) -> int:
    """Return what `wc -l` says."""
    return path.read_bytes().count(b"\n")


@cache
def modules() -> dict[str, Path]:
    """Return every hand-written module of the product by its dotted name."""
    found = {}
    for package in PRODUCT:
        for path in files(package):
            parts = path.relative_to((ROOT / package).parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def nodes(name: str) -> list[ast.AST]:
    """Return a module's syntax tree and all that is below it, the tree first."""
    return list(ast.walk(ast.parse(modules()[name].read_text(encoding="utf-8"))))


def where(name: str) -> str:
    """Return a module's path from the root."""
    return modules()[name].relative_to(ROOT).as_posix()


@cache
def importers() -> dict[str, set[str]]:
    """Return who imports each module: late imports and those of types count, too."""
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for name in found:
        for node in nodes(name):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted = [each if each in found else node.module for each in below]
            else:
                continue
            for each in {*wanted} & {*found} - {name}:
                found[each].add(name)
    return found


def classes_defined_twice() -> list[str]:
    """Return names that more than one class of the product has."""
    places: dict[str, list[str]] = {}
    for name in modules():
        for node in nodes(name):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(where(name))
    return [f"{name}: {', '.join(paths)}" for name, paths in places.items() if len(paths) > 1]


def long_files() -> list[str]:
    """Return files over the measure, with their lines."""
    return [
        f"{where(name)}: {lines(path)}"
        for name, path in modules().items()
        if lines(path) > LONGEST_FILE
    ]


def long_functions() -> list[str]:
    """Return functions over the measure, docstring included, with their lines."""
    found = []
    for name in modules():
        for node in nodes(name):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                n = (node.end_lineno or node.lineno) - node.lineno + 1
                if n > LONGEST_FUNCTION and f"{where(name)}:{node.name}" not in LONG_FUNCTIONS:
                    found.append(f"{where(name)}:{node.name}: {n}")
    return found


def sizes() -> dict[str, int]:
    """Return each folder of the product with its number of modules, `__init__` left out."""
    counts: Counter[str] = Counter()
    for path in modules().values():
        counts[path.parent.relative_to(ROOT).as_posix()] += path.name != "__init__.py"
    return dict(counts)


def full_folders() -> list[str]:
    """Return folders with more modules than the measure."""
    return [
        f"{folder}: {n}"
        for folder, n in sizes().items()
        if n > (MOST_AT_A_ROOT if folder in PRODUCT else MOST_IN_A_FOLDER)
    ]


def thin_folders() -> list[str]:
    """Return folders inside packages that hold too few modules to be worth one."""
    return [
        f"{folder}: {n}"
        for folder, n in sizes().items()
        if n < FEWEST_IN_A_FOLDER
        and folder not in PRODUCT
        and not any((ROOT / folder).glob("*_pb2.py"))
    ]


def with_one_importer() -> list[str]:
    """Return modules that one other module imports, and that one's name."""
    return [
        f"{where(name)}: {where(*users)}"
        for name, users in importers().items()
        if len(users) == 1 and modules()[name].name != "__init__.py"
    ]


def short_with_one_importer() -> list[str]:
    """Return modules that are short enough to be a part of their one importer."""
    return [each for each in with_one_importer() if lines(ROOT / each.split(":")[0]) < SHORT_FILE]


EMPTY = {
    "classes defined twice": classes_defined_twice,
    "files over 700 lines": long_files,
    "functions over 60 lines": long_functions,
    "folders that are too full": full_folders,
}
"""Rules without exceptions."""

COUNTED = {
    "folders with fewer than three files": thin_folders,
    "files under 80 lines with one importer": short_with_one_importer,
    "modules with one importer": with_one_importer,
}
"""Rules whose exceptions `budget.toml` counts."""


if __name__ == "__main__":
    for what, listed in {**EMPTY, **COUNTED}.items():
        found = listed()
        sys.stdout.write("\n  ".join([f"{what}: {len(found)}", *found]) + "\n")
