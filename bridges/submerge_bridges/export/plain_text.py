"""What all exported programs say of themselves, and names that no program can trip over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from submerge_bridges.export.recipe import Recipe

LONGEST = 60
"""Letters of a name in a comment."""

LONGEST_IDENTIFIER = 31
"""Letters of a name in an identifier: compilers of C99 may ignore what follows."""


def harmless(text: str) -> str:
    """Return a text of plain letters, for a comment: others become underscores."""
    return re.sub(r"[^A-Za-z0-9 .,:()+-]", "_", text[:LONGEST])


def identifiers(names: Sequence[str]) -> list[str]:
    """Return a different identifier for each name, of lower-case letters, digits and underscores.

    They may begin with a digit.
    """
    found: dict[str, None] = {}
    for number, name in enumerate(names):
        plain = re.sub(r"[^a-z0-9]+", "_", name[:LONGEST_IDENTIFIER].lower()).strip("_")
        each = plain or str(number)
        while each in found:
            each = f"{plain}_{number}" if plain else f"_{each}"
            plain = each
        found[each] = None
    return list(found)


def about_lines(recipe: Recipe) -> list[str]:
    """Return the lines with which a program begins."""
    alarm = recipe.alarm
    channels = f"{recipe.dim} channel{'s' * (recipe.dim != 1)}"
    every = f", one row every {recipe.period_s:g} s" if recipe.period_s else ""
    lines = [
        "Made by `submerge model export`: scores rows of one machine, and says when they raise an",
        "alarm. docs/export.md says what it does, and what only the product does.",
        "",
        f"model      {harmless(recipe.group)}, version {recipe.version}",
        f"schema     {recipe.fingerprint}",
        f"rows       {channels}{every}",
        f"scores     {', '.join(recipe.scores)}",
    ]
    if not alarm.limits:
        return [*lines, "alarms     none: the model has no limits for them"]
    by = f"{', '.join(alarm.kinds)}; {alarm.after} of {alarm.of} rows"
    lines += [f"alarms by  {by}"]
    if alarm.provisional_rows:
        rows = f"{alarm.provisional_rows:,.0f}"
        return [*lines, f"limits     provisional: about 1 false alarm in {rows} rows"]
    return [*lines, f"limits     at most {harmless(alarm.at_most)}"]
