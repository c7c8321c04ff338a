"""The programs of docs/libraries.md run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "libraries.md").read_text("utf-8")
PROGRAM = re.compile(
    r"<!-- (\w+) -->\n```python\n(.*?)```\n<!-- end of \1 -->\n```\n(.*?)```", re.DOTALL
)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["sklearn", "river", "pyod"])
def test_a_program_prints_what_the_page_says(library, capsys):
    """Each of about ten lines, copied as it stands."""
    pytest.importorskip(library)
    programs = {name: (program, printed) for name, program, printed in PROGRAM.findall(PAGE)}
    program, printed = programs[library]

    exec(program, {})  # noqa: S102

    assert printed == capsys.readouterr().out
    assert len(program.splitlines()) <= 16
