"""Every example runs, as a reader would run it."""

from __future__ import annotations

import os
import re
import shlex
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


@pytest.mark.slow
def test_the_two_commands_of_the_readme_find_the_fault(tmp_path):
    """From files to an alarm with its channels, and a picture: as the README has it."""
    pytest.importorskip("matplotlib")
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"<!-- two commands -->\n```\n(.*?)```", readme, re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    program = {"submerge": ["-m", "submerge_operate"], "python": []}
    done = [
        subprocess.run(
            [sys.executable, *program[name], *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )
        for name, *words in _from_root(lines)
    ]

    assert [0, 0, 3] == [each.returncode for each in done], [each.stderr for each in done]
    assert "2026-03-23 14:00:00 UTC" in done[-1].stdout
    assert re.search(r"^alarms +1$", done[-1].stderr, re.MULTILINE), "no false alarm beside it"
    assert "flow 58%" in done[-1].stdout
    assert "flow 37.6, where the others say 30.1" in done[-1].stdout
    assert (tmp_path / "monday.png").stat().st_size > 10_000


def _from_root(lines: list[list[str]]) -> list[list[str]]:
    """Return commands without pip's, with examples named as seen from elsewhere."""
    return [
        [str(ROOT / word) if word.startswith("examples/") else word for word in line]
        for line in lines
        if line[0] != "pip"
    ]


def test_there_are_examples():
    """The folder is where the test looks for it."""
    assert EXAMPLES
