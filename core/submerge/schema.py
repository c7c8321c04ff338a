"""Schema: what a vector means. It has channels, units, scaling and a fingerprint.

The fingerprint is the hash of a canonical text that never changes; a new form gets a number.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from submerge._linalg import Array, unmasked
from submerge.errors import PeerError, ShapeError, UsageError, whole
from submerge.features import FeatureMap, Identity
from submerge.features import parse as parse_features
from submerge.features.landmarks import as_left_open

MOST_LETTERS = 40  # longest part of a map that an error quotes: landmarks have thousands of letters

Center = Literal["fleet", "own", "none"]
"""What is subtracted: one mean of all nodes, each node's own mean, or nothing."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One sensor's series: a name and the unit it is measured in."""

    name: str
    unit: str = ""

    def __post_init__(self) -> None:
        for text in (self.name, self.unit):
            if not isinstance(text, str) or text.encode(errors="replace").decode() != text:
                raise UsageError(f"a channel's name and unit must be Unicode text, got {text!r}")


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scales channels of different units alike: (x - offset) / scale.

    offset, scale : a number for each channel; scales are positive
    """

    offset: tuple[float, ...]
    scale: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.offset) != len(self.scale):
            raise UsageError(
                f"scaling needs as many offsets as scales, got {len(self.offset)}"
                f" and {len(self.scale)}"
            )
        if not all(np.isfinite(self.offset)) or not all(0 < s < np.inf for s in self.scale):
            raise UsageError("scaling needs finite offsets and positive, finite scales")


