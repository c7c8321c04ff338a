"""Docstrings as they are written: numpydoc sections, `names`, and otherwise plain text.

A docstring writes |x - y|, n_components_ and U'U and means just that. reStructuredText would
read markup into the bars and the trailing underscores, so this extension quotes them before
Sphinx sees the text. What stands in backquotes stays as it is.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

QUOTED = re.compile(r"(`[^`]*`)")
NAME_AND_TYPE = re.compile(r"^(\S+(?:, \S+)*)( : .*)$")
LITERAL = re.compile(r"^\s*(>>>|\.\.\.)")


def plain(line: str) -> str:
    """One line, with what reStructuredText would misread quoted by a backslash."""
    parts = QUOTED.split(line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(\|)|(?<=\w)(_)(?!\w)", r"\\\g<0>", parts[i])
        if i and parts[i][:1].isalpha():
            parts[i] = "\\ " + parts[i]  # `lift`ed: a quoted name may go on as a word
    return "".join(parts)


def with_heading(lines: list[str], heading: str) -> list[str]:
    """Entries that stand below no heading of numpydoc's get one: small values have none."""
    underlined = {i - 1 for i, line in enumerate(lines) if i and re.fullmatch("-{3,}", line)}
    for i, line in enumerate(lines[1:], start=1):
        if i in underlined:
            return lines
        if NAME_AND_TYPE.match(line):
            return [*lines[:i], heading, "-" * len(heading), *lines[i:]]
    return lines


def quote(*about: Any) -> None:
    """Quote all lines of a docstring in place, before its sections are read."""
    lines: list[str] = about[-1]  # after the application, and whose docstring it is
    if about[1] in ("class", "exception", "function", "method"):
        lines[:] = with_heading(lines, "Attributes" if about[1] == "class" else "Parameters")
    for i, line in enumerate(lines):
        if LITERAL.match(line):
            continue
        # The name before " : " is numpydoc's, and its reader quotes it.
        entry = NAME_AND_TYPE.match(line)
        lines[i] = entry[1] + plain(entry[2]) if entry else plain(line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx, ahead of its reader of sections (at 500)."""
    app.connect("autodoc-process-docstring", quote, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
