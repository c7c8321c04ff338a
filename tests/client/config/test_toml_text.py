"""Settings as text are read as the same settings, whatever names and numbers there are."""

from __future__ import annotations

import sys
import tomllib

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.tomlfile import quoted, schema_lines

texts = st.text(st.characters(exclude_categories=["Cs"]))
channels = st.builds(
    ChannelConfig,
    name=texts.filter(bool),
    unit=texts,
    offset=st.floats(-sys.float_info.max, sys.float_info.max),
    scale=st.floats(sys.float_info.min, sys.float_info.max),
)


@given(texts)
@example('a "b" \\ # = [c]\x7f\n\t\r\x00\U0001f321')
def test_any_text_is_read_as_it_was(text: str):
    """In one line, which a comment may hold, too."""
    written = quoted(text)

    assert text == tomllib.loads(f"# {written}\nvalue = {written}")["value"]


@given(
    st.lists(channels, min_size=1, max_size=5, unique_by=lambda each: each.name),
    st.sampled_from(["fleet", "own", "none"]),
    st.none() | st.floats(1e-9, 1e9),
)
def test_a_schema_is_read_as_it_was(tables, center, half_life_s):
    """To the last bit: another digit would be another fingerprint."""
    config = SchemaConfig(
        channels=tuple(tables), center=center, half_life_s=half_life_s, scaling="fixed"
    )
    read = msgspec.convert(tomllib.loads(schema_lines(config)), SchemaConfig)

    assert config == read
    assert config.built.fingerprint == read.built.fingerprint


def test_channels_without_numbers_and_lags():
    """A name that looks as if it had a unit keeps it."""
    config = SchemaConfig(
        channels=(ChannelConfig(name="temp [degC]"), ChannelConfig(name="flow", unit="l/min")),
        lags=3,
    )
    read = msgspec.convert(tomllib.loads(schema_lines(config)), SchemaConfig)

    assert config == read
