"""merge(): several subspaces into one.

Whatever the shape of the tree, `weight`, `mean` and `energy` of the result are
those of the pooled data, and its sigma never overstates. Forgetting is its own
verb (`Subspace.faded`); merging never discards more than `rank` asks for.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from submerge._linalg import leading
from submerge.errors import UsageError
from submerge.pca.subspace import Subspace, check_rank, check_same_schema, oriented


def merge(*parts: Subspace, rank: int, center: Literal["fleet", "own"] = "fleet") -> Subspace:
    """Summarise the union of the parts' data (MergeSubspaces).

    Weight, mean and energy come out exact, whatever `rank` is; the basis is
    exact if no part had discarded anything, and otherwise never overstates.

    Parameters
    ----------
    *parts : Subspace
        One or more, all of the same schema. Their order does not matter, to rounding.
    rank : int
        Most directions to keep, at least 1. Keep some to spare: what is merged
        with r of k directions has lost the rest for good.
    center : {"fleet", "own"}
        "fleet" measures variation about one mean, "own" each part's about its own:
        the differences between the parts' means then leave sigma and energy (so
        energy is within-energy, with weight - len(parts) degrees of freedom), and
        `mean` is still that of all data. Between nodes, say what their schema's
        `center` says; a node's own parts always merge with their means.

    Returns
    -------
    Subspace

    Raises
    ------
    SchemaMismatch
        If the parts have different schemas.

    Notes
    -----
    The thin SVD of `[U_1 S_1, U_2 S_2, ..., sqrt(w_i) (mean_i - mean)]`: O(dim m^2)
    for m = total rank + number of parts. We stack everything and decompose once:
    a product Z = U1'U2 first would save part of a pair merge, and only of that.

    References
    ----------
    Grammenos et al., Federated Principal Component Analysis, arXiv:1907.08059,
    Algorithms 2, 4 and 5. Algorithm 2 as printed weighs only one of the two
    right-hand blocks; the raw sigmas here carry the weights already.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge import Schema, Subspace, merge
    >>> schema = Schema.anonymous(3)
    >>> north = Subspace.of(np.eye(3), schema, rank=2)
    >>> south = Subspace.of(-np.eye(3), schema, rank=2)
    >>> both = merge(north, south, rank=2)
    >>> both.weight == north.weight + south.weight
    True
    """
    check_rank(rank)
    if center not in ("fleet", "own"):
        raise UsageError(f'center must be "fleet" or "own", got {center!r}')
    if not parts:
        raise UsageError("merge needs at least one subspace, got none")
    for part in parts:
        check_same_schema(parts[0], part)
    parts = tuple(part for part in parts if part.weight > 0) or parts[:1]
    if len(parts) == 1:
        return parts[0].truncated(rank)

    weight = sum(part.weight for part in parts)
    # About the first mean, so that an offset common to all costs no digits.
    origin = parts[0].mean
    shifts = np.stack([part.mean - origin for part in parts])
    weights = np.array([part.weight for part in parts])
    shift = weights @ shifts / weight
    energy = sum(part.energy for part in parts)
    held = sum(part.rank for part in parts)
    stack = np.empty((held + len(parts) * (center == "fleet"), len(origin)))
    start = 0
    for part in parts:
        np.multiply(part.basis.T, part.sigma[:, None], out=stack[start : start + part.rank])
        start += part.rank
    if center == "fleet":
        between = stack[held:]
        np.multiply(np.sqrt(weights)[:, None], shifts - shift, out=between)
        energy += float(np.vdot(between, between))
    found = leading(stack, rank)
    return oriented(
        found.rows.astype(np.result_type(*(part.basis for part in parts)), copy=False),
        found.sigma,
        schema=parts[0].schema,
        mean=origin + shift,
        weight=weight,
        energy=energy,
        spectral_bound=sum(part.spectral_bound for part in parts) + found.dropped,
    )
