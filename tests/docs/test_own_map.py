"""docs/kernels.md: a feature map of one's own learns and merges in a process, and stays there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import submerge

PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"


def test_a_map_of_ones_own_enters_a_schema_and_leaves_no_process(capsys):
    """The page's program runs; what it has saved is refused, as any foreign map is."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)

    exec(program, names := {"__name__": "page"})  # noqa: S102

    assert names["both"].weight == 400
    assert capsys.readouterr().out
    with pytest.raises(submerge.PeerError, match=r"example\.squares"):
        submerge.loads(submerge.dumps(names["north"]))
