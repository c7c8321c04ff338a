"""MNIST's test images, which are never committed: the caller knows where they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def digits(folder: Path, *wanted: int) -> np.ndarray:
    """Return the images of some digits, (n, 784) in [0, 1]."""
    with gzip.open(folder / "t10k-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images[np.isin(labels, wanted)] / 255
