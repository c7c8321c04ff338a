"""A curved normal region: two devices see half of a ring each, and find a reading inside it.

The middle of a ring is the mean of all its readings: to a linear model it looks normal.
Random features of a Gaussian kernel follow the ring. The same engine learns and merges them like
readings, and the gradient of the SPE (squared prediction error) says which channels to blame.
"""

import numpy as np

from submerge import SAPCA, contributions, merge, spe
from submerge.features import Gaussian, RandomFourier

rng = np.random.default_rng(0)
plane = np.linalg.qr(rng.standard_normal((6, 2)))[0]  # six sensors, two hidden causes


def readings(turns: np.ndarray) -> np.ndarray:
    """Points at these angles, seen by six noisy sensors."""
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return ring @ plane.T + 0.05 * rng.standard_normal((len(turns), 6))


features = RandomFourier(Gaussian(1.0), 256)  # the same map on every device: seed and all
flat, curved = [], []
for start in (0.0, np.pi):
    rows = readings(rng.uniform(start, start + np.pi, 2000))
    flat.append(SAPCA(rank=2).partial_fit(rows).subspace)
    curved.append(SAPCA(rank=12).partial_fit(features.lift(rows)).subspace)
readings_known, features_known = merge(*flat, rank=2), merge(*curved, rank=12)

sound, middle = readings(rng.uniform(0, 2 * np.pi, 500)), np.zeros((1, 6))
for name, known, lift in (
    ("readings", readings_known, lambda rows: rows),
    ("features", features_known, features.lift),
):
    limit = np.quantile(spe(lift(sound), known), 0.99)
    print(f"{name}: SPE in the middle is {spe(lift(middle), known)[0] / limit:.2f} of the limit")

faulty = sound[:1] + 0.6 * np.eye(6)[4]  # the fifth sensor is off
print("blamed:", contributions(faulty, features_known, features).round(2))
