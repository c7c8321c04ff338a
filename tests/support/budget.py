"""What the product costs, counted without importing it.

`PYTHONPATH=tests python -m support.budget` prints each figure beside its ceiling. `budget.toml`
has the ceilings, and the places that are counted beside the wheel's packages.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from support.structure import (
    COUNTED,
    ROOT,
    WHEEL,
    files,
    lines,
    long_files,
    modules,
    nodes,
    toml,
    where,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function

BUDGET = toml("budget.toml")
PLACES = BUDGET["places"]
PUBLIC_PACKAGES = {page.stem for page in (ROOT / "docs" / "api").glob("*.rst")}


def assigned(name: str, constant: str) -> ast.expr | None:
    """Return the expression that a module gives to a name."""
    for node in nodes(name):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == constant for each in targets):
            return getattr(node, "value", None)
    return None


def public_names() -> list[tuple[str, str]]:
    """Return package and name of all that the packages of the API's pages list."""
    return [
        (package, name)
        for package in sorted(PUBLIC_PACKAGES & {*modules()})
        for name in ast.literal_eval(assigned(package, "__all__") or ast.List([]))
    ]


def commands() -> set[str]:
    """Return the words after `submerge`, of the tables that entry points name."""
    found: set[str] = set()
    for path in PLACES["programs"]:
        entries = toml(path).get("project", {}).get("entry-points", {})
        for value in entries.get("submerge.commands", {}).values():
            module, _, name = value.partition(":")
            table = assigned(module, name)
            if isinstance(table, ast.Dict):
                words = [ast.literal_eval(key) for key in table.keys if key]
                found |= {each for each in words if " " not in each}
    return found


def called(node: ast.AST) -> str:
    """Return the last word of what is called, "" of what is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def options(node: ast.AST) -> int:
    """Count options where they are declared; a function that only builds one declares none."""
    if isinstance(node, Function) and node.name.endswith("_option"):
        return 0
    word = called(node)
    here = word == "option" or (word.endswith("_option") and word != "version_option")
    return here + sum(map(options, ast.iter_child_nodes(node)))


def settings() -> int:
    """Count the fields of classes that are sections of a configuration."""
    classes = [node for name in modules() for node in nodes(name) if isinstance(node, ast.ClassDef)]
    sections, before = {PLACES["section"]}, 0
    while len(sections) > before:
        before = len(sections)
        for each in classes:
            if any(isinstance(base, ast.Name) and base.id in sections for base in each.bases):
                sections.add(each.name)
    return sum(
        isinstance(field, ast.AnnAssign) and "ClassVar" not in ast.unparse(field.annotation)
        for each in classes
        if each.name in sections
        for field in each.body
    )


def private_docstrings() -> int:
    """Count lines of docstrings after the first of each, but of public names and commands."""
    public = {name for _, name in public_names()}

    def kept(node: ast.AST) -> Iterator[Documented]:
        decorators = getattr(node, "decorator_list", ())
        if isinstance(node, Documented) and not (
            getattr(node, "name", "") in public
            or {*map(called, decorators)} & {"command", "group"}  # its docstring is help
        ):
            yield node
            for child in node.body:
                yield from kept(child)

    return sum(
        max(len((ast.get_docstring(node) or "").splitlines()) - 1, 0)
        for name in {*modules()} - PUBLIC_PACKAGES
        for node in kept(nodes(name)[0])
    )


def inside(path: str) -> bool:
    """Say whether a path lies in the wheel."""
    return path.startswith(tuple(f"{package}/" for package in WHEEL))


def written(folder: str, suffix: str = ".py") -> int:
    """Count the lines of hand-written files below a folder."""
    return sum(map(lines, files(folder, suffix)))


def costs() -> dict[str, int]:
    """Return each figure of the budget as it is now."""
    wheel: list[Path] = [path for name, path in modules().items() if inside(where(name))]
    return {
        "lines of Python in the wheel": sum(map(lines, wheel)),
        "files of Python in the wheel": len(wheel),
        "files over 700 lines": len(long_files()),
        **{what: sum(map(inside, listed())) for what, listed in COUNTED.items()},
        "lines of private docstrings after the first": private_docstrings(),
        "top-level commands": len(commands()),
        "options of commands": sum(options(nodes(name)[0]) for name in modules()),
        "settings": settings(),
        "public names": len(public_names()),
        "lines of the page's JavaScript": written(PLACES["page"], ".js"),
        "lines of the page's CSS": written(PLACES["page"], ".css"),
        "lines of the page's HTML": written(PLACES["page"], ".html"),
        "lines of the leaf's C": written(PLACES["leaf"], ".c") + written(PLACES["leaf"], ".h"),
        **{f"lines of {folder}": written(folder) for folder in PLACES["python"]},
        "seconds of the gate": BUDGET["gate"]["seconds"],
    }


if __name__ == "__main__":
    sys.stdout.write(f"{'now':>9} {'ceiling':>9}\n")
    for what, now in costs().items():
        most = BUDGET["ceilings"][what]["most"]
        sys.stdout.write(f"{now:9,} {most:9,}  {what}{'  <- over' * (now > most)}\n")
