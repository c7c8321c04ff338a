"""What a sample configuration says, also in the lines that are commented out.

In a sample a line that begins with `#` and no blank is a setting; those of one paragraph go
together, in place of what the section says otherwise.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from msgspec.structs import fields

from submerge_client.config.removed import is_listed
from submerge_client.config.sections import choices, is_section, sections_of


def variants(sample: str) -> Iterator[dict[str, Any]]:
    """The sample as it stands; then with each paragraph taken in that has something to take in."""
    table = tomllib.loads(sample)
    yield table
    section = ""
    for paragraph in sample.split("\n\n"):
        text = re.sub(r"^#(?=\S)", "", paragraph, flags=re.MULTILINE)
        header = re.search(r"^\[.*\]$", text, re.MULTILINE)
        section = header[0] if header else section
        if text != paragraph:
            yield _overlaid(table, tomllib.loads(text if header else f"{section}\n{text}"))


def spoken_of(table: dict[str, Any], place: str = "") -> Iterator[str]:
    """Every setting that a table has, as `sensor.mqtt.url`; the name of a group is NAME.

    `states` is a setting, whose value is a table.
    """
    kind = table.get("kind")
    for key, value in table.items():
        inner = f"{place}{kind}." if kind else place
        if isinstance(value, dict) and key != "states":
            yield from spoken_of(value, f"{inner}{'NAME' if place == 'groups.' else key}.")
        elif key != "kind":
            yield inner + key


def settings_of(section: Any, place: str = "") -> Iterator[str]:
    """Every setting that a section can have, in the same words."""
    place += "".join(f"{tag}." for tag in sections_of(section)[1] if tag)
    for field in fields(section):
        if not is_listed(field.name):
            continue
        inner = [
            (get_args(choice)[1], ".NAME") if get_origin(choice) is dict else (choice, "")
            for choice in choices(field.type)
        ]
        sections = [(kind, more) for kind, more in inner if is_section(kind)]
        for kind, more in sections:
            yield from settings_of(kind, f"{place}{field.name}{more}.")
        if not sections:
            yield place + field.name


def _overlaid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above`, and of `below` what it does not say."""
    both = {
        key: _overlaid(below[key], value) if isinstance(value, dict) and key in below else value
        for key, value in above.items()
    }
    return {**below, **both}
