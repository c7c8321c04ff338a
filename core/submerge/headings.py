"""Headings: columns of files and frames as channels with units, as `temp [degC]`."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence

from submerge.schema import Channel

WITH_UNIT = re.compile(r"(.*\S)\s+\[([^][]*)\]", re.DOTALL)  # blanks are required: a[0] is a name


@functools.lru_cache(maxsize=4096)
def channel_of(heading: str) -> Channel:
    """Return "name" or "name [unit]" as a channel."""
    text = heading.strip()
    found = WITH_UNIT.fullmatch(text)
    return Channel(found[1], found[2].strip()) if found else Channel(text)


def channels_of(headings: Sequence[str]) -> tuple[Channel, ...]:
    """Return the channels that columns are; their names differ if the headings do."""
    split = [channel_of(heading) for heading in headings]
    # A column is found by its whole heading, too, which another's name must not be.
    pairs = list(zip(split, headings, strict=True))
    taken = Counter(name for channel, heading in pairs for name in {channel.name, heading})
    return tuple(
        channel if taken[channel.name] == 1 else Channel(heading) for channel, heading in pairs
    )


def place_of(channel: Channel, headings: Sequence[str]) -> int | None:
    """Return the place of a channel's column; None if there is none, or more than one."""
    if channel.name in headings:
        return headings.index(channel.name)
    alike = []
    for place, heading in enumerate(headings):
        other = channel_of(heading)
        units = {other.unit, channel.unit} - {""}
        if other.name == channel.name and len(units) < 2:
            alike.append(place)
    return alike[0] if len(alike) == 1 else None


def heading_of(channel: Channel) -> str:
    """Return a channel as "name" or "name [unit]"."""
    return f"{channel.name} [{channel.unit}]" if channel.unit else channel.name


def called(channels: Sequence[Channel], headings: Sequence[str]) -> list[str]:
    """Return for each column the name of the channel that it is; its heading if it is none."""
    names = list(headings)
    for channel in channels:
        place = place_of(channel, headings)
        if place is not None:
            names[place] = channel.name
    return names


def lags_of(names: Sequence[str]) -> int:
    """Return how many rows are side by side, by names: 2 for flow, temp, flow-1, temp-1."""
    for width in range(1, len(names) // 2 + 1):
        lags, rest = divmod(len(names), width)
        if not rest and all(
            name == f"{names[i % width]}-{i // width}" for i, name in enumerate(names) if i >= width
        ):
            return lags
    return 1
