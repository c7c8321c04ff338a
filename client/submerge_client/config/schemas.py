"""SchemaConfig: the meaning of a group's vectors, in the files of clients and roots.

With lags a vector is the newest row and those before it, one after the other: the order of events
is then part of what is normal.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from msgspec.structs import replace

from submerge import Channel, Identity, Scaling, Schema
from submerge.features import FeatureMap
from submerge.headings import channel_of
from submerge.schema import Center
from submerge_client.config.features import FeaturesConfig
from submerge_client.config.sections import (
    AboveZero,
    AnyText,
    Finite,
    Seconds,
    Section,
    Text,
    Whole,
    placed,
    refusal,
    shown,
)

MOST = 1 << 16
"""Most dimensions of a vector: more are a mistake in the file, not a device."""

LONGEST = float.fromhex("0x1.fffffffffffffp-1022")
"""The number with the most characters in a schema's text."""

MAP = 512
"""Bytes of a map in a schema's text, without its landmarks."""


class ChannelConfig(Section, frozen=True, kw_only=True):
    """A channel with a unit or scaling of its own.

    Attributes
    ----------
    name : str
    unit : str
    offset, scale : float, optional
        A reading counts as (reading - offset) / scale. Raising the scale gives the channel less
        weight. With fixed scaling each channel has both; with the fleet's, a channel that joins
        others need not be measured.
    """

    name: Text
    unit: AnyText = ""
    offset: Finite | None = None
    scale: AboveZero | None = None


