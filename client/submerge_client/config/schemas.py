"""SchemaConfig: the meaning of a group's vectors, in the files of clients and roots."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import numpy as np
from msgspec.structs import replace

from submerge import Array, Channel, Identity, Scaling, Schema, UsageError
from submerge.features import (
    CountSketch,
    FeatureMap,
    Kernel,
    Landmarks,
    OpenLandmarks,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from submerge.features.checks import MOST_FEATURES
from submerge.features.kernels import kernel_called
from submerge.features.weights import Kind
from submerge.headings import channel_of
from submerge.schema import Center
from submerge_client.config.sections import (
    AboveZero,
    AnyText,
    BadSetting,
    Finite,
    NotBelowZero,
    Seconds,
    Section,
    Spare,
    Text,
    Whole,
    nearest,
    placed,
    refusal,
    shown,
)

FOURIER = ("orthogonal", "fourier-pair", "fourier-cos", "quasi", "countsketch", "nystrom")
MAPS = {
    "gaussian": FOURIER,
    "laplace": FOURIER,
    "matern": FOURIER,
    "polynomial": ("tensorsketch", "nystrom"),
}
"""The maps for each kernel, the default first."""

ONLY_FOR = {
    "degree": ("kernel", "polynomial"),
    "coef0": ("kernel", "polynomial"),
    "nu": ("kernel", "matern"),
    "landmarks": ("map", "nystrom"),
    "buckets": ("map", "countsketch"),
}
"""Settings that need a value of another one."""


FLEET = "fleet"
"""The word for landmarks that the fleet chooses: a table has another name, such as fleet.csv."""


class FeaturesConfig(Section, frozen=True, kw_only=True):
    """A kernel: what is normal may then be curved, a ring or a bent sheet; without one it is flat.

    Features of each vector are learnt beside the vector itself, for 4 bytes x features for each of
    their directions in every report.

    kernel : "gaussian"; less smooth "laplace" and "matern"; "polynomial", products of `degree`
        readings.
    gamma : The kernel's width, for scaled readings. Raising it separates near readings, and loses
        what distant ones have in common. "auto" lets the root compute it from all nodes.
    map : How features are made: "orthogonal", "fourier-pair", "fourier-cos", "quasi" (at most 8
        dimensions), "countsketch" (very wide, mostly zeros), "tensorsketch" (polynomial), "nystrom"
        (from landmarks). Left out, "orthogonal", or "tensorsketch" for a polynomial.
    features : Raising it comes closer to the kernel, for memory, time and bytes in proportion. With
        landmarks, their number.
    seed : Another seed gives other features of the same kernel.
    nu : Smoothness of a Matern kernel, 1.5 or 2.5.
    degree : For a polynomial kernel; left out, 2.
    coef0 : For a polynomial kernel; left out, 0.
    landmarks : "fleet": the fleet chooses them among its readings, once there are enough, as it
        settles a scaling. Clients need share_points for it, and choose among their job_rows. Or a
        table of typical vectors, scaled as in the schema: a column for each channel, "flow", and
        for each of its lags, "flow-1", by name; without a header, in the schema's order. Either way
        they become part of the schema, and every node of the group has them: use no reading that
        must stay on its device.
    buckets : Dimensions to which "countsketch" folds a vector; left out, 4096.
    """

    kernel: Literal["gaussian", "laplace", "matern", "polynomial"] = "gaussian"
    gamma: float | Literal["auto"] = "auto"
    map: (
        Literal[
            "orthogonal",
            "fourier-pair",
            "fourier-cos",
            "quasi",
            "countsketch",
            "tensorsketch",
            "nystrom",
        ]
        | None
    ) = None
    features: Whole = 512
    seed: Spare = 0
    nu: float | None = None
    degree: Whole | None = None
    coef0: NotBelowZero | None = None
    landmarks: Path | None = None
    buckets: Whole | None = None

    def __post_init__(self) -> None:
        if self.gamma != "auto" and not 0 < self.gamma < math.inf:
            raise refusal("gamma", expected='a number above 0, or "auto"', got=shown(self.gamma))
        settings = {"kernel": self.kernel, "map": self._map}
        for name, (other, value) in ONLY_FOR.items():
            if getattr(self, name) is not None and settings[other] != value:
                raise refusal(
                    name,
                    expected=f"nothing, since it is for {other} = {shown(value)}",
                    got=shown(getattr(self, name)),
                    hint="leave it out",
                )
        if self.features > MOST_FEATURES:
            raise refusal("features", expected=f"at most {MOST_FEATURES}", got=str(self.features))
        if self._map == "nystrom" and self.landmarks is None:
            raise refusal(
                "landmarks", expected='"fleet" or a table, since map = "nystrom"', got="nothing"
            )
        if self._map not in MAPS[self.kernel]:
            raise refusal(
                "map",
                expected=f"one for {self.kernel}: {', '.join(MAPS[self.kernel])}",
                got=shown(self.map),
            )
        _ = self._kernel if self.landmarks and not self.of_fleet else self.built

    def check_width(self, width: int) -> None:
        """Refuse a map that does not take vectors of `width` dimensions."""
        if self._map == "quasi":
            try:
                self.built.dim(width)
            except UsageError as error:
                raise BadSetting(("features", "map"), str(error)) from error

    @property
    def built(self) -> FeatureMap:
        """The map, unless its landmarks are in a file."""
        kernel = self._kernel
        if self.of_fleet:
            return OpenLandmarks(kernel, self.features)
        if isinstance(kernel, Polynomial):
            return TensorSketch(kernel, self.features, self.seed)
        if self._map == "countsketch":
            return CountSketch(kernel, self.features, self.buckets or 4096, self.seed)
        return RandomFourier(kernel, self.features, cast(Kind, self._map), self.seed)

    def build_for(self, names: Sequence[str]) -> FeatureMap:
        """Return the map for channels of these names, lags included; landmarks are read."""
        if self.landmarks is None or self.of_fleet:
            return self.built
        points = _landmarks(self.landmarks, names)
        if len(points) != self.features:
            raise refusal(
                "features",
                expected=f"{len(points)}, as many as there are landmarks in {self.landmarks}",
                got=str(self.features),
            )
        try:
            return Landmarks(self._kernel, points)
        except UsageError as error:
            raise BadSetting(("landmarks",), f"{self.landmarks}: {error}") from error

    @property
    def of_fleet(self) -> bool:
        """Whether the fleet chooses the landmarks."""
        return self.landmarks == Path(FLEET)

    @property
    def _map(self) -> str:
        return self.map or MAPS[self.kernel][0]

    @property
    def _kernel(self) -> Kernel:
        gamma = None if self.gamma == "auto" else float(self.gamma)
        nu = 1.5 if self.nu is None else self.nu
        degree, coef0 = self.degree or 2, self.coef0 or 0.0
        return kernel_called(self.kernel, gamma, nu=nu, degree=degree, coef0=coef0)


def _landmarks(path: Path, names: Sequence[str]) -> Array:
    """Read landmarks (m, channels), their columns in the channels' order."""
    from submerge_client.datasets import Flow  # late: only landmarks are in a table

    if not path.exists():
        expected, hint = f'"{FLEET}" or a table', "check the path"
        raise refusal("landmarks", expected=expected, got=f"no file {path}", hint=hint)
    flow = Flow.of(path)
    used = list(range(len(flow.names)))
    if flow.named:
        used = [_place(path, name, flow.names) for name in names]
    elif len(used) != len(names):
        raise refusal(
            "landmarks",
            expected=f"{len(names)} columns in {path}, channels x lags",
            got=str(len(used)),
            hint="or give it a header with their names",
        )
    points = np.concatenate(list(flow.blocks(used)) or [np.empty((0, len(used)))])
    gaps = np.argwhere(np.isnan(points))
    if len(gaps):
        row, column = (int(i) for i in gaps[0])
        raise refusal(
            "landmarks",
            expected=f"a number for each channel in all rows of {path}",
            got=f"a gap in row {row + 1}, {names[column]}",
            hint="complete the row, or leave it out",
        )
    return points


