"""The folders of the product as a table, from the docstrings of their `__init__`: an extension."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]


def folders() -> Iterator[tuple[str, str]]:
    """Yield each folder with the first sentence of its docstring."""
    for project in ("pyproject.toml", "lab/pyproject.toml"):
        if not (ROOT / project).exists():
            continue
        targets = tomllib.loads((ROOT / project).read_text("utf-8"))["tool"]["hatch"]["build"]
        for package in targets["targets"]["wheel"]["packages"]:
            for path in sorted(((ROOT / project).parent / package).rglob("__init__.py")):
                text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
                sentence = re.match(r".*?\.(?=\s|$)", " ".join(text.split()))
                yield path.parent.relative_to(ROOT).as_posix(), sentence[0] if sentence else ""


def table() -> str:
    """Return the table as Markdown."""
    rows = [f"| `{folder}/` | {sentence} |" for folder, sentence in folders()]
    return "\n".join(["| folder | what it is for |", "|---|---|", *rows]) + "\n"


def fill(_: Sphinx, name: str, source: list[str]) -> None:
    """Put the table into its page."""
    if name == "docs/folders":
        source[0] = source[0].replace("```{folders}\n```\n", table())


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page as it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.stdout.write(table())
