"""Notebooks as programs: their code cells, in order, without a kernel and without Jupyter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    """Return a notebook's cells as they are in the file (nbformat 4)."""
    cells: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return cells


def run(notebook: Path) -> dict[str, Any]:
    """Execute the code cells from first to last, and return the names that they leave.

    A cell that fails raises; its file name in the traceback is "NAME, cell N", from 1. Magic
    commands are refused by Python's grammar.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for i, cell in enumerate(cells_of(notebook), start=1):
        if cell["cell_type"] == "code":
            program = compile("".join(cell["source"]), f"{notebook.name}, cell {i}", "exec")
            exec(program, names)  # noqa: S102 - a file of ours
    return names
