"""Noise in a root's models: which groups can have it, and OpenDP, which draws it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.releases import CLIP, Noise, least_rows
from submerge.errors import UsageError
from submerge.pca.row_sums import Ints
from submerge_client.config.sections import refusal

DELTA = 1e-6


class OpenDpNoise:
    """Discrete Gaussian noise, and what it costs. `rho`: what an epsilon allows."""

    def __init__(self, epsilon: float) -> None:
        try:
            import opendp.prelude as opendp
        except ImportError as error:
            raise UsageError(
                "[privacy] epsilon needs OpenDP: pip install 'submerge[noise]'"
            ) from error
        opendp.enable_features("contrib")
        self._opendp = opendp
        low, high = 0.0, epsilon  # rho is below epsilon: epsilon = rho + 2 sqrt(rho log(1 / delta))
        for _ in range(64):
            self.rho = (low + high) / 2
            if self.epsilon(self.rho) <= epsilon:
                low = self.rho
            else:
                high = self.rho
        self.rho = low

    def draw(self, n: int, scale: float) -> Ints:
        return np.array(self._gaussian(n, scale)([0] * n), dtype=np.int64)

    def epsilon(self, rho: float) -> float:
        if not rho > 0:
            return 0.0
        spent = self._opendp.c.make_zCDP_to_approxDP(self._gaussian(1, (0.5 / rho) ** 0.5))
        curve: Any = spent.map(1.0)  # type: ignore[no-untyped-call]
        return float(curve.epsilon(DELTA))

    def _gaussian(self, n: int, scale: float) -> Any:
        of = self._opendp
        numbers = of.vector_domain(of.atom_domain(T="i64"), size=n)
        return of.m.make_gaussian(numbers, of.l2_distance(T=float), scale=scale)


def noisy(plan: GroupPlan, noise: Noise, *, lags: int) -> GroupPlan:
    """Return the plan of a root's group whose models carry noise; a mistake if they cannot."""
    schema, said = plan.schema, "[privacy] epsilon is set"
    if schema is None:
        raise refusal("schema", expected=f"one: {said}, and a root adds noise", got="nothing")
    needs = {
        "features": ("no kernel", schema.linear),
        "center": ('"fleet"', schema.center == "fleet"),
        "half_life_s": ("none", schema.half_life is None),
        "lags": ("1, or a reading would be in several rows", lags == 1),
        "scaling": ("an offset and a scale of each channel", schema.scaling is not None),
    }
    for setting, (expected, fits) in needs.items():
        if not fits:
            raise refusal("schema", setting, expected=f"{expected}: {said}", got="another")
    if not plan.summaries.is_narrow(schema):
        expected = f"{schema.dim // 4 + 1} directions, spare ones included: {said}"
        raise refusal("summary", "rank", expected=expected, got="fewer")
    return replace(
        plan,
        schema=replace(schema, clip=CLIP * schema.dim**0.5),
        noise=noise,
        floor=False,  # the noise is in its place
        chooses_rank=False,
        min_rows=max(plan.min_rows, least_rows(schema.dim, noise.rho)),
    )
