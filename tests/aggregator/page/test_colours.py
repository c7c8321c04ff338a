"""Colours of the page, in the light and in the dark: text on its ground can be read."""

from __future__ import annotations

import re

import pytest

from submerge_aggregator.page.opening import FOLDER

LIGHT, DARK = (FOLDER / "tokens.css").read_text().split("@media (prefers-color-scheme: dark)")

TEXT, SHAPE = 4.5, 3.0
"""Least contrast of text and of what else has a meaning: WCAG 2.2, 1.4.3 and 1.4.11, level AA."""

ON = {
    "ink": ["paper", "surface", "sunk", "bad-ground"],
    "quiet": ["paper", "surface", "sunk", "still-ground"],
    "accent": ["paper", "surface", "sunk"],
    "on-accent": ["accent"],
    "on-bad": ["bad"],
    "bad": ["paper", "surface", "bad-ground", "sunk"],
    "warn": ["surface", "warn-ground"],
    "note": ["surface", "note-ground"],
    "good": ["paper", "surface", "good-ground"],
    "limit": ["paper", "surface"],
}
DRAWN = {
    "edge": ["paper", "surface"],
    "focus": ["paper", "surface"],
    **{f"line-{i}": ["paper", "surface", "band-0", "band-1"] for i in range(6)},
    "heat-over": ["heat-low"],
    "heat-far": ["heat-low", "heat-near"],
}


def colours(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))


def luminance(colour: str) -> float:
    """Return the relative luminance, as WCAG defines it."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("text", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(ON, TEXT), (DRAWN, SHAPE)], ids=["text", "drawn"])
def test_what_is_read_stands_out_from_its_ground(text, pairs, least):
    """Each colour on each ground that it is used on."""
    known = colours(text)
    found = {
        f"{name} on {ground}": round(contrast(known[name], known[ground]), 2)
        for name, grounds in pairs.items()
        for ground in grounds
    }
    assert {} == {pair: value for pair, value in found.items() if value < least}


def test_both_have_the_same_colours():
    """One that the dark forgets would be the light's."""
    assert set(colours(LIGHT)) == set(colours(DARK))
