"""Feature maps: kernels as explicit features, which merge as readings do. None learns rows.

A map takes scaled rows; the same specification gives the same numbers on every machine.
"""

from submerge.features.count_sketch import CountSketch
from submerge.features.feature_map import FeatureMap, Identity
from submerge.features.fourier import RandomFourier, features_for
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern, Polynomial
from submerge.features.landmarks import Landmarks, OpenLandmarks
from submerge.features.sketch import Sketched
from submerge.features.specs import parse, plain
from submerge.features.tensor_sketch import TensorSketch

__all__ = [
    "CountSketch",
    "FeatureMap",
    "Gaussian",
    "Identity",
    "Kernel",
    "Landmarks",
    "Laplace",
    "Matern",
    "OpenLandmarks",
    "Polynomial",
    "RandomFourier",
    "Sketched",
    "TensorSketch",
    "features_for",
    "parse",
    "plain",
]
