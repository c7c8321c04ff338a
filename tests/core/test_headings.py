"""Headings of columns are channels, with units or without."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import Channel
from submerge.headings import called, channel_of, channels_of, heading_of, place_of

headings = st.lists(
    st.text("ab [].-", min_size=1, max_size=6).map(str.strip).filter(bool), max_size=6, unique=True
)


@pytest.mark.parametrize(
    ("heading", "channel"),
    [
        ("temp [degC]", Channel("temp", "degC")),
        ("flow rate [l/min]", Channel("flow rate", "l/min")),
        (" temp ", Channel("temp")),
        ("a[0]", Channel("a[0]")),
        ("[degC]", Channel("[degC]")),
        ("a [b] [c]", Channel("a [b]", "c")),
        ("temp []", Channel("temp")),
    ],
)
def test_a_unit_stands_in_brackets_after_a_blank(heading: str, channel: Channel):
    assert channel == channel_of(heading)


@given(headings)
@example(["temp [degC]", "temp [degF]"])
@example(["temp", "temp [degC]", "flow [l/min]"])
@example(["a [b] []", "a [b]", "a []"])
def test_each_column_is_one_channel_that_finds_it_again(headings: list[str]):
    """Names differ as headings do, so that a model takes the file that it was learnt from."""
    channels = channels_of(headings)

    assert len(headings) == len({channel.name for channel in channels})
    assert [channel.name for channel in channels] == called(channels, headings)


def test_a_channel_without_its_unit_is_found_and_in_another_unit_is_not():
    known = Channel("temp", "degC")

    assert 1 == place_of(known, ["flow", "temp"])
    assert 1 == place_of(known, ["flow", "temp [degC]"])
    assert 1 == place_of(Channel("temp"), ["flow", "temp [degC]"])
    assert place_of(known, ["flow", "temp [degF]"]) is None
    assert place_of(Channel("temp"), ["temp [degC]", "temp [degF]"]) is None
    assert "temp [degC]" == heading_of(known)
