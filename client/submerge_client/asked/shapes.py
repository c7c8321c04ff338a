"""What a client replies about its newest rows: the shapes of the JSON.

The client makes them. The aggregator where a person looks reads them back
(`questions.foreign_replies`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from submerge.stats.block_maxima import By

LETTERS = 200
"""Of a channel's name, or of its unit; what is longer is cut."""


class Blamed(NamedTuple):
    """A channel, as an index into those that are named, and its share in a score."""

    channel: int
    share: float


class KindScores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statistic.

    limit : What an alarm is raised above; None while it has none.
    values : At each row.
    """

    kind: By
    limit: float | None
    values: list[float]


class RecentReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scores of the newest rows.

    version : Of the model that they are by.
    provisional : Whether the limits are provisional.
    at : When each row came, by the node's clock, Unix seconds.
    channels : Names of those that are blamed.
    blame : For each row at most three channels, the one with the largest share first.
    """

    node: str
    group: str
    version: int
    provisional: bool
    at: list[float]
    kinds: list[KindScores]
    channels: list[str]
    blame: list[list[Blamed]]


class ShownChannel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A channel's name and unit."""

    name: str
    unit: str


class ValuesReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Readings of the newest rows, and what is expected of each.

    at : When each row came, by the node's clock, Unix seconds.
    values : For each channel the reading at each row, in its unit; None is a gap.
    expected : The same shape: what all other channels of the row say.
    sd : For each channel, in its unit, by how much it is off typically; None if nothing predicts
        it.
    """

    node: str
    group: str
    channels: list[ShownChannel]
    at: list[float]
    values: list[list[float | None]]
    expected: list[list[float | None]]
    sd: list[float | None]
