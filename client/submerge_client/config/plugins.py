"""What installed packages add to this one, found by their entry points (docs/extending.md).

`importlib.metadata` finds the same, and would hold 4 MiB of every client for ever.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

OURS = ("submerge", "submerge-lab")  # distributions whose words no other takes away


class Plugin(NamedTuple):
    """An entry point, whose value is "module:name"."""

    group: str
    name: str
    value: str
    distribution: str

    def load(self) -> Any:
        module, _, names = self.value.partition(":")
        found: Any = importlib.import_module(module)
        for name in names.split("."):
            found = getattr(found, name)
        return found


def plugins(group: str) -> list[Plugin]:
    """Return what packages offer in a group, by name: ours first."""
    offered = [each for each in _offered(tuple(sys.path)) if each.group == group]
    return sorted(offered, key=lambda each: (each.distribution not in OURS, each.name))


def plugin(group: str, name: str) -> Any | None:
    """Return what a package offers under a name, loaded; None if none does."""
    return next((each.load() for each in plugins(group) if each.name == name), None)


@cache
def _offered(path: tuple[str, ...]) -> list[Plugin]:
    """Return what all distributions offer to us; of two versions the first on the path."""
    found: dict[str, list[Plugin]] = {}
    for folder in path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # a zip, or a folder that is not there
            continue
        for name in names:
            stem, ending = os.path.splitext(name)
            distribution = stem.partition("-")[0].lower().replace("_", "-")
            if ending not in (".dist-info", ".egg-info") or distribution in found:
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    found[distribution] = list(_read(file, distribution))
            except OSError:  # it has none
                found[distribution] = []
    return [each for several in found.values() for each in several]


def _read(lines: Iterable[str], distribution: str) -> Iterator[Plugin]:
    group = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group.startswith("submerge.") and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Plugin(group, name.strip(), value.partition("[")[0].strip(), distribution)
