"""Text that others chose, as a terminal may get it.

Names of channels, units and machines, words of foreign aggregators and of files: whatever is in
them, the line or the cell stays what it is. Names of nodes and groups need none of this: the border
lets letters, digits and ._- through.
"""

from __future__ import annotations

MOST_LETTERS = 100
"""Of a name: what is longer is cut."""


def printable(text: str) -> str:
    """Return foreign text without the characters that control a terminal, or cannot be seen."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def name_text(name: str) -> str:
    """Return a foreign name: printable, and cut if it is very long."""
    cut = name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"
    return printable(cut)
