"""What a template of channels' names may hold, for metrics of line protocol."""

from __future__ import annotations

import re

FIELD, DEVICE, MEASUREMENT = "field", "device", "measurement"

PLACE = re.compile(r"\{([^{}]+)\}")
"""A place in a template: one of the words above, or the key of a tag."""


def wrong_with(template: str) -> str | None:
    """Return what was expected of a template; None if it is right."""
    if set("{}") & set(PLACE.sub("", template)):
        return "places in braces, as {device}"
    return None if PLACE.findall(template).count(FIELD) == 1 else "a text with {field} in it once"
