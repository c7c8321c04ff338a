"""What the page on Flower shows is in the example, which `make test-flower` runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/flower.md").read_text(), re.DOTALL)
PARTS = [path.read_text() for path in sorted((ROOT / "examples/flower/pumps").glob("*.py"))]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_a_block_is_part_of_the_example(block: str) -> None:
    """Each block of code is in one of its files, word for word."""
    assert any(block in part for part in PARTS)
