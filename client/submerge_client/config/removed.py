"""leaving(): settings that go, and are used until then; ignoring them would change the schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

REFUSED_FROM = "0.8"

INTERNAL = "advanced"  # the section for tests, demo and benchmarks: in no sample, and in no hint
FOREIGN = "sink"  # tables of kinds that other packages add: in no sample, which has none of them

HINT = "take it out: it is a constant in later versions"

SHARED = ("schema.features.seed", "schema.features.buckets", "summary.linear_rank")
CLIENT = (*SHARED, "timing.min_rows")
AGGREGATOR = tuple(f"groups.*.{at}" for at in SHARED)


def leaving(table: dict[str, Any], settings: Sequence[str]) -> list[tuple[str, ...]]:
    return [keys for at in settings for keys in _places(table, at.split("."))]


def _places(table: Any, steps: list[str], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(table, dict):
        return
    step, *more = steps
    for key in table if step == "*" else [step] * (step in table):
        if more:
            yield from _places(table[key], more, (*above, key))
        else:
            yield (*above, key)


def is_listed(name: str) -> bool:
    """Return whether hints may name a setting or a section of this name."""
    return name not in (INTERNAL, FOREIGN, *(at.rpartition(".")[2] for at in CLIENT))
