"""A subspace that turns: an engine follows it if it forgets, and falls behind if it does not.

The stream's one strong direction turns by 90 degrees in 20,000 rows. An engine that
forgets nothing averages over all that it has seen; one whose rows lose half their
weight every 700 rows points where the stream points now.
"""

import numpy as np

from submerge import SAPCA

DIM, BLOCKS, ROWS = 30, 40, 500
rng = np.random.default_rng(0)
start, end = np.linalg.qr(rng.standard_normal((DIM, 2)))[0].T

remembers = SAPCA(rank=1)
forgets = SAPCA(rank=1, forgetting_factor=0.999)


def degrees_off(engine: SAPCA, direction: np.ndarray) -> float:
    """Return the angle between a direction and the one that the engine shows."""
    cosine = abs(engine.shown.basis[:, 0] @ direction)
    return float(np.degrees(np.arccos(min(1.0, cosine))))


print("    rows   turned   off, f = 1   off, f = 0.999")
for block in range(1, BLOCKS + 1):
    turned = np.pi / 2 * block / BLOCKS
    now = np.cos(turned) * start + np.sin(turned) * end
    X = 5 * np.outer(rng.standard_normal(ROWS), now) + rng.standard_normal((ROWS, DIM))
    for engine in (remembers, forgets):
        engine.partial_fit(X)
    if block % 8 == 0:
        print(
            f"{block * ROWS:8,} {np.degrees(turned):7.0f}°"
            f" {degrees_off(remembers, now):11.1f}° {degrees_off(forgets, now):15.1f}°"
        )
