"""Landmarks that a root has its fleet choose: when it asks for them, and the schema that follows.

While a group leaves them open (`features.OpenLandmarks`) its nodes measure. With enough readings
the root's driver opens a job of kind `landmarks`; its answer settles scaling, gamma and landmarks
at once, and is asked for again if it is lost. Only an operator has landmarks chosen again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from submerge._linalg import Array
from submerge.aggregator.plan import GroupPlan
from submerge.aggregator.root.settling import settled_schema
from submerge.aggregator.rows.ledger import Ledger
from submerge.errors import UsageError
from submerge.features import Kernel, Landmarks, Matern, OpenLandmarks, Polynomial
from submerge.schema import Schema


class LandmarksWanted(NamedTuple):
    """A choice that a group waits for: of rows that nodes hold under a schema, by a job."""

    schema: Schema
    settings: dict[str, int | float | str | bool | None]


def wanted(plan: GroupPlan, ledger: Ledger | None, least: int) -> LandmarksWanted | None:
    """Return the choice that a root's group waits for; None for none, or too few readings."""
    if ledger is None or not isinstance(ledger.schema.features, OpenLandmarks):
        return None
    if not plan.settles:
        return None  # an aggregator below the root has its schema from there
    moments = ledger.moments()
    if moments is None or moments.count < max(1, least):
        return None
    return choice_for(plan, ledger.schema)


def choice_for(plan: GroupPlan, schema: Schema) -> LandmarksWanted:
    """Return the choice of landmarks under a schema; UsageError if the fleet makes none."""
    asked = None if plan.schema is None else plan.schema.features
    if not isinstance(asked, OpenLandmarks) or not isinstance(
        schema.features, OpenLandmarks | Landmarks
    ):
        raise UsageError('the group\'s landmarks are not left to the fleet: landmarks = "fleet"')
    raw = plan.learns_scaling and schema.scaling is None
    settings = _kernel_settings(asked.kernel) | {"landmarks": asked.landmarks, "scale": raw}
    if schema.features.kernel.gamma is not None:
        settings["gamma"] = schema.features.kernel.gamma
    return LandmarksWanted(schema, settings)


def schema_with(plan: GroupPlan, ledger: Ledger, points: Array) -> Schema:
    """Return the schema that follows from landmarks (m, channels); UsageError if they are none."""
    schema, moments = ledger.schema, ledger.moments()
    features = schema.features
    choice_for(plan, schema)  # whether it leaves them to the fleet
    if isinstance(features, Landmarks):
        asked = OpenLandmarks(features.kernel, max(len(features.points), len(points)))
        return replace(schema, features=asked.chosen(points))
    if not isinstance(features, OpenLandmarks) or moments is None:
        raise UsageError("the group waits for no landmarks")
    found = settled_schema(schema, moments, learns_scaling=plan.learns_scaling)
    settled = found.features
    if not isinstance(settled, OpenLandmarks):
        raise UsageError("the group waits for no landmarks")
    if schema.scaling is None:
        points = found.scaled(points)
    return replace(found, features=settled.chosen(points))


def _kernel_settings(kernel: Kernel) -> dict[str, int | float | str | bool | None]:
    """Return a kernel as a job's settings name it."""
    found: dict[str, int | float | str | bool | None] = {"kernel": type(kernel).__name__.lower()}
    if isinstance(kernel, Polynomial):
        found |= {"degree": kernel.degree, "coef0": kernel.coef0}
    elif isinstance(kernel, Matern):
        found |= {"nu": kernel.nu}
    return found
