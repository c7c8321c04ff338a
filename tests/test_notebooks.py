"""Every notebook runs from its first cell to its last, and shows what its text says."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from support.notebooks import cells_of, run

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_as_it_ran(notebook):
    """From first to last, with a picture, and without a path of the machine that ran it."""
    code = [cell for cell in cells_of(notebook) if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]

    assert list(range(1, len(code) + 1)) == [cell["execution_count"] for cell in code]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert tempfile.gettempdir() not in json.dumps(outputs)
    assert "error" not in {output["output_type"] for output in outputs}


@pytest.mark.slow
def test_the_pumps_notebook_finds_the_fault(tmp_path, monkeypatch, capfd):
    """One alarm, at 14:00, for the flow, as the stored outputs say; the detector blames it, too."""
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib").use("Agg")
    shutil.copy(EXAMPLES / "pump_history.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    names = run(EXAMPLES / "pump_history.ipynb")

    stored = "".join(
        "".join(output.get("text", []))
        for cell in cells_of(EXAMPLES / "pump_history.ipynb")
        for output in cell.get("outputs", [])
    )
    printed = capfd.readouterr().out
    first = [text.split(" limit")[0] for text in (stored, printed)]
    assert first[0] == first[1]
    assert all("2026-03-23 14:00:00 UTC" in text for text in (stored, printed))
    (alarm,) = names["alarms"]
    assert 14 * 60 == alarm["began"]["time"] % 86400 / 60
    assert "flow" == max(alarm["first"], key=alarm["first"].get)
    assert "flow" == names["blamed"].mode()[0]
    assert 80 <= len(names["fault"]) <= 90
    assert 5 < names["too_high"] < 8


def test_a_cell_that_fails_is_named(tmp_path):
    """A traceback says which cell of which notebook failed."""
    notebook = tmp_path / "half.ipynb"
    notebook.write_text(
        '{"cells": [{"cell_type": "markdown", "source": ["a"]},'
        ' {"cell_type": "code", "source": ["x = 1\\n", "x / 0"]}]}'
    )

    with pytest.raises(ZeroDivisionError) as failed:
        run(notebook)

    assert "half.ipynb, cell 2" == str(failed.traceback[-1].path)


def test_there_are_notebooks():
    """The folder is where the tests look for them."""
    assert NOTEBOOKS
