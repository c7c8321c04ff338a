"""parse() builds a map with exactly that spec from any text, of bounded size, or a `PeerError`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from submerge.errors import PeerError
from submerge.features.count_sketch import CountSketch
from submerge.features.feature_map import FeatureMap, Identity
from submerge.features.fourier import RandomFourier
from submerge.features.kernels import Kernel, kernel_called
from submerge.features.landmarks import OPEN_KIND, Landmarks, OpenLandmarks, unpacked
from submerge.features.sketch import Sketched
from submerge.features.tensor_sketch import TensorSketch
from submerge.features.weights import Kind

LONGEST = 120  # characters of a foreign text that an error line repeats


def plain(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec for people and programs, with rounded numbers in place of hex text."""
    found = dict(spec)
    for name, value in spec.items():
        if isinstance(value, Mapping):
            found[name] = plain(value)
        elif isinstance(value, str) and value.startswith("0x"):
            found[name] = float.fromhex(value)
    return found


def parse(spec: Mapping[str, Any]) -> FeatureMap:
    """Return the map that a spec describes: `parse(m.spec()) == m`; PeerError if it is of none."""
    try:
        if not isinstance(spec, Mapping):
            raise TypeError("it is not a mapping")
        given = dict(spec)
        if given["kind"] not in _MAPS:
            raise ValueError(f"no map is of kind {given['kind']!r}")
        map_ = _MAPS[given["kind"]](given)
        # Texts are compared: True and 1.0 are not 1, and a float is written in one way only.
        if _text(map_.spec()) != _text(given):
            raise ValueError("it would be written otherwise")
    except (
        *(ValueError, KeyError, TypeError, AttributeError),  # another shape
        *(OverflowError, RecursionError, MemoryError),  # absurd sizes
    ) as error:
        raise PeerError(f"expected a feature map's spec: {_short(error)}") from error
    return map_


def _landmarks(spec: dict[str, Any]) -> FeatureMap:
    channels = spec["channels"]
    if type(channels) is not int or channels < 1:
        raise ValueError("channels must be a whole number of at least 1")
    return Landmarks(_kernel(spec), unpacked(spec["points"], channels))


def _sketched(spec: dict[str, Any]) -> FeatureMap:
    inner = dict(spec["of"])
    if inner["kind"] in ("sketched", OPEN_KIND):
        raise ValueError(f"a sketch of {inner['kind']}")
    return Sketched(_MAPS[inner["kind"]](inner), spec["features"], spec["sketch"], spec["seed"])


def _kernel(spec: dict[str, Any]) -> Kernel:
    gamma = None if spec["gamma"] is None else float.fromhex(spec["gamma"])
    own = {name: float.fromhex(spec[name]) for name in ("nu", "coef0") if name in spec}
    return kernel_called(spec["kernel"], gamma, degree=spec.get("degree", 2), **own)


def _text(spec: dict[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True, allow_nan=False)


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):
        text = f"{text} is missing"
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


_MAPS: dict[str, Callable[[dict[str, Any]], FeatureMap]] = {
    "identity": lambda _: Identity(),
    "tensorsketch": lambda s: TensorSketch(_kernel(s), s["features"], s["seed"]),
    "countsketch": lambda s: CountSketch(_kernel(s), s["features"], s["buckets"], s["seed"]),
    "nystrom": _landmarks,
    OPEN_KIND: lambda s: OpenLandmarks(_kernel(s), s["landmarks"]),
    "sketched": _sketched,
    **dict.fromkeys(
        get_args(Kind), lambda s: RandomFourier(_kernel(s), s["features"], s["kind"], s["seed"])
    ),
}
