"""No circle of imports in the product, those for types and late ones counted in."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOUSES = ("core", "proto", "client", "aggregator", "files", "operate", "bridges", "lab")
KNOWN: dict[frozenset[str], str] = {}
"""Circles that stay, each with its reason."""


def modules() -> dict[str, Path]:
    """The product's modules, generated ones apart."""
    found = {}
    for house in HOUSES:
        for path in (ROOT / house).glob("submerge*/**/*.py"):
            if not path.stem.endswith("_pb2"):
                parts = path.relative_to(ROOT / house).with_suffix("").parts
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path: Path) -> Iterator[tuple[str, str | None]]:
    """The modules that a file imports, each with the name that it takes from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for each in node.names:
                yield str(node.module), each.name
        elif isinstance(node, ast.Import):
            for each in node.names:
                yield each.name, None


def graph(found: dict[str, Path]) -> dict[str, set[str]]:
    """The imports among modules; a package is one if a name is taken from its own `__init__`."""
    edges: dict[str, set[str]] = {}
    for module, path in found.items():
        taken = {
            full if name is not None and (full := f"{source}.{name}") in found else source
            for source, name in imported(path)
        }
        edges[module] = (taken & found.keys()) - {module}
    return edges


def circle(edges: dict[str, set[str]]) -> tuple[str, ...]:
    """A way from a module back to itself; empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return tuple(error.args[1][::-1])
    return ()


def test_no_module_imports_itself_by_way_of_others() -> None:
    """What is one subject is one module, and what is two has an order."""
    edges = graph(modules())
    assert len(edges) > 500
    for known in KNOWN:
        assert circle({each: edges[each] & known for each in known}), f"{set(known)} is none now"
    kept = {
        module: {each for each in to if not any({module, each} <= known for known in KNOWN)}
        for module, to in edges.items()
    }
    assert () == circle(kept)


def test_a_circle_of_types_is_found(tmp_path: Path) -> None:
    """Imports for types and inside of functions count."""
    texts = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b import B\n",
        "b": "def late():\n    import c\n",
        "c": "from a import A\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    edges = graph({name: tmp_path / f"{name}.py" for name in texts})
    assert {"a", "b", "c"} == set(circle(edges))
    assert () == circle({**edges, "c": set()})
