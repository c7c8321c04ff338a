"""What is known of a new schema's scaling before anything is measured.

A channel that was measured once keeps its center and scale when others come or go. Of a new one
they may be given. If all are known, the fleet goes on at once, and else it measures the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from submerge.schema import Scaling, Schema

Given = Mapping[str, tuple[float, float]]
"""Center and scale of channels, by name."""


def known_scaling(configured: Schema, earlier: Iterable[Schema], given: Given) -> Given:
    """Return center and scale of the channels of which they are known, by name.

    earlier : schemas that the group has had; the first counts that has a channel
    given : of channels that no earlier schema has
    """
    measured = dict[str, tuple[float, float]]()
    wanted = set(configured.named)
    for schema in earlier:
        if schema.scaling is None or schema.family != configured.family:
            continue
        numbers = zip(schema.scaling.offset, schema.scaling.scale, strict=True)
        for channel, both in zip(schema.named, numbers, strict=True):
            if channel in wanted:
                measured.setdefault(channel.name, both)
    return {**given, **measured}


def carried_over(configured: Schema, known: Given) -> Schema | None:
    """Return the configured schema with its scaling; None if some of it is not known."""
    found = [known.get(name) for name in configured.names]
    both = [each for each in found if each is not None]
    if len(both) < len(found):
        return None
    offsets, scales = zip(*both, strict=True)
    return replace(configured, scaling=Scaling(offsets, scales))


def with_known(settled: Schema, known: Given) -> Schema:
    """Return a settled schema in which channels that are known keep their scaling."""
    if settled.scaling is None:
        return settled
    measured = zip(settled.scaling.offset, settled.scaling.scale, strict=True)
    pairs = zip(settled.names, measured, strict=True)
    offsets, scales = zip(*(known.get(name, both) for name, both in pairs), strict=True)
    return replace(settled, scaling=Scaling(offsets, scales))
