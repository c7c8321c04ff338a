"""Two sites learn apart; the merge of what they learnt is the PCA of all their rows.

Mean and total energy are exact, however few directions are sent. Eight directions of forty
give the leading three to a hundredth of a degree; all forty give them to rounding.
"""

import numpy as np

from submerge import SAPCA, merge

SENSORS, RANK = 40, 3
rng = np.random.default_rng(0)

# Both sites vary along the same few directions, about different means.
directions = rng.standard_normal((RANK, SENSORS))
strengths = np.array([5.0, 3.0, 2.0])


def rows_at(level: float, n: int) -> np.ndarray:
    """Return n readings of one site: a few common causes, and noise."""
    causes = rng.standard_normal((n, RANK)) * strengths
    return level + causes @ directions + 0.5 * rng.standard_normal((n, SENSORS))


sites = rows_at(20.0, 3000), rows_at(23.0, 1000)

# What we would have found with all rows in one place.
pooled = np.vstack(sites)
centered = pooled - pooled.mean(axis=0)
_, sigma, axes = np.linalg.svd(centered, full_matrices=False)
print(f"{len(pooled)} rows of two sites, {pooled.nbytes:,} bytes")

for spare in (5, SENSORS - RANK):
    parts = [SAPCA(RANK, oversample=spare).partial_fit(site).subspace for site in sites]
    both = merge(*parts, rank=RANK)
    missed = both.basis - axes[:RANK].T @ (axes[:RANK] @ both.basis)

    bytes_sent = sum(part.basis.nbytes + part.sigma.nbytes + part.mean.nbytes for part in parts)
    print(f"\n{parts[0].rank} directions a site, {bytes_sent:,} bytes sent")
    print(f"  largest error of the mean {np.abs(both.mean - pooled.mean(axis=0)).max():.0e}")
    print(f"  error of the total energy {abs(both.energy / np.vdot(centered, centered) - 1):.0e}")
    print(f"  error of sigma            {np.abs(both.sigma / sigma[:RANK] - 1).max():.0e}")
    print(f"  angle to pooled PCA       {np.degrees(np.linalg.norm(missed, 2)):.0e} degrees")
