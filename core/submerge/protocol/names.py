"""Names of nodes, groups and fleets, and the last second that a date can be written for.

A name fits a certificate, a topic and a file. All packages import this module; it imports none.
"""

from __future__ import annotations

import re

NAME = r"[A-Za-z0-9._-]{1,64}"
"""What a name consists of, as a regular expression without anchors."""

NAME_RULE = "1 to 64 of A-Z a-z 0-9 . _ -"
"""The same for people."""

LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, in Unix seconds: calendars and certificates end there."""


def is_name(text: str) -> bool:
    """Return whether a text can name a node, a group or a fleet."""
    return re.fullmatch(NAME, text) is not None
