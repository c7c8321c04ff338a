"""FeaturesConfig: the kernel of a group, in the files of clients and roots.

A kernel group learns features of a vector beside the vector itself. What is normal may then be a
bent sheet or a ring; without a kernel it is flat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import numpy as np

from submerge import Array, UsageError
from submerge.features import (
    CountSketch,
    FeatureMap,
    Gaussian,
    Kernel,
    Landmarks,
    Laplace,
    Matern,
    OpenLandmarks,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from submerge.features.checks import MOST_FEATURES
from submerge.features.weights import Kind
from submerge_client.config.hints import nearest
from submerge_client.config.sections import (
    BadSetting,
    NotBelowZero,
    Section,
    Spare,
    Whole,
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
        """Return the map for channels of these names, their lags included.

        Landmarks are read from their file.

        Raises UsageError if the file is no table of `features` landmarks without gaps.
        """
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
        match self.kernel:
            case "gaussian":
                return Gaussian(gamma)
            case "laplace":
                return Laplace(gamma)
            case "matern":
                return Matern(gamma, 1.5 if self.nu is None else self.nu)
            case "polynomial":
                return Polynomial(self.degree or 2, gamma, self.coef0 or 0.0)


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
    """Return the index of a channel's column."""
    if name in columns:
        return columns.index(name)
    near = nearest(name, columns)
    raise refusal(
        "landmarks",
        expected=f"a column {shown(name)} in {path}, for the channel of that name",
        got="no such column",
        hint=f"did you mean {shown(near)}?" if near else "name its columns as the channels",
    )
