"""Silences: how long each channel is usually silent, and so how long its newest value is held.

Devices on batteries speak once in minutes, or when something changes. A value is held for three
times the longest silence that is usual for its channel; after that the device is away, and the
channel is a gap.

1. Before its second reading, a value is held for `FIRST_S`.
2. After it, for `TIMES` times the longest silence, and at least for `LEAST_ROWS` rows; at most for
   `MOST_S`.
3. A silence after which the channel was a gap counts as long as the value was held. So one day in a
   drawer is no habit, and a habit of silence is learnt in a few times.
4. A silence counts less as it gets old: half in `HALF_LIFE_S`.

A client may see the same rows from a channel that is stuck; so the grid says which values are
held.
"""

from __future__ import annotations

import numpy as np

from submerge import Array

FIRST_S = 3600.0
TIMES = 3.0
LEAST_ROWS = 30
MOST_S = 25 * 3600.0
"""A battery sensor counts as away after that in Zigbee2MQTT, too."""

HALF_LIFE_S = 7 * 86400.0


class Silences:
    """The usual silences of some channels.

    period_s : Seconds between rows.

    ages_s : (channels,). How old a value may be that is held.
    longest_s : (channels,). The longest usual silences; 0 where none is known.
    """

    def __init__(self, channels: int, period_s: float) -> None:
        self._least_s = LEAST_ROWS * period_s
        self.longest_s: Array = np.zeros(channels)
        self.ages_s: Array = np.full(channels, max(FIRST_S, self._least_s))

    def end(self, channel: int, seconds: float) -> None:
        """Take a silence of a channel that has just ended."""
        faded = self.longest_s[channel] * 2.0 ** -(seconds / HALF_LIFE_S)
        self.recall(channel, max(min(seconds, self.ages_s[channel]), faded))

    def recall(self, channel: int, longest_s: float) -> None:
        """Take the longest usual silence of a channel, as it was known."""
        self.longest_s[channel] = longest_s
        self.ages_s[channel] = max(min(TIMES * longest_s, MOST_S), self._least_s)
