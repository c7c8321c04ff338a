"""WatchedBlocks: the maxima of blocks of rows, however many rows come at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.client.alarms.blocks import InAlarm, KeptBlocks, WatchedBlocks
from submerge.client.alarms.limits import AlarmLimits
from submerge.protocol.settings import AlarmSettings
from support.strategies import cuts

KINDS, ROWS, BLOCK_S = ("distance", "channel"), 130, 16.0
SETTINGS = AlarmSettings(period_s=1.0)
LIMITS = {"promised": AlarmLimits({"distance": 3.0}), "none": AlarmLimits()}


def watched(
    statistics: np.ndarray,
    alarmed: np.ndarray,
    parts: list[slice],
    limits: AlarmLimits,
    *,
    young: bool = False,
) -> tuple:
    """Return what is known after rows that came in those parts."""
    blocks = WatchedBlocks.of(KeptBlocks(block_s=BLOCK_S))
    for part in parts:
        rows = alarmed[part]
        was_open = part.start > 0 and bool(alarmed[part.start - 1])
        alarm = InAlarm.of(rows, was_open=was_open, believed=False)
        n, known = len(rows), None if young else statistics[:, part]
        blocks = blocks.after(
            KINDS, known, n, float(n), limits, SETTINGS, young=young, scores=None, alarm=alarm
        )
    kept = blocks.kept
    return kept.windows, kept.blocks, kept.watched_s, kept.allowed, blocks.highest, blocks.row


@pytest.mark.parametrize("limits", LIMITS)
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), cuts(ROWS))
def test_blocks_count_alike_however_rows_come(limits, seed, faulty, young, parts):
    """Many blocks at once as row by row: the same maxima, and the same time to the last bit."""
    rng = np.random.default_rng(seed)
    statistics = rng.exponential(size=(2, ROWS))
    # Of some rows nothing is known, and of the first ones.
    statistics[:, :4] = -1.0
    statistics[:, rng.random(ROWS) < 0.1] = -1.0
    statistics[1, 30:60] = -1.0
    alarmed = np.zeros(ROWS, dtype=bool)
    if faulty:
        alarmed[70:90] = True
    each = [slice(i, i + 1) for i in range(ROWS)]
    one_by_one = watched(statistics, alarmed, each, LIMITS[limits], young=young)

    for each in (parts, [slice(0, 3), slice(3, ROWS)], [slice(0, ROWS)]):
        assert one_by_one == watched(statistics, alarmed, each, LIMITS[limits], young=young)
    # Blocks of an alarm wait for its end.
    assert ROWS // int(BLOCK_S) - 4 <= one_by_one[1] <= ROWS // int(BLOCK_S)