@dataclass(frozen=True)
class Schema:
    """Channels, scaling and features, in order.

    Parameters
    ----------
    channels : tuple of Channel, or int
        An int means that many channels without names.
    scaling : Scaling, optional
        Without it, readings are learnt in their own units.
    features : FeatureMap
    center : {"fleet", "own", "none"}
        What is subtracted before variation is measured.
    half_life : float, optional
        Seconds after which a reading counts half. Without it, readings never fade.
    clip : float, optional
        Length at which a scaled row is cut off before it is learnt, where models carry noise; such
        a group sends sums of rows (`pca.row_sums`).
    """

    channels: tuple[Channel, ...] | int
    scaling: Scaling | None = None
    features: FeatureMap = field(default_factory=Identity)
    center: Center = "fleet"
    half_life: float | None = None
    clip: float | None = None

    def __post_init__(self) -> None:
        names: tuple[str, ...] = ()
        if isinstance(self.channels, tuple):
            names = self.names
        else:
            object.__setattr__(self, "channels", whole("channels", self.channels, least=1))
        twice = sorted(name for name, n in Counter(names).items() if n > 1)
        if twice:
            raise UsageError(f"channel names must differ, got {twice[0]!r} more than once")
        if self.width < 1:
            raise UsageError("a schema needs at least one channel, got none")
        self.features.dim(self.width)  # some maps allow certain numbers of channels only
        if self.scaling is not None and len(self.scaling.scale) != self.width:
            raise UsageError(
                f"scaling must cover {self.width} channels, got {len(self.scaling.scale)}"
            )
        if self.center not in get_args(Center):
            raise UsageError(f'center must be "fleet", "own" or "none", got {self.center!r}')
        if self.half_life is not None and not 0 < self.half_life < np.inf:
            raise UsageError(f"half_life must be a positive time in seconds, got {self.half_life}")
        if self.clip is not None:
            if not 0 < self.clip < np.inf:
                raise UsageError(f"clip must be a positive length, got {self.clip}")
            if not (self.linear and self.center == "fleet" and self.half_life is None):
                raise UsageError(
                    "clip is for rows that do not fade, without a kernel, about one mean"
                )

    @classmethod
    def anonymous(cls, dim: int, *, center: Center = "fleet") -> Schema:
        """Return the schema of `dim` nameless channels; it depends on nothing else."""
        return cls(dim, center=center)

    @classmethod
    def parse(cls, canonical: bytes) -> Schema:
        """Return the schema that a canonical text describes."""
        try:
            content = json.loads(canonical)
            if content.pop("form") != 1:
                raise ValueError("an unknown form")
            features = parse_features(content.pop("features"))
            channels, scaling, half_life = (
                content.pop(key) for key in ("channels", "scaling", "half_life")
            )
            clip = content.pop("clip", None)
            schema = cls(
                channels if type(channels) is int else tuple(Channel(*c) for c in channels),
                scaling=scaling
                and Scaling(
                    *(tuple(map(float.fromhex, scaling[key])) for key in ("offset", "scale"))
                ),
                features=features,
                half_life=None if half_life is None else float.fromhex(half_life),
                clip=None if clip is None else float.fromhex(clip),
                **content,
            )
        except (
            PeerError,  # another feature map
            *(ValueError, KeyError, TypeError, AttributeError),  # JSON of another shape
            *(OverflowError, RecursionError),  # absurd numbers and nesting
        ) as error:
            raise PeerError(
                f"expected a schema's canonical text: {error}", kind="schema"
            ) from error
        if schema.canonical != canonical:
            raise PeerError(
                "expected a schema's canonical text, got another spelling of it", kind="schema"
            )
        return schema

    @property
    def width(self) -> int:
        """Number of channels."""
        return self.channels if isinstance(self.channels, int) else len(self.channels)

    @property
    def dim(self) -> int:
        """Number of features: the length of the vectors that are learnt."""
        return self.features.dim(self.width)

    @property
    def names(self) -> tuple[str, ...]:
        """The channels' names; `x0, x1, ...` where they have none."""
        if isinstance(self.channels, int):
            return tuple(f"x{i}" for i in range(self.channels))
        return tuple(channel.name for channel in self.channels)

    @property
    def named(self) -> tuple[Channel, ...]:
        """The channels; nameless ones get their default names."""
        if isinstance(self.channels, int):
            return tuple(Channel(name) for name in self.names)
        return self.channels

    @cached_property
    def canonical(self) -> bytes:
        """The text that is hashed: UTF-8 JSON with sorted keys and floats as `float.hex()`."""
        channels: object = self.channels
        if not isinstance(self.channels, int):
            channels = [[channel.name, channel.unit] for channel in self.channels]
        scaling = self.scaling and {
            # + 0.0: a negative zero is the same offset.
            "offset": [(float(x) + 0.0).hex() for x in self.scaling.offset],
            "scale": [float(x).hex() for x in self.scaling.scale],
        }
        content = {
            "form": 1,
            "channels": channels,
            "scaling": scaling,
            "features": self.features.spec(),
            "center": self.center,
            "half_life": None if self.half_life is None else float(self.half_life).hex(),
        }
        if self.clip is not None:  # texts without it are as ever
            content["clip"] = float(self.clip).hex()
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical text, in hex. Summaries with different ones never merge."""
        return hashlib.sha256(self.canonical).hexdigest()

    @cached_property
    def family(self) -> str:
        """The same for all schemas of which rows of one can be read as rows of another, in hex.

        Their channels have names, and variation is measured from means that are known: channels
        may come and go, and scale in another way. Any other schema is alone in its family: a kernel
        mixes channels, and can drop none of them.
        """
        alone = not self.linear or self.center == "none" or self.clip is not None
        if isinstance(self.channels, int) or alone:
            return self.fingerprint
        half_life = "" if self.half_life is None else float(self.half_life).hex()
        return hashlib.sha256(f"linear {self.center} {half_life}".encode()).hexdigest()

    @property
    def linear(self) -> bool:
        """Whether the scaled readings themselves are learnt."""
        return isinstance(self.features, Identity)

    def is_like(self, other: Schema) -> bool:
        """Return whether they differ at most in what `other` leaves open."""
        scaling = None if other.scaling is None else self.scaling
        clip = None if other.clip is None else self.clip
        features = as_left_open(self.features, other.features)
        return replace(self, scaling=scaling, features=features, clip=clip) == other

    def scaled(self, readings: Array) -> Array:
        """Return readings (n, channels), given in their units, scaled: (n, channels)."""
        X = np.asarray(unmasked(readings), dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.width:
            raise ShapeError("readings", expected=f"(n, {self.width})", got=X.shape)
        if self.scaling is None:
            return X
        offset, scale = self._scaling
        with np.errstate(over="ignore"):  # who takes rows bounds them, and infinity is over bounds
            X = np.subtract(X, offset)
            return np.divide(X, scale, out=X)

    @cached_property
    def _scaling(self) -> tuple[Array, Array]:
        """The offsets and scales as arrays: a client reads row by row."""
        if self.scaling is None:
            return np.zeros(self.width), np.ones(self.width)
        return np.array(self.scaling.offset), np.array(self.scaling.scale)

    def lift(self, readings: Array) -> Array:
        """Scale readings (n, channels) in their units and map them to (n, dim)."""
        return self.features.lift(self.scaled(readings))


def differences(ours: Schema, theirs: Schema) -> tuple[str, ...]:
    """Return a line for each difference that keeps two nodes from sharing a model."""
    # Scaling and gamma may be left out of `theirs`: such a node takes the fleet's.
    nameless = isinstance(ours.channels, int) or isinstance(theirs.channels, int)
    if nameless and ours.width != theirs.width:
        # Default names are no help, and there may be a million of them.
        return (f"channels: expected {ours.width}, got {theirs.width}",)
    ours_by_name, theirs_by_name = (
        {channel.name: channel.unit for channel in schema.named} for schema in (ours, theirs)
    )
    lines = [f"missing channel: {name}" for name in ours_by_name if name not in theirs_by_name]
    lines += [f"extra channel: {name}" for name in theirs_by_name if name not in ours_by_name]
    lines += [
        f"unit of {name}: expected {unit!r}, got {theirs_by_name[name]!r}"
        for name, unit in ours_by_name.items()
        if theirs_by_name.get(name, unit) != unit
    ]
    if not lines and ours.names != theirs.names:
        lines.append(f"order: expected {', '.join(ours.names)}, got {', '.join(theirs.names)}")
    lines += _differences_in_features(ours.features, theirs.features)
    for what in ("center", "half_life"):
        expected, got = getattr(ours, what), getattr(theirs, what)
        if expected != got:
            lines.append(f"{what}: expected {expected}, got {got}")
    if theirs.scaling not in (None, ours.scaling):
        lines.append("scaling: expected the fleet's, got another; leave it out to take the fleet's")
    return tuple(lines)


def _differences_in_features(ours: FeatureMap, theirs: FeatureMap) -> list[str]:
    ours = as_left_open(ours, theirs)
    expected, got = ours.spec(), theirs.spec()
    kernels = [spec.get("kernel", "none") for spec in (expected, got)]
    if "none" in kernels and kernels[0] != kernels[1]:
        return [f"kernel: expected {kernels[0]}, got {kernels[1]}; [schema.features] says which"]
    if expected.get("kind") != got.get("kind"):
        return [f"map: expected {expected.get('kind')}, got {got.get('kind')}"]
    lines = []
    for name in sorted({*expected, *got}):
        if expected.get(name) == got.get(name):
            continue
        if name == "gamma" and not ours.settled:
            found = _plain(got[name])
            lines.append(f"gamma: expected the fleet's, got {found}; leave it out to take it")
        else:
            lines.append(
                f"{name}: expected {_plain(expected.get(name))}, got {_plain(got.get(name))}"
            )
    return lines


def _plain(value: object) -> str:
    """Return a part of a map's spec for people: plain floats, and long texts by their hash."""
    if isinstance(value, str) and value.startswith("0x"):
        return f"{float.fromhex(value):.9g}"
    if isinstance(value, str) and len(value) > MOST_LETTERS:
        return f"{hashlib.sha256(value.encode()).hexdigest()[:12]} of {len(value)} letters"
    return f"{value}"
