"""The hashes of every random map's weights, for machines that are not this one.

    PYTHONPATH=core python tests/support/feature_hashes.py

prints each, and fails if one is not the golden file's: tests/golden/weights/v1.json. It needs
numpy and nothing else. With SUBMERGE_REWRITE=1 it writes down those that the file lacks.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submerge.features import (
    CountSketch,
    Gaussian,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    Sketched,
    TensorSketch,
    parse,
)
from submerge.features.weights import phases

PATH = Path(__file__).parents[1] / "golden" / "weights" / "v1.json"

RADIAL = [Gaussian(0.1), Laplace(0.3), Matern(0.1), Matern(0.1, 2.5)]


class Case(NamedTuple):
    """A map, and for how many channels."""

    spec: dict[str, Any]
    channels: int

    @property
    def name(self) -> str:
        return json.dumps([self.channels, self.spec], sort_keys=True)


def cases() -> Iterator[Case]:
    """Every random kind with every kernel, for few and many channels; rows of several blocks."""
    for kernel in RADIAL:
        for kind in ("orthogonal", "fourier-pair", "fourier-cos"):
            for channels in (1, 3, 64, 100):
                yield Case(RandomFourier(kernel, 512, kind, seed=42).spec(), channels)
        for channels in (1, 3, 8):
            yield Case(RandomFourier(kernel, 512, "quasi", seed=42).spec(), channels)
    yield Case(RandomFourier(Gaussian(0.1), 64, "orthogonal", seed=2**63 - 1).spec(), 3000)
    for degree, channels in ((1, 3), (2, 64), (3, 64), (4, 20000)):
        yield Case(TensorSketch(Polynomial(degree, 0.1, 1.0), 512, seed=42).spec(), channels)
    yield Case(CountSketch(Gaussian(0.1), 512, 4096, seed=42).spec(), 20000)
    for sketch in ("countsketch", "srht", "gaussian"):
        yield Case(Sketched(TensorSketch(Polynomial(4, 0.1), 300), 50, sketch, 42).spec(), 9)


def hashed(case: Case) -> str:
    """SHA-256 of the weights as little-endian float64, row by row; phases at the end."""
    map_: Any = parse(case.spec)
    numbers = [map_.weights(case.channels)]
    if case.spec["kind"] == "fourier-cos":
        numbers.append(phases(map_.features, map_.seed))
    digest = hashlib.sha256()
    for array in numbers:
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def golden() -> dict[str, str]:
    """Return the hash of each case that is written down."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def main() -> None:
    known, missed = golden(), 0
    for case in cases():
        found = hashed(case)
        expected = known.setdefault(case.name, found) if _REWRITE else known.get(case.name)
        missed += found != expected
        verdict = "as ever" if found == expected else f"expected {expected}"
        sys.stdout.write(f"{found[:16]} {verdict}  {case.name}\n")
    if _REWRITE:
        PATH.write_text(json.dumps(known, indent=1) + "\n")
    sys.stdout.write(f"NumPy {np.__version__}, {platform.machine()}: {missed} differ\n")
    sys.exit(bool(missed))


_REWRITE = os.environ.get("SUBMERGE_REWRITE") == "1"

if __name__ == "__main__":
    main()
