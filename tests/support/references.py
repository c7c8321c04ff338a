"""What a walk through the code refers to, resolved against the product's sources.

Only what stands in `backquotes` can be a reference. It is one if it has one of these forms:

==========================  =====================================================================
form                        what has to exist
==========================  =====================================================================
`a/b.py`, `b.py`, `a/`      a file or folder of the product whose path ends so
`b.py:name`                 such a file, with that function, class or value at its top level
`b.py:Class.name`           such a file, with that class, which has that method or field
`Class.name`                a class of that name, which has (or inherits) that method or field
`module.name`               a file `module.py` or folder `module/`, with that name at its top level
`Name`                      a class of that name; two letters or more, not all of them capitals
`name()`                    a function or method of that name
==========================  =====================================================================

Arguments may stand between the parentheses of all forms with a name: `Reading(rows)`. What has
a blank outside of them, a sign or another form (`submerge client`, `seq`, `(n, channels)`) is
no reference. A name that is built in Python, or of another library, is none either: write it in
another way.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "core/submerge",
    "proto/submerge_proto",
    "client/submerge_client",
    "aggregator/submerge_aggregator",
    "operate/submerge_operate",
)

_ARGUMENTS = r"(?P<call>\([^`]*\))?"
_FILE = re.compile(rf"(?P<path>[\w/.-]*\w\.py)(?::(?P<name>\w+(?:\.\w+)?){_ARGUMENTS})?")
_FOLDER = re.compile(r"(?P<path>(?:[\w-]+/)+)")
_MEMBER = re.compile(rf"(?P<owner>[A-Za-z_]\w*)\.(?P<name>[A-Za-z_]\w*){_ARGUMENTS}")
_CLASS = re.compile(rf"(?P<name>_?[A-Z]\w*[a-z]\w*){_ARGUMENTS}")
_FUNCTION = re.compile(r"(?P<name>[a-z_]\w*)\([^`]*\)")


@dataclass
class Definitions:
    """What one file defines: its top-level names, and its classes' members and parents."""

    names: set[str]
    members: dict[str, set[str]]
    parents: dict[str, set[str]]


def _targets(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (each.asname or each.name for each in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, (ast.If, ast.Try)):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.stmt):
                yield from _targets(part)


def _members(kind: ast.ClassDef) -> set[str]:
    """The methods and fields of a class, those that its methods set included."""
    own = {name for node in kind.body for name in _targets(node)}
    return own | {
        node.attr
        for node in ast.walk(kind)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def definitions(source: str) -> Definitions:
    """Read off what a source defines, without running it."""
    tree = ast.parse(source)
    kinds = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return Definitions(
        names={name for node in tree.body for name in _targets(node)},
        members={kind.name: _members(kind) for kind in kinds},
        parents={
            kind.name: {part.id for part in map(_bare, kind.bases) if isinstance(part, ast.Name)}
            for kind in kinds
        },
    )


def _bare(base: ast.expr) -> ast.expr:
    return base.value if isinstance(base, ast.Subscript) else base


class Sources:
    """The product's files, and what references to them resolve to."""

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        self._files = {PurePosixPath(path): definitions(text) for path, text in files}
        self._folders = {parent for path in self._files for parent in path.parents}
        self._members: dict[str, set[str]] = defaultdict(set)
        self._parents: dict[str, set[str]] = defaultdict(set)
        for file in self._files.values():
            for kind, members in file.members.items():
                self._members[kind] |= members
                self._parents[kind] |= file.parents[kind]
        self._callables = {name for file in self._files.values() for name in file.names}
        self._callables |= set().union(*self._members.values())

    @classmethod
    def of_product(cls) -> Sources:
        """All Python files that are shipped, generated ones left out."""
        return cls(
            (path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
            for package in PRODUCT
            for path in sorted((ROOT / package).rglob("*.py"))
            if not path.name.endswith("_pb2.py")
        )

    def _ending(self, path: str, among: Iterable[PurePosixPath]) -> list[PurePosixPath]:
        parts = PurePosixPath(path).parts
        return [each for each in among if each.parts[-len(parts) :] == parts]

    def _has(self, kind: str, member: str) -> bool:
        return member in self._members.get(kind, set()) or any(
            self._has(parent, member) for parent in self._parents.get(kind, set()) - {kind}
        )

    def _in_file(self, path: PurePosixPath, name: str) -> bool:
        owner, _, member = name.partition(".")
        found = self._files[path]
        return owner in found.names and (
            not member or (owner in found.members and self._has(owner, member))
        )

    def _in_module(self, module: str, name: str) -> bool:
        files = [*self._ending(f"{module}.py", self._files)]
        files += self._ending(f"{module}/__init__.py", self._files)
        folders = self._ending(module, self._folders)
        return any(name in self._files[path].names for path in files) or any(
            path.parent in folders and name == path.stem for path in self._files
        )

    def resolves(self, text: str) -> bool | None:
        """True if this reference leads somewhere, False if not; None if it is no reference."""
        if found := _FILE.fullmatch(text):
            paths = self._ending(found["path"], self._files)
            return bool(paths) and (
                found["name"] is None or any(self._in_file(path, found["name"]) for path in paths)
            )
        if found := _FOLDER.fullmatch(text):
            return bool(self._ending(found["path"], self._folders))
        if found := _MEMBER.fullmatch(text):
            if found["owner"][:1].isupper():
                return self._has(found["owner"], found["name"])
            return self._in_module(found["owner"], found["name"])
        if found := _CLASS.fullmatch(text):
            return found["name"] in self._members
        if found := _FUNCTION.fullmatch(text):
            return found["name"] in self._callables
        return None


def quoted(text: str) -> list[str]:
    """What stands in backquotes, fenced blocks left out."""
    return re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    )


def broken(text: str, sources: Sources) -> list[str]:
    """The references of a text that lead nowhere."""
    return [each for each in quoted(text) if sources.resolves(each) is False]
