"""--kernel and its options, the same for every command that takes a kernel. A command adds them
with `@kernel_options(features=...)`, takes them out of its arguments with `taken`, and makes a map
of them with `feature_map`. Impossible choices are refused in the options' own names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import click

from submerge import UsageError
from submerge.features import FeatureMap
from submerge.features.checks import MOST_FEATURES
from submerge.features.kernels import MOST_DEGREE
from submerge_client.config.schemas import FeaturesConfig
from submerge_files.console.options import Decorator, together
from submerge_files.console.units import plain

NAMES = ("kernel", "features", "gamma", "map", "map_seed", "degree", "coef0", "nu")

MAPS = ("orthogonal", "fourier-pair", "fourier-cos", "quasi", "countsketch", "tensorsketch")
"""Maps that need numbers only; landmarks need a configuration file."""

NEEDED = {"degree": "polynomial", "coef0": "polynomial", "nu": "matern"}
"""Options that have an effect with one kernel only."""


def positive_or_auto(text: str) -> float | Literal["auto"]:
    """Return a gamma: a number above 0, or "auto"."""
    if text == "auto":
        return "auto"
    try:
        gamma = float(text)
    except ValueError:
        gamma = math.nan
    if not 0 < gamma < math.inf:
        raise click.BadParameter(f"expected a number above 0, or auto, got {text!r}")
    return gamma


def kernel_options(*, features: int) -> Decorator:
    """Return what adds the options to a command; `features`: the default of --features."""
    return together(
        click.option(
            "--kernel",
            type=click.Choice(["gaussian", "laplace", "matern", "polynomial"]),
            help="Learn features of this kernel: what is normal may then be curved.",
        ),
        click.option(
            "--features",
            type=click.IntRange(2, MOST_FEATURES),
            help="kernel: how many; more come closer to it, and cost memory, time and bytes."
            f"  [default: {features}]",
        ),
        click.option(
            "--gamma",
            type=positive_or_auto,
            metavar="NUMBER|auto",
            help="kernel: its scale, for the columns as they are learnt; auto: from the distances"
            " between rows.  [default: auto]",
        ),
        click.option(
            "--map",
            type=click.Choice(MAPS),
            help="kernel: how features are made.  [default: orthogonal; tensorsketch if"
            " polynomial]",
        ),
        click.option(
            "--map-seed",
            type=click.IntRange(0, 2**63 - 1),
            help="kernel: another seed gives other features of the same kernel.  [default: 0]",
        ),
        click.option(
            "--degree",
            type=click.IntRange(1, MOST_DEGREE),
            help="polynomial: its degree.  [default: 2]",
        ),
        click.option(
            "--coef0", type=click.FloatRange(0), help="polynomial: its constant.  [default: 0]"
        ),
        click.option(
            "--nu", type=click.Choice(["1.5", "2.5"]), help="matern: smoothness.  [default: 1.5]"
        ),
    )


def taken(options: dict[str, Any]) -> dict[str, Any]:
    """Remove these options from a command's arguments, and return those that were given."""
    found = {name: options.pop(name) for name in NAMES if name in options}
    return {name: value for name, value in found.items() if value is not None}


def feature_map(given: Mapping[str, Any], *, width: int, features: int) -> FeatureMap | None:
    """Return the map of the options, not settled if gamma is auto; None without --kernel."""
    check(given)
    if "kernel" not in given:
        return None
    kernel, map_ = given["kernel"], given.get("map")
    config = {
        "kernel": kernel,
        "gamma": given.get("gamma", "auto"),
        "map": map_,
        "features": given.get("features", features),
        "seed": given.get("map_seed", 0),
        "degree": given.get("degree"),
        "coef0": given.get("coef0"),
        "nu": None if "nu" not in given else float(given["nu"]),
    }
    try:
        built = FeaturesConfig(**config).built
    except UsageError as error:
        raise UsageError(f"--kernel {kernel} --features {config['features']}: {error}") from error
    try:
        built.dim(width)
    except UsageError as error:
        raise UsageError(f"--map {map_}: {error}") from error
    return built


def check(given: Mapping[str, Any]) -> None:
    """Refuse options that have no effect on any rows."""
    kernel, map_ = given.get("kernel"), given.get("map")
    for name, value in given.items():
        if kernel is None:
            raise UsageError(f"{option(name)} has an effect with --kernel only")
        if kernel != NEEDED.get(name, kernel):
            raise UsageError(f"{option(name)} has an effect with --kernel {NEEDED[name]} only")
        if name == "coef0" and not math.isfinite(value):
            raise UsageError(f"--coef0 must be a finite number of at least 0, got {value:g}")
    if map_ is not None and (map_ == "tensorsketch") != (kernel == "polynomial"):
        raise UsageError(f"--map {map_} is not for --kernel {kernel}: leave it out")


def option(name: str) -> str:
    """Return how an option is written."""
    return "--" + name.replace("_", "-")


def written(map_: FeatureMap) -> str:
    """Return all options that make a map again."""
    spec: dict[str, Any] = dict(map_.spec())
    gamma = spec["gamma"]
    words = [
        *("--kernel", spec["kernel"], "--features", spec["features"]),
        *("--gamma", "auto" if gamma is None else plain(float.fromhex(gamma))),
        *("--map", spec["kind"], "--map-seed", spec["seed"]),
    ]
    if "degree" in spec:
        words += ["--degree", spec["degree"], "--coef0", plain(float.fromhex(spec["coef0"]))]
    if "nu" in spec:
        words += ["--nu", plain(float.fromhex(spec["nu"]))]
    return " ".join(map(str, words))