class SchemaConfig(Section, frozen=True, kw_only=True):
    """The meaning of a vector: the same for all nodes of the group, and at the root.

    channels : "name", "name [unit]" or { name = "flow", unit = "l/min" }, in the order of the
        readings.
    lags : Rows in a vector, the newest first. Raising it shows how channels follow each other, for
        `channels x lags` dimensions in memory and in each report.
    center : What is subtracted: one mean of all nodes, each node's own, or nothing. With "own" the
        fleet shares how readings vary, and each node keeps its own mean.
    half_life_s : Seconds after which a reading counts for half; left out, it counts for ever.
        Raising it makes the model steadier, and slower to follow.
    scaling : "none"; "fixed", by each channel's offset and scale, (reading - offset) / scale;
        "fleet", by the mean and deviation that the root computes from all nodes, and nothing is
        learnt before.
    features : FeaturesConfig
    """

    channels: tuple[AnyText | ChannelConfig, ...]
    lags: Whole = 1
    center: Center = "own"
    half_life_s: Seconds | None = None
    scaling: Literal["none", "fixed", "fleet"] = "none"
    features: FeaturesConfig | None = None

    @classmethod
    def of(cls, schema: Schema, lags: int = 1) -> SchemaConfig:
        """Return the section of a schema, without its features; nameless channels get names.

        Raises BadSetting if no section has these channels.
        """
        scaling = schema.scaling
        channels = tuple(
            ChannelConfig(
                name=channel.name,
                unit=channel.unit,
                offset=None if scaling is None else scaling.offset[i],
                scale=None if scaling is None else scaling.scale[i],
            )
            for i, channel in enumerate(schema.named[: schema.width // lags])
        )
        return cls(
            channels=channels,
            lags=lags,
            center=schema.center,
            half_life_s=schema.half_life,
            scaling="none" if scaling is None else "fixed",
        )

    def __post_init__(self) -> None:
        # The schema is not built here: it may be far too large.
        if not self.channels:
            raise refusal("channels", expected="at least one", got="an empty list")
        if self.width > MOST:
            raise refusal(
                "lags",
                expected=f"channels x lags to be at most {MOST}",
                got=f"{len(self.channels)} x {self.lags}",
                hint="lower it",
            )
        for i, channel in enumerate(self.tables):
            self._check_scaling(i, channel)
        self._check_names()
        if self.features is not None:
            self.features.check_width(self.width)

    def _check_names(self) -> None:
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise refusal(
                    "channels",
                    expected='names that differ, also from "a-1" for "a" a row ago',
                    got=f"{shown(name)} twice",
                    hint="rename one",
                )
            seen.add(name)

    def _check_scaling(self, i: int, channel: ChannelConfig) -> None:
        name, numbers = shown(channel.name), (channel.offset, channel.scale)
        if self.scaling == "fixed" and None in numbers:
            raise refusal(
                "channels",
                i,
                expected='offset and scale, since scaling = "fixed"',
                got=name,
                hint=f"write {{ name = {name}, offset = 0.0, scale = 1.0 }} with its own numbers",
            )
        if self.scaling == "none" and numbers != (None, None):
            raise refusal(
                "scaling",
                expected=f'"fixed" or "fleet", since {name} has numbers for it',
                got=shown(self.scaling),
                hint="or leave offset and scale out",
            )
        if numbers.count(None) == 1:
            raise refusal(
                *("channels", i),
                expected="both offset and scale, or neither",
                got=name,
                hint="write the other one, too",
            )

    @property
    def sensed(self) -> tuple[Channel, ...]:
        """The channels that a sensor sends, before lags."""
        return tuple(Channel(channel.name, channel.unit) for channel in self.tables)

    @property
    def width(self) -> int:
        """Numbers in a vector: channels x lags."""
        return len(self.channels) * self.lags

    @property
    def dim(self) -> int:
        """Dimensions of what is learnt: a vector's numbers, or its features."""
        return self.width if self.features is None else self.features.features

    @property
    def built(self) -> Schema:
        """The schema. It reads landmarks from their file."""
        units = [channel.unit for channel in self.tables] * self.lags
        return Schema(
            tuple(map(Channel, self.names, units)),
            scaling=self._fixed_scaling,
            features=self._map,
            center=self.center,
            half_life=self.half_life_s,
        )

    @property
    def text_bytes(self) -> int:
        """The largest size of the schema's text, which goes with each join and each model.

        It includes what the fleet settles. No file is read.
        """
        if self.features is None or self.features.landmarks is None:
            schema = self.built
            if self.learns_scaling:
                scaling = Scaling((-LONGEST,) * self.width, (LONGEST,) * self.width)
                schema = dataclasses.replace(schema, scaling=scaling)
            if not schema.features.settled:
                settled = schema.features.settled_at(LONGEST)
                schema = dataclasses.replace(schema, features=settled)
            return len(schema.canonical)
        # Landmarks, those that the fleet chooses too, are base64 of float64; the rest is short.
        landmarks = -(-8 * self.features.features * self.width // 3) * 4
        return replace(self, features=None).text_bytes + MAP + landmarks

    @property
    def lengthy(self) -> str:
        """The settings that make that text long."""
        landmarks = self.features is not None and self.features.landmarks is not None
        return "schema.features.features or schema.lags" if landmarks else "schema.lags"

    @property
    def learns_scaling(self) -> bool:
        """Whether the root computes center and scale."""
        return self.scaling == "fleet"

    @property
    def given(self) -> dict[str, tuple[float, float]]:
        """Offset and scale of the channels that have them, by name in a vector."""
        tables = self.tables * self.lags
        return {
            name: (float(each.offset), float(each.scale))
            for name, each in zip(self.names, tables, strict=True)
            if each.offset is not None and each.scale is not None
        }

    @property
    def _map(self) -> FeatureMap:
        if self.features is None:
            return Identity()
        with placed("features"):
            return self.features.build_for(self.names)

    @property
    def _fixed_scaling(self) -> Scaling | None:
        if self.scaling != "fixed":
            return None
        offset, scale = (
            tuple(float(getattr(channel, name)) for channel in self.tables)
            for name in ("offset", "scale")
        )
        return Scaling(offset * self.lags, scale * self.lags)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in a vector: all channels at lag 0, then all at lag 1 as `name-1`, and so on."""
        sensed = [channel.name for channel in self.tables]
        past = (f"{name}-{lag}" for lag in range(1, self.lags) for name in sensed)
        return (*sensed, *past)

    @property
    def tables(self) -> tuple[ChannelConfig, ...]:
        """The channels before lags, each as a table."""
        return tuple(
            _table(i, channel) if isinstance(channel, str) else channel
            for i, channel in enumerate(self.channels)
        )


def _table(i: int, text: str) -> ChannelConfig:
    channel = channel_of(text)
    if not channel.name:
        raise refusal("channels", i, expected="a name", got=shown(text))
    return ChannelConfig(name=channel.name, unit=channel.unit)
