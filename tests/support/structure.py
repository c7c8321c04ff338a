"""The structure of the product code, counted: what the house rules ask, as lists that are empty.

`PYTHONPATH=tests python -m support.structure` prints each list. Generated `*_pb2` do not count.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "proto", "client", "aggregator", "files", "operate", "bridges", "lab")
LONGEST_FILE, LONGEST_FUNCTION, MOST_IN_A_FOLDER, MOST_AT_A_ROOT = 700, 60, 25, 15

OLD_WORDS = frozenset(
    """vigil vigils wish wishes want obey sentry lookout promise oddness odd oddest senses tamed
    twofold jury suspects spokesmen mishap mishaps desk tether herald courier posting doors
    assembled asking bell vouch vouches told untold""".split()  # noqa: SIM905 - a list of words
)
"""Words of the words that we left behind. Identifiers are cut at underscores and capitals."""

NAMES_WITH_OLD_WORDS = {
    "SSLWantReadError": "a name of the standard library",
    "want_write": "a name of paho-mqtt",
}
"""Identifiers that keep such a word, and why."""

WORDS_IN_TEXT = frozenset(
    """vigil vigils lookout sentry spokesmen mishap mishaps tether herald courier whoever
    nobody somebody vouch vouches anew told untold""".split()  # noqa: SIM905 - a list of words
)
"""Words that no docstring, comment, message or help text of the product uses."""

TEXTS_WITH_OLD_WORDS: dict[str, str] = {
    '"lookout"': "the key of a record in checkpoints: bytes",
    '"wishes"': "the key of a record in stores: bytes",
}
"""String literals, whole, that are bytes somewhere."""

LONG_FUNCTIONS = {
    "core/submerge/pca/merging.py:merge": "its docstring is the paper's section, and a model",
}
"""Functions over the measure, and why."""


def modules() -> Iterator[Path]:
    """Return every hand-written module of the product, as a path from the root."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "_pb2" not in path.name:
                yield path.relative_to(ROOT)


def tree_of(path: Path) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def classes_defined_twice() -> list[str]:
    """Return names that more than one class of the product has."""
    places: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path))
    return [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1]


def long_files() -> list[str]:
    """Return files over the measure, with their lines."""
    counts = {path: len((ROOT / path).read_text("utf-8").splitlines()) for path in modules()}
    return [f"{path}: {n}" for path, n in counts.items() if n > LONGEST_FILE]


def long_functions() -> list[str]:
    """Return functions over the measure, docstring included, with their lines."""
    found = []
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                n = (node.end_lineno or first) - node.lineno + 1
                if n > LONGEST_FUNCTION and f"{path}:{node.name}" not in LONG_FUNCTIONS:
                    found.append(f"{path}:{node.name}: {n}")
    return found


def full_folders() -> list[str]:
    """Return folders with more modules than the measure, `__init__` left out."""
    counts = Counter(path.parent for path in modules() if path.name != "__init__.py")
    return [
        f"{folder}: {n}"
        for folder, n in counts.items()
        if n > (MOST_AT_A_ROOT if len(folder.parts) == 2 else MOST_IN_A_FOLDER)
    ]


def parts_of(name: str) -> set[str]:
    """Return the words of an identifier: `_WishView` is {"wish", "view"}."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def old_identifiers() -> list[str]:
    """Return identifiers with a word that we left behind, and the first place of each."""
    found: dict[str, str] = {}
    for path in modules():
        text = (ROOT / path).read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and parts_of(token.string) & OLD_WORDS:
                found.setdefault(token.string, f"{path}:{token.start[0]}")
    return [f"{name}: {where}" for name, where in found.items() if name not in NAMES_WITH_OLD_WORDS]


def old_texts() -> list[str]:
    """Return lines of comments, docstrings and other texts with a word of the old dialect."""
    found = []
    for path in modules():
        text = (ROOT / path).read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in (tokenize.STRING, tokenize.COMMENT):
                continue
            if token.string in TEXTS_WITH_OLD_WORDS:
                continue
            for i, line in enumerate(token.string.splitlines()):
                words = {word.lower() for word in re.findall(r"[A-Za-z]+", line)}
                if words & WORDS_IN_TEXT:
                    found.append(f"{path}:{token.start[0] + i}: {line.strip()}")
    return found


def unused_exceptions() -> list[str]:
    """Return exceptions that nothing in the product needs any more."""
    names, strings, functions = set(), set(), set()
    for path in modules():
        text = (ROOT / path).read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            names.add(token.string)
            strings.add(token.string)
        functions |= {
            f"{path}:{node.name}"
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.FunctionDef)
        }
    return sorted(
        {*NAMES_WITH_OLD_WORDS} - names
        | {*TEXTS_WITH_OLD_WORDS} - strings
        | {*LONG_FUNCTIONS} - functions
    )


LISTS = {
    "classes defined twice": classes_defined_twice,
    "files over 700 lines": long_files,
    "functions over 60 lines": long_functions,
    "folders that are too full": full_folders,
    "identifiers in old words": old_identifiers,
    "texts in old words": old_texts,
}


if __name__ == "__main__":
    for what, listed in LISTS.items():
        lines = listed()
        sys.stdout.write("\n  ".join([f"{what}: {len(lines)}", *lines]) + "\n")
