"""From a spec back to its map: strict, for the text may be anyone's.

Whatever the text, either a map comes out whose spec it is, to the letter, or a `PeerError`.
Sizes are bounded before anything is made of them: see `checks` and each map.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from submerge.errors import PeerError
from submerge.features.count_sketch import CountSketch
from submerge.features.feature_map import FeatureMap, Identity
from submerge.features.fourier import RandomFourier
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern, Polynomial
from submerge.features.landmarks import Landmarks, unpacked
from submerge.features.tensor_sketch import TensorSketch
from submerge.features.weights import Kind

LONGEST = 120
"""Characters of a foreign text that are worth repeating."""


def plain(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec for people and their programs: numbers as numbers, near enough."""
    return {
        name: float.fromhex(value) if isinstance(value, str) and value.startswith("0x") else value
        for name, value in spec.items()
    }


def parse(spec: Mapping[str, Any]) -> FeatureMap:
    """Return the map that a spec describes: `parse(m.spec()) == m`.

    Raises
    ------
    PeerError
        If it is not the spec of any map, to the letter.
    """
    try:
        if not isinstance(spec, Mapping):
            raise TypeError("it is no mapping")
        given = dict(spec)
        if given["kind"] not in _MAPS:
            raise ValueError(f"no map is of kind {given['kind']!r}")
        map_ = _MAPS[given["kind"]](given)
        # Equal texts: True is no 1 and 1.0 is no 1, and a float has one way to be written.
        if _text(map_.spec()) != _text(given):
            raise ValueError("it would be written otherwise")
    except (
        *(ValueError, KeyError, TypeError, AttributeError),  # of another shape
        *(OverflowError, RecursionError, MemoryError),  # of a size that no one means
    ) as error:
        raise PeerError(f"expected a feature map's spec: {_short(error)}") from error
    return map_


def _fourier(spec: dict[str, Any]) -> FeatureMap:
    return RandomFourier(_kernel(spec), spec["features"], spec["kind"], spec["seed"])


def _tensor_sketch(spec: dict[str, Any]) -> FeatureMap:
    return TensorSketch(_kernel(spec), spec["features"], spec["seed"])


def _count_sketch(spec: dict[str, Any]) -> FeatureMap:
    return CountSketch(_kernel(spec), spec["features"], spec["buckets"], spec["seed"])


def _landmarks(spec: dict[str, Any]) -> FeatureMap:
    channels = spec["channels"]
    if type(channels) is not int or channels < 1:
        raise ValueError("channels must be a whole number of at least 1")
    return Landmarks(_kernel(spec), unpacked(spec["points"], channels))


def _kernel(spec: dict[str, Any]) -> Kernel:
    gamma = None if spec["gamma"] is None else float.fromhex(spec["gamma"])
    name = spec["kernel"]
    if name == "gaussian":
        return Gaussian(gamma)
    if name == "laplace":
        return Laplace(gamma)
    if name == "matern":
        return Matern(gamma, float.fromhex(spec["nu"]))
    if name == "polynomial":
        return Polynomial(spec["degree"], gamma, float.fromhex(spec["coef0"]))
    raise ValueError(f"no kernel is called {name!r}")


def _text(spec: dict[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True, allow_nan=False)


def _short(error: Exception) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):
        said = f"{said} is missing"
    return said if len(said) <= LONGEST else said[:LONGEST] + "..."


_MAPS: dict[str, Callable[[dict[str, Any]], FeatureMap]] = {
    "identity": lambda _: Identity(),
    "tensorsketch": _tensor_sketch,
    "countsketch": _count_sketch,
    "nystrom": _landmarks,
    **dict.fromkeys(get_args(Kind), _fourier),
}