def _place(path: Path, name: str, columns: Sequence[str]) -> int:
    if name in columns:
        return columns.index(name)
    near = nearest(name, columns)
    raise refusal(
        "landmarks",
        expected=f"a column {shown(name)} in {path}, for the channel of that name",
        got="no such column",
        hint=f"did you mean {shown(near)}?" if near else "name its columns as the channels",
    )


MOST = 1 << 16  # most dimensions of a vector: more are a mistake in the file, not a device

LONGEST = float.fromhex("0x1.fffffffffffffp-1022")
"""The number with the most characters in a schema's text."""

MAP = 512  # bytes of a map in a schema's text, without its landmarks


STEPS = (
    {"°C": 0.5, "K": 0.5, "°F": 1.0, "%": 3.0, "lx": 50.0, "dB": 3.0, "dBm": 3.0, "ppm": 50.0}
    | {"W": 20.0, "kW": 0.02, "VA": 20.0, "var": 20.0, "V": 1.0, "mV": 50.0, "A": 0.1, "mA": 100.0}
    | {"Pa": 100.0, "hPa": 1.0, "mbar": 1.0, "kPa": 0.1, "bar": 0.1, "µg/m³": 5.0, "ppb": 20.0}
)
"""Steps that a person would notice, by unit."""

UNITS = (
    dict.fromkeys(("temperature", "local_temperature", "temp", "tc", "dewpoint"), "°C")
    | dict.fromkeys(("humidity", "rh", "moisture", "soil_moisture", "brightness"), "%")
    | dict.fromkeys(("illuminance", "illuminance_lux", "lux"), "lx")
    | {"power": "W", "apower": "W", "voltage": "V", "current": "A", "co2": "ppm"}
)
"""Units of channels without one, by the last part of their names."""


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

    @property
    def step(self) -> float | None:
        """What a person would notice in its unit; None where it is not known."""
        last = re.split(r"[/.]", self.name)[-1].lower()
        return STEPS.get(self.unit or UNITS.get(last, ""))


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
        learnt before; "units", by what a person would notice in the channel's unit ("°C", "%",
        "W"), or, without one, in what its name says, and like "fleet" where neither is known.
    features : FeaturesConfig
    """

    channels: tuple[AnyText | ChannelConfig, ...]
    lags: Whole = 1
    center: Center = "own"
    half_life_s: Seconds | None = None
    scaling: Literal["none", "fixed", "fleet", "units"] = "none"
    features: FeaturesConfig | None = None

    @classmethod
    def of(cls, schema: Schema, lags: int = 1) -> SchemaConfig:
        """Return the section of a schema, without its features; BadSetting if no section has it."""
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
                expected=f'"fixed", "fleet" or "units", since {name} has numbers for it',
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
        """The largest size of the schema's text, settled by the fleet; no file is read."""
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
        return self.scaling in ("fleet", "units")

    @property
    def given(self) -> dict[str, tuple[float, float]]:
        """Offset and scale of the channels that have them, by name in a vector."""
        found = dict[str, tuple[float, float]]()
        for name, each in zip(self.names, self.tables * self.lags, strict=True):
            step = each.step if self.scaling == "units" else None
            if each.offset is not None and each.scale is not None:
                found[name] = float(each.offset), float(each.scale)
            elif step is not None:
                found[name] = 0.0, step
        return found

    @property
    def offsets(self) -> tuple[float, ...]:
        """What stands for each channel until it has a value; NaN where it has to be measured."""
        given = self.given if self.scaling == "units" else {}
        return tuple(given.get(name, (math.nan,))[0] for name in self.names if given)

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
