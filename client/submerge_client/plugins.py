"""What installed packages add to this one, found by their entry points: nothing here names them.

Groups: `submerge.sensors`, `submerge.sinks`, `submerge.clusters`, `submerge.roots`, and
`submerge.commands`. docs/extending.md says what each of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


OURS = ("submerge", "submerge-lab")
"""Distributions whose words no other takes away."""


def plugins(group: str) -> list[EntryPoint]:
    """Return what packages offer in a group, by name: ours first."""
    from importlib.metadata import entry_points  # late: it costs some milliseconds

    def place(entry: EntryPoint) -> tuple[bool, str]:
        return entry.dist is None or entry.dist.name not in OURS, entry.name

    return sorted(entry_points(group=group), key=place)


def plugin(group: str, name: str) -> Any | None:
    """Return what a package offers under a name, loaded; None if none does."""
    return next((entry.load() for entry in plugins(group) if entry.name == name), None)
