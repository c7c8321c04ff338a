"""How many settings a program has: `python -m support.leaf_keys` prints them.

A leaf key is a field of a section that holds no section: `timing.report_every_s`. Of a list of
tables (`alarms.webhook`, `schema.channels`) each key of such a table is one; `schema.channels` is
one more, for its elements may be text. What tells a sensor's kind is one.

Two numbers follow. *Paths* counts each place: `ca` of [uplink] and `ca` of [scores.broker] are
two. *Settings* counts what a person has to know: what one class declares is one setting, wherever
sections of that class stand, as a link's keys do in [uplink], [parent] and [scores.broker].

Neither counts [advanced], which no sample has, nor settings that are on their way out
(`config.removed`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin

from msgspec.structs import fields

from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.removed import is_listed
from submerge_client.config.sections import choices, is_section, sections_of


class LeafKey(NamedTuple):
    """A key: its place, the class that declares it, and its name there."""

    path: str
    declared_by: type
    name: str


def leaf_keys(section: Any, place: str = "") -> Iterator[LeafKey]:
    """Yield every key that a section can have."""
    _, tagged = sections_of(section)
    place += "".join(f"{word}." for word in tagged if word)
    for field in fields(section):
        if not is_listed(field.name):
            continue
        inner = [kind for choice in choices(field.type) for kind in _inside(choice)]
        if not all(is_section(kind) for kind in inner):
            yield LeafKey(place + field.name, _declares(section, field.name), field.name)
        kinds = [kind for kind in inner if is_section(kind)]
        if len(kinds) > 1:
            kind_key = sections_of(field.type)[0] or ""
            yield LeafKey(f"{place}{field.name}.{kind_key}", section, kind_key)
        for kind in kinds:
            yield from leaf_keys(kind, f"{place}{field.name}.")


def advanced_keys(section: Any) -> list[str]:
    """Return the keys of [advanced]."""
    (inner,) = (field.type for field in fields(section) if field.name == "advanced")
    return [key.path for key in leaf_keys(inner, "advanced.")]


def settings(section: Any) -> set[tuple[type, str]]:
    """Return its keys, those of one class once."""
    return {(key.declared_by, key.name) for key in leaf_keys(section)}


def _inside(kind: Any) -> Iterator[Any]:
    """Yield what a type holds: itself, or of a list or a table of any names its values."""
    if get_origin(kind) is tuple:
        yield from choices(get_args(kind)[0])
    elif get_origin(kind) is dict:
        yield from choices(get_args(kind)[1])
    else:
        yield kind


def _declares(section: type, name: str) -> type:
    """Return the class that a key was first declared in."""
    lineage = reversed(section.__mro__)
    return next(each for each in lineage if name in inspect.get_annotations(each))


def main() -> None:
    for kind in (ClientConfig, AggregatorConfig):
        keys = list(leaf_keys(kind))
        counts = f"{len(settings(kind))} settings, {len(keys)} paths"
        lines = [*sorted(key.path for key in keys), f"{kind.__name__}: {counts}", ""]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
