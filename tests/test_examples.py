"""Every example runs, as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_prints(example, tmp_path):
    """An example exits with 0, warns of nothing, and prints its figures."""
    if "sklearn" in example.read_text():
        pytest.importorskip("sklearn")

    done = subprocess.run(
        [sys.executable, "-W", "error", example], cwd=tmp_path, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_the_ten_lines_of_the_readme_run(capsys):
    """The program that a visitor copies first runs, and scores the drifted reading high."""
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    exec(lines, names := {})  # noqa: S102

    assert names["spe"](names["drifted"], names["fleet"])[0] > 4
    assert capsys.readouterr().out


def test_there_are_examples():
    """The folder is where the test looks for it."""
    assert EXAMPLES
